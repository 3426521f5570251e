"""The virtual environment of the services, one per user and set of pins.

It lives in the cache, not in the state directory: installing takes longer than
everything else together, and depends on nothing but the pins.  A stamp is written
last; an environment without it is half-made and made anew.
"""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trimaran.sandbox import packages
from trimaran.sandbox.locks import hold
from trimaran.sandbox.places import LIB, cache_root, pins_digest
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress

# what the pins were tested with; other versions lack wheels of some of them
PYTHON = (3, 11)


class Environment:
    """The services' virtual environment.

    Args:
        root: the cache directory of one set of pins.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root() / f"{pins_digest()}-py{PYTHON[0]}{PYTHON[1]}"
        self.path = self.root / "venv"
        self.stamp = self.path / ".complete"
        self.python = self.path / "bin" / "python"

    def bin(self, name: str) -> str:
        """A command of the environment."""
        return str(self.path / "bin" / name)

    def etc(self, *parts: str) -> Path:
        """A data file as its package installed it."""
        return self.path.joinpath("etc", *parts)

    def complete(self) -> bool:
        """Whether it was made to the end and its interpreter is still there."""
        return self.stamp.exists() and self.python.exists()

    def ensure(self, processes: Processes, say: Progress) -> None:
        """Make the environment unless it is there.

        Raises:
            SandboxError: no Python 3.11, or a step failed (its log is named).
        """
        if self.complete():
            return
        with hold(self.root / "lock", "the services' virtual environment", say) as lock:
            if self.complete():
                return
            interpreter = find_interpreter()
            if self.path.exists():
                say("the virtual environment is half-made: starting over")
                shutil.rmtree(self.path)
            say(f"making the virtual environment {self.path}")
            self._create(interpreter, processes, say, lock)
            self._install(processes, say, lock)
            self.stamp.touch()
            say("virtual environment ready")

    def _create(self, interpreter: str, processes: Processes, say: Progress, lock: int) -> None:
        command = [interpreter, "-m", "venv", str(self.path)]
        env = _pip_environment()
        if processes.run("venv", command, env, check=False, hold=[lock]):
            # Debian's python3.11 comes without ensurepip
            packages.install(["python3-venv"], processes, say)
            processes.run("venv", [*command, "--clear"], env, hold=[lock])

    def _install(self, processes: Processes, say: Progress, lock: int) -> None:
        pins = read_pins((LIB / "requirements.txt").read_text())
        say(f"pip install ({len(pins)} pinned packages)")
        # a complete set of pins: there is nothing to resolve
        pip = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check"]
        pip += ["--no-input", "--no-deps"]

        def half(number: int) -> None:
            command = [*pip, *pins[number::2]]
            processes.run(f"pip-{number + 1}", command, _pip_environment(), hold=[lock])

        # pip downloads and unpacks one package after the other: two of them take two
        # thirds of the time of one
        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(half, number) for number in range(min(2, len(pins)))]:
                future.result()


def read_pins(text: str) -> list[str]:
    """The pins of a requirements file."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def find_interpreter() -> str:
    """A Python 3.11.

    Raises:
        SandboxError: there is none.
    """
    if sys.version_info[:2] == PYTHON:
        return getattr(sys, "_base_executable", "") or sys.executable
    found = shutil.which("python3.11")
    if not found:
        raise SandboxError("The sandbox's services need Python 3.11 (python3.11 on the PATH).")
    return found


def _pip_environment() -> dict[str, str]:
    # pip's own settings (index, proxy, cache) are the user's and stay
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
