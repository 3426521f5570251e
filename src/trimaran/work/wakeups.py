"""From a committed job to the runner in the same process, without waiting for its next look.

Runners of other processes find the job within their poll interval.
"""

from __future__ import annotations

import threading
import weakref
from typing import Protocol


class Wakeable(Protocol):
    """Somebody who looks for work when told to."""

    def wake(self) -> None:
        """Look now."""


_runners: weakref.WeakSet[Wakeable] = weakref.WeakSet()
_lock = threading.Lock()


def register(runner: Wakeable) -> None:
    """Adds a runner that is to be woken; it leaves by being forgotten or by ``forget``."""
    with _lock:
        _runners.add(runner)


def forget(runner: Wakeable) -> None:
    """Takes a runner off the list."""
    with _lock:
        _runners.discard(runner)


def wake_all() -> None:
    """Wakes every runner of this process."""
    with _lock:
        runners = list(_runners)
    for runner in runners:
        runner.wake()
