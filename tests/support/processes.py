"""Real processes that tests may kill, stop and continue.

Each has a pipe of its own (a queue's lock would stay locked in a killed
process), so a test waits for events, not for time.  The processes come from a
fork server: they start in milliseconds and inherit no thread.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

#: seconds for what a busy machine does late, not never
PATIENCE = 120.0

_context = multiprocessing.get_context("forkserver")
_preloaded = ["trimaran.work", "trimaran.db.migrate", "tests.support.processes"]


def preload(module: str) -> None:
    """Has the fork server import a module once for all children; before the first one starts."""
    if module not in _preloaded:
        _preloaded.append(module)
    _context.set_forkserver_preload(_preloaded)


preload("tests.support.processes")


class Link:
    """A child's end: it tells, and it waits for a word of the test."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def tell(self, name: str, **data: Any) -> None:
        """Sends an event with the time and this process's id."""
        with self._lock:
            self._connection.send(Event(name, os.getpid(), time.monotonic(), data))

    def wait(self) -> Any:
        """Waits for the next word of the test; ends the process when the test is gone."""
        try:
            return self._connection.recv()
        except EOFError:
            os._exit(0)


@dataclass
class Event:
    """What a child told; ``at`` is the system-wide monotonic clock."""

    name: str
    pid: int
    at: float
    data: dict[str, Any]


@dataclass
class Child:
    """A running process."""

    process: Any
    connection: Connection
    pid: int
    gone: bool = False

    def say(self, word: Any) -> None:
        self.connection.send(word)

    def kill(self) -> None:
        """kill -9, and waits for its end."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.join(PATIENCE)
        assert self.process.exitcode == -signal.SIGKILL

    def stop(self) -> None:
        """Freezes it where it is; returns when each of its threads stands still.

        The signal is taken by one thread, which may have to wait for a processor
        before it stops the others: until then they run on, and may take a lock.
        """
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + PATIENCE
        while not all(state == "T" for state in _thread_states(self.pid)):
            assert time.monotonic() < deadline, f"process {self.pid} does not stop"
            time.sleep(0.001)

    def go_on(self) -> None:
        """Lets a frozen one run on."""
        os.kill(self.pid, signal.SIGCONT)


@dataclass
class Fleet:
    """The processes of one test; all are gone when its block ends."""

    children: list[Child] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def start(self, target: Callable[..., None], *args: Any) -> Child:
        """Starts ``target(link, *args)`` in a process of its own."""
        here, there = _context.Pipe()
        process = _context.Process(target=_main, args=(target, there, args), daemon=True)
        process.start()
        there.close()
        child = Child(process, here, process.pid)
        self.children.append(child)
        return child

    def until(self, condition: Callable[[list[Event]], Any], timeout: float = PATIENCE) -> Any:
        """Collects events until the condition is met; returns what it returned."""
        deadline = time.monotonic() + timeout
        while not (met := condition(self.events)):
            left = deadline - time.monotonic()
            assert left > 0, f"not in {timeout} s; events: {self.events[-30:]}"
            open_ends = {c.connection: c for c in self.children if not c.gone}
            for end in wait(list(open_ends), timeout=left):
                try:
                    self.events.append(end.recv())  # type: ignore[union-attr]
                except (EOFError, OSError):
                    open_ends[end].gone = True  # type: ignore[index]
        return met

    def named(self, name: str) -> list[Event]:
        """The events of a name so far."""
        return [event for event in self.events if event.name == name]

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_error: object) -> None:
        for child in self.children:
            # The fork server reaps: one may be gone before that is known here.
            with contextlib.suppress(ProcessLookupError):
                if child.process.is_alive():
                    os.kill(child.pid, signal.SIGKILL)
        for child in self.children:
            child.process.join(PATIENCE)
            child.connection.close()
            child.process.close()


def _thread_states(pid: int) -> Iterator[str]:
    """The state letter of each thread (proc(5), stat: the field after the name)."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end between the two looks.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield (task / "stat").read_text().rpartition(")")[2].split()[0]


def _main(target: Callable[..., None], connection: Connection, args: tuple[Any, ...]) -> None:
    target(Link(connection), *args)
