"""Debian packages: what is missing is installed with apt-get (through sudo if need be).

A package's maintainer script would start its server on the default port, as a service
of the machine.  While we install, a ``policy-rc.d`` (Debian policy 9.3.3.1: exit status
101 forbids) keeps it from doing so; one that is there already is left alone, ours is
removed afterwards, also when an earlier run was killed in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trimaran.sandbox.locks import hold
from trimaran.sandbox.places import cache_root
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress

POLICY = Path("/usr/sbin/policy-rc.d")
_MARK = "# written by the trimaran sandbox while it installs packages; safe to remove"
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def tool(name: str) -> str | None:
    """The path of a system program, found also where a user's PATH has no sbin."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":" + _SYSTEM_PATH)


def there(name: str) -> bool:
    """Whether the machine has a program, or a shared library ("libatomic.so.1")."""
    if ".so" not in name:
        return tool(name) is not None
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def elevated() -> list[str]:
    """The words before a command that needs root.

    Raises:
        SandboxError: neither root nor a sudo that lets us.
    """
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        probe = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
        if probe.returncode == 0:
            return ["sudo", "-n"]
        # it asks on the terminal, once
        if sys.stdin.isatty() and subprocess.run(["sudo", "-v"], check=False).returncode == 0:
            return ["sudo"]
    raise SandboxError("Installing Debian packages needs root, or a sudo that lets you.")


def install(names: list[str], processes: Processes, say: Progress) -> None:
    """Install Debian packages without starting what is in them.

    Raises:
        SandboxError: no apt-get, no right to use it, or it failed.
    """
    listed = " ".join(names)
    if not shutil.which("apt-get"):
        raise SandboxError(
            f"These programs are missing and apt-get is not here to install them: {listed}."
        )
    try:
        sudo = elevated()
    except SandboxError as error:
        raise SandboxError(f"Missing Debian packages: {listed}. {error.message}") from None
    say(f"apt-get install {listed}")
    # `env` because sudo drops variables
    command = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-qq"]
    command += ["-o", "DPkg::Lock::Timeout=600"]
    wanted = [*command, "install", "--no-install-recommends", *names]
    # one at a time: the second must not find the first one's policy, and lose it
    lock = hold(cache_root() / "apt.lock", "Debian packages", say)
    with lock, _no_service_start(sudo):
        env = dict(os.environ, LC_ALL="C.UTF-8")
        if processes.run("apt", wanted, env, check=False):
            # a stale package list, or an installation that was killed in the middle
            processes.run("apt", [*sudo, "dpkg", "--configure", "-a"], env, check=False)
            processes.run("apt", [*command, "update"], env)
            processes.run("apt", wanted, env)


@contextlib.contextmanager
def _no_service_start(sudo: list[str]) -> Iterator[None]:
    if POLICY.exists() and _MARK not in POLICY.read_text(errors="replace"):
        yield
        return
    with tempfile.NamedTemporaryFile("w", suffix=".policy-rc.d") as script:
        script.write(f"#!/bin/sh\n{_MARK}\nexit 101\n")
        script.flush()
        subprocess.run([*sudo, "install", "-m", "0755", script.name, str(POLICY)], check=True)
    try:
        yield
    finally:
        subprocess.run([*sudo, "rm", "-f", str(POLICY)], check=True)
