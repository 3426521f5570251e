"""Runs many calls at once, a bounded number, none for ever.

A thread cannot be ended from outside.  A call that takes too long is left to
itself: its place is given to another, its item is not called again before it
comes back, and when too many hang at once nothing new is begun, so that a
dead backend cannot eat the process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

LOG = logging.getLogger(__name__)


class Calls:
    """Bounded calls.

    Args:
        limit: at the same time.
        timeout: seconds that one may take.
        hanging: calls that may hang before nothing new is begun.
    """

    def __init__(self, limit: int, timeout: float, *, hanging: int = 64) -> None:
        self._limit = limit
        self._timeout = timeout
        self._most = hanging
        self._changed = threading.Condition()
        self._began: dict[str, float] = {}
        self._hanging: set[str] = set()

    @property
    def hanging(self) -> frozenset[str]:
        """Items whose call has not come back in time."""
        with self._changed:
            return frozenset(self._hanging)

    def run(self, calls: Iterable[tuple[str, Callable[[], None]]]) -> None:
        """Makes the calls; returns when each has ended or taken too long.

        Args:
            calls: item and what to call for it; what a call raises is logged.
        """
        mine: set[str] = set()
        for item, call in calls:
            with self._changed:
                while len(self._began) >= self._limit:
                    self._wait()
                if item in self._hanging:
                    LOG.warning("%s: the call before has not come back yet", item)
                    continue
                if len(self._hanging) >= self._most:
                    LOG.error("%d calls hang; nothing new is begun", len(self._hanging))
                    break
                self._began[item] = time.monotonic()
                mine.add(item)
            threading.Thread(
                target=self._call, args=(item, call), name=f"call-{item[-12:]}", daemon=True
            ).start()
        with self._changed:
            while mine & self._began.keys():
                self._wait()

    def _wait(self) -> None:
        """Waits for a change; calls that took too long lose their place."""
        now = time.monotonic()
        late = [item for item, began in self._began.items() if now - began >= self._timeout]
        for item in late:
            LOG.warning("%s: no answer within %s s; left to itself", item, self._timeout)
            del self._began[item]
            self._hanging.add(item)
        if not late:
            oldest = min(self._began.values())
            self._changed.wait(max(0.01, oldest + self._timeout - now))

    def _call(self, item: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            LOG.exception("%s: failed; tried again in the next cycle", item)
        finally:
            with self._changed:
                self._began.pop(item, None)
                self._hanging.discard(item)
                self._changed.notify_all()
