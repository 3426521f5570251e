"""Ends answers that drip.

A socket's time-out begins anew with every byte, so a service that sends one a
second is waited for without end, and a thread with it.  One thread a process
closes the connection of each such answer when the time of its block (see
``budget``) is over.  Only reading is watched: what is sent may be long.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection


class Reading:
    """One answer that is being read.

    Args:
        deadline: when it is ended, on the clock of ``time.monotonic``.

    Attributes:
        cut: it was ended.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.cut = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def begin(self, connected: socket.socket) -> None:
        """The answer comes over this connection."""
        with self._lock:
            self._socket = connected
        _dog.watch(self)

    def done(self) -> None:
        """The answer is complete, or has failed: the connection may be somebody else's."""
        with self._lock:
            self._socket = None

    @property
    def over(self) -> bool:
        """Nobody reads it any more."""
        return self._socket is None

    def end(self) -> None:
        """Ends it, unless it is over."""
        with self._lock:
            if self._socket is None:
                return
            self.cut = True
            with contextlib.suppress(OSError):
                # Not the TLS layer's: it would take its state away from the reading thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Dog:
    """The thread that looks at the clock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Reading]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def watch(self, reading: Reading) -> None:
        """Ends it at its deadline."""
        with self._changed:
            entry = (reading.deadline, next(self._numbers), reading)
            heapq.heappush(self._heap, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self._thread.start()
            elif self._heap[0] is entry:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._heap and self._heap[0][2].over:
                    heapq.heappop(self._heap)
                left = self._heap[0][0] - time.monotonic() if self._heap else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                reading = heapq.heappop(self._heap)[2]
            reading.end()


_dog = _Dog()


def _after_fork() -> None:
    # Threads do not survive a fork.
    global _dog
    _dog = _Dog()


os.register_at_fork(after_in_child=_after_fork)

_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextlib.contextmanager
def reading(deadline: float) -> Iterator[Reading]:
    """Watches the answers that are read in the block.

    Args:
        deadline: when they are ended, on the clock of ``time.monotonic``.
    """
    watched = Reading(deadline)
    mark = _reading.set(watched)
    try:
        yield watched
    finally:
        _reading.reset(mark)
        watched.done()


def _begin(connected: Any) -> None:
    watched = _reading.get()
    if watched is not None and connected is not None:
        watched.begin(connected)


class _Plain(HTTPConnection):
    def getresponse(self) -> Any:
        """Reads status and fields; the body comes later, in the same block."""
        _begin(self.sock)
        return super().getresponse()


class _Tls(HTTPSConnection):
    def getresponse(self) -> Any:
        """Reads status and fields; the body comes later, in the same block."""
        _begin(self.sock)
        return super().getresponse()


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Tls


#: for a pool manager's ``pool_classes_by_scheme``
POOLS = {"http": _PlainPool, "https": _TlsPool}
