"""A process that outlives the command that started it, found again by pid.

A pid alone may have been taken over by another program after a reboot; the
start time beside it tells the two apart.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

START_SECONDS = 180.0
STOP_SECONDS = 40.0


def _start_time(pid: int) -> str | None:
    """The kernel's start time of this process in clock ticks; None if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


class Background:
    """One background process.

    Args:
        name: what it is called in messages.
        record: file that remembers which process it is.
        log: file that gets its output.
    """

    def __init__(self, name: str, record: Path, log: Path) -> None:
        self.name = name
        self.record = record
        self.log = log
        self._child: subprocess.Popen[bytes] | None = None

    def pid(self) -> int | None:
        """The pid of the running process, None when there is none."""
        try:
            known = json.loads(self.record.read_text())
        except (OSError, ValueError):
            return None
        pid = int(known["pid"])
        return pid if _start_time(pid) == known["started"] else None

    def start(
        self, command: Sequence[str], env: Mapping[str, str], ready: Callable[[], bool]
    ) -> float:
        """Start it and wait until it is ready.

        Args:
            command: program and arguments.
            env: its environment.
            ready: asked again and again.

        Returns:
            The seconds that it took.

        Raises:
            click.ClickException: it ended, or it is not ready in time.
        """
        begin = time.monotonic()
        with self.log.open("ab") as log:
            process = self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(env),
                start_new_session=True,
            )
        record = {"pid": process.pid, "started": _start_time(process.pid)}
        self.record.write_text(json.dumps(record))
        while not ready():
            if process.poll() is not None:
                raise click.ClickException(
                    f"{self.name} ended at the start; the last lines of {self.log}:\n{self._tail()}"
                )
            if time.monotonic() - begin > START_SECONDS:
                raise click.ClickException(
                    f"{self.name}: not ready after {START_SECONDS:.0f} s; see {self.log}"
                )
            time.sleep(0.1)
        return time.monotonic() - begin

    def _tail(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> bool:
        """Ask it to drain and end; kill it when it does not.

        Returns:
            Whether there was one.
        """
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + STOP_SECONDS
        while self.pid() is not None:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        if self._child:
            self._child.wait()
        self.record.unlink(missing_ok=True)
        return True
