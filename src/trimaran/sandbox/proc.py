"""Which processes are ours, read from /proc.

No pid files: a process of the sandbox is one whose standard output or error is open
on ``<state>/log/<name>.log``, together with the rest of its session.  That can be
neither stale nor taken over by a recycled pid, survives a kill -9 of ``up`` at any
moment, and still holds when somebody has removed the state directory (the kernel then
says "(deleted)").
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_DELETED = " (deleted)"


@dataclass(frozen=True)
class Stat:
    """The part of /proc/PID/stat that we use; ``started`` is in ticks since boot."""

    pid: int
    state: str
    session: int
    cpu_ticks: int
    started: int


@dataclass(frozen=True)
class Group:
    """All processes of one service."""

    name: str
    pids: tuple[int, ...]
    leader: int
    started: int


class Proc:
    """A reader of /proc.

    Args:
        root: where proc is mounted (tests hand in a directory of their own).
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self.root = root

    def stat(self, pid: int) -> Stat | None:
        """One process, or None when there is none or it is a zombie."""
        try:
            text = (self.root / str(pid) / "stat").read_text()
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        if len(fields) < 20 or fields[0] in "ZX":
            return None
        return Stat(
            pid, fields[0], int(fields[3]), int(fields[11]) + int(fields[12]), int(fields[19])
        )

    def pids(self) -> list[int]:
        """All process ids."""
        return [int(name) for name in os.listdir(self.root) if name.isdigit()]

    def groups(self, logs: Path) -> dict[str, Group]:
        """The running processes that write below ``logs``, by the name of their log.

        A process of the same session that has closed its output (a helper of the
        Erlang runtime, a PostgreSQL child) is counted with it.
        """
        prefix = f"{logs}/"
        stats = {pid: stat for pid in self.pids() if (stat := self.stat(pid))}
        named: dict[str, set[int]] = {}
        for pid in stats:
            if name := self._log_name(pid, prefix):
                named.setdefault(name, set()).add(pid)
        sessions = {
            stats[pid].session: name
            for name, members in named.items()
            for pid in members
            # a session of somebody else's (a shell with our log as output) is not ours
            if stats[pid].session in members
        }
        for pid, stat in stats.items():
            if name := sessions.get(stat.session):
                named[name].add(pid)
        return {name: self._group(name, members, stats) for name, members in named.items()}

    @staticmethod
    def _group(name: str, members: set[int], stats: dict[int, Stat]) -> Group:
        leaders = [pid for pid in members if stats[pid].session == pid]
        leader = min(leaders or members, key=lambda pid: (stats[pid].started, pid))
        return Group(name, tuple(sorted(members)), leader, stats[leader].started)

    def _log_name(self, pid: int, prefix: str) -> str | None:
        for number in (1, 2):
            with contextlib.suppress(OSError):
                target = os.readlink(self.root / str(pid) / "fd" / str(number))
                target = target.removesuffix(_DELETED)
                if target.startswith(prefix) and ".log" in target:
                    return target[len(prefix) :].split(".log")[0]
        return None

    def memory(self, pids: Iterable[int]) -> int:
        """Proportional set size of these processes together, in bytes."""
        total = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                for line in (self.root / str(pid) / "smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1]) * 1024
        return total

    def age(self, started: int) -> float:
        """Seconds since a start time in ticks."""
        uptime = float((self.root / "uptime").read_text().split()[0])
        return max(0.0, uptime - started / TICKS)

    def listening(self, port: int) -> set[str]:
        """The sockets (names of descriptors) that listen on a TCP port of this host."""
        inodes = set()
        for table in ("net/tcp", "net/tcp6"):
            with contextlib.suppress(OSError):
                for line in (self.root / table).read_text().splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                        inodes.add(f"socket:[{fields[9]}]")
        return inodes

    def listener(self, port: int) -> int | None:
        """The pid that listens on a TCP port of this host, if we may see it."""
        inodes = self.listening(port)
        for pid in self.pids() if inodes else ():
            if inodes & self._descriptors(pid):
                return pid
        return None

    def holders(self, path: Path) -> list[int]:
        """The pids that have a file open."""
        return [pid for pid in self.pids() if str(path) in self._descriptors(pid)]

    def _descriptors(self, pid: int) -> set[str]:
        folder = self.root / str(pid) / "fd"
        targets = set()
        with contextlib.suppress(OSError):
            for number in os.listdir(folder):
                with contextlib.suppress(OSError):
                    targets.add(os.readlink(folder / number))
        return targets

    def environ(self, pid: int) -> dict[str, str]:
        """The environment a process was started with; empty when we may not read it."""
        try:
            raw = (self.root / str(pid) / "environ").read_bytes()
        except OSError:
            return {}
        pairs = (item.partition(b"=") for item in raw.split(b"\0") if b"=" in item)
        return {
            key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs
        }

    def command(self, pid: int) -> list[str]:
        """The command line of a process; empty when there is none."""
        try:
            raw = (self.root / str(pid) / "cmdline").read_bytes()
        except OSError:
            return []
        return [part.decode(errors="replace") for part in raw.rstrip(b"\0").split(b"\0")]


def since(age: float) -> str:
    """An age in seconds as a local start time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - age))
