"""Starting and stopping the processes of a sandbox, and running its one-off commands.

Each service leads a session of its own and writes to ``log/<name>.log``; that log is
also how it is found again (see proc).  A digest of what a service was started with is
kept beside it, so that ``up`` restarts a service whose configuration has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.proc import Group, Proc

POLL = 0.1


class Processes:
    """The processes of one state directory.

    Args:
        state: the state directory (resolved).
        proc: the reader of /proc.
        lock: descriptor that one-off commands keep open (see locks).
    """

    def __init__(self, state: Path, proc: Proc | None = None, lock: int | None = None) -> None:
        self.state = state
        self.logs = state / "log"
        self.run_dir = state / "run"
        self.proc = proc or Proc()
        self.lock = lock

    def groups(self) -> dict[str, Group]:
        """What runs now, by name."""
        _reap()
        return self.proc.groups(self.logs)

    def running(self, name: str) -> Group | None:
        """The running processes of a service, or None."""
        return self.groups().get(name)

    # -- services --------------------------------------------------------
    def start(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        config: Iterable[Path] = (),
        cwd: Path | None = None,
        user: int | None = None,
        group: int | None = None,
    ) -> bool:
        """Start a service unless it runs already as it should.

        Args:
            config: files that, when changed since its start, mean a restart.
            user, group: numeric ids to change to (root only).

        Returns:
            Whether it was started now.
        """
        digest = _digest(command, config)
        stamp = self.run_dir / f"{name}.started-as"
        if self.running(name):
            if _read(stamp) in ("", digest):
                return False
            self.stop([name])
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest)
        with open(self.logs / f"{name}.log", "ab") as log:
            try:
                child = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(env),
                    cwd=cwd or self.state,
                    start_new_session=True,
                    user=user,
                    group=group,
                    extra_groups=None if user is None else [],
                )
            except OSError as error:
                raise SandboxError(f"{name} cannot be started: {error}.") from error
        _children.append(child)
        return True

    def stop(
        self,
        names: Iterable[str],
        seconds: float = 10.0,
        gently: Mapping[str, signal.Signals] | None = None,
    ) -> list[str]:
        """Stop services, all at once: ask, wait, then kill what is left.

        Args:
            seconds: how long they may take before they are killed.
            gently: the signal to ask with, where it is not SIGTERM.

        Returns:
            The names of those that ran.
        """
        first = self._of(names)
        for name, group in first.items():
            # a process that is held by SIGSTOP would not act on anything else
            _signal(group.pids, signal.SIGCONT)
            _signal([group.leader], (gently or {}).get(name, signal.SIGTERM))
        asked = time.monotonic() + seconds
        while left := self._of(names):
            if time.monotonic() > asked + 10:
                pids = sorted(pid for group in left.values() for pid in group.pids)
                raise SandboxError(f"Processes that cannot be killed: {pids}.")
            for name, group in left.items():
                if time.monotonic() > asked:
                    _signal(group.pids, signal.SIGKILL)
                elif name not in first or first[name].leader not in group.pids:
                    _signal(group.pids, signal.SIGTERM)
            time.sleep(POLL)
        return sorted(first)

    def _of(self, names: Iterable[str]) -> dict[str, Group]:
        groups = self.groups()
        return {name: groups[name] for name in set(names) & groups.keys()}

    def wait(self, name: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until a service that runs is ready.

        Raises:
            SandboxError: it ended, or is not ready in time; names its log.
        """
        end = time.monotonic() + seconds
        while not ready():
            self.must_run([name])
            if time.monotonic() > end:
                log = self.logs / f"{name}.log"
                raise SandboxError(f"{name} is not ready after {seconds:.0f} seconds; see {log}.")
            time.sleep(POLL * 2)

    def must_run(self, names: Iterable[str]) -> None:
        """Refuse to wait for what has ended.

        Raises:
            SandboxError: names one that does not run, what it said last, and its log.
        """
        for name in sorted(set(names) - self.groups().keys()):
            log = self.logs / f"{name}.log"
            words = _read(log).strip().rpartition("\n")[2][-200:] or "without a word"
            raise SandboxError(f"{name} ended before it was ready ({words}); see {log}.")

    # -- one-off commands ------------------------------------------------
    def run(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        check: bool = True,
        hold: Iterable[int] = (),
    ) -> int:
        """Run a command to its end; its output goes to ``log/setup-<name>.log``.

        Args:
            hold: descriptors of further locks it must keep.

        Raises:
            SandboxError: it failed (and ``check`` is set) or could not be started.
        """
        log = self.logs / f"setup-{name}.log"
        self.logs.mkdir(parents=True, exist_ok=True)
        locks = [*hold, *([] if self.lock is None else [self.lock])]
        with open(log, "ab") as handle:
            handle.write(f"\n$ {' '.join(command)}\n".encode())
            handle.flush()
            try:
                done = subprocess.run(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=handle,
                    stderr=handle,
                    env=dict(env),
                    cwd=self.state,
                    pass_fds=locks,
                    check=False,
                )
            except OSError as error:
                raise SandboxError(f"{command[0]} cannot be run: {error}.") from error
        if check and done.returncode:
            raise SandboxError(f"A step failed ({' '.join(command[:4])}…); see the end of {log}.")
        return done.returncode


# What this process has started and must reap itself; they outlive it, hence not held by
# an object that may be dropped before.
_children: list[subprocess.Popen[bytes]] = []


def _reap() -> None:
    _children[:] = [child for child in _children if child.poll() is None]


def _digest(command: Sequence[str], config: Iterable[Path]) -> str:
    summary = hashlib.sha256("\0".join(command).encode())
    for path in config:
        summary.update(path.read_bytes())
    return summary.hexdigest()


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text()
    return ""


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def clean_environment() -> dict[str, str]:
    """Our environment without what would lead a child astray (PYTHON*, OS_*, proxies).

    The proxies stay for nobody: everything the services talk to is on loopback.
    """
    proxies = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "OS_", "RABBITMQ_", "ERL_")) and key.lower() not in proxies
    }
