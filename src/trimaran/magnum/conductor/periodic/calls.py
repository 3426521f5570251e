"""Runs many calls at once, a bounded number, none for ever.

A thread cannot be ended from outside.  A call that takes too long is left to
itself: its place is given to another, its item is not called again before it
comes back, and when too many hang at once nothing new is begun, so that a
dead backend cannot eat the process.  Whoever asks for calls waits for them
only so long: a slow one keeps its place, not the others.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimaran.errors import TrimaranError
from trimaran.magnum.conductor import metrics

LOG = logging.getLogger(__name__)

#: seconds that a thread is kept for the next call
KEEP = 5.0


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        item: what it is about; never called twice at the same time.
        run: the call; what it raises is logged.
        end: called once: when the call has ended, took too long, or was not begun.
    """

    item: str
    run: Callable[[], None]
    end: Callable[[], None]


class Calls:
    """Bounded calls.

    Args:
        limit: at the same time.
        timeout: seconds that one may take.
        hanging: calls that may hang before nothing new is begun.
        task: what the metrics call it.
    """

    def __init__(
        self, limit: int, timeout: float, *, hanging: int = 64, task: str = "status"
    ) -> None:
        self.limit = limit
        self.task = task
        self._timeout = timeout
        self._most = hanging
        self._changed = threading.Condition()
        self._began: dict[str, tuple[float, Call]] = {}
        self._hanging: set[str] = set()
        # Threads that have nothing to do, and what the next of them is to do.
        self._idle = 0
        self._next: queue.SimpleQueue[Call] = queue.SimpleQueue()

    @property
    def hanging(self) -> frozenset[str]:
        """Items whose call has not come back in time."""
        with self._changed:
            return frozenset(self._hanging)

    def run(self, calls: Iterable[Call], *, patience: float) -> None:
        """Begins calls, each as soon as there is a place for it.

        Args:
            calls: what to call.
            patience: seconds to wait for the ends after the last has begun.
        """
        mine: set[str] = set()
        for call in calls:
            if self._begin(call):
                mine.add(call.item)
            else:
                self._end(call)
        limit = time.monotonic() + patience
        with self._changed:
            while mine & self._began.keys() and (left := limit - time.monotonic()) > 0:
                self._wait(left)

    def _begin(self, call: Call) -> bool:
        with self._changed:
            while len(self._began) >= self.limit:
                self._wait(self._timeout)
            if call.item in self._hanging or call.item in self._began:
                LOG.warning("%s: the call before has not come back yet", call.item)
                return False
            if len(self._hanging) >= self._most:
                LOG.error("%d calls hang; nothing new is begun", len(self._hanging))
                return False
            self._began[call.item] = (time.monotonic(), call)
            if self._idle:
                self._idle -= 1
                self._next.put(call)
                return True
        name = f"{self.task}-call"
        threading.Thread(target=self._work, args=(call,), name=name, daemon=True).start()
        return True

    def _work(self, call: Call) -> None:
        """Makes calls, one after the other, until there is none for a while."""
        while True:
            self._call(call)
            try:
                call = self._next.get(timeout=KEEP)
            except queue.Empty:
                with self._changed:
                    if self._idle:
                        self._idle -= 1
                        return
                # Not idle any more: a call was put there for us in this moment.
                call = self._next.get()

    def _wait(self, longest: float) -> None:
        """Waits for a change; calls that took too long lose their place."""
        now = time.monotonic()
        late = [call for began, call in self._began.values() if now - began >= self._timeout]
        for call in late:
            LOG.warning("%s: no answer within %s s; left to itself", call.item, self._timeout)
            del self._began[call.item]
            self._hanging.add(call.item)
            metrics.POLLS.labels(self.task, "late").inc()
            self._end(call)
        if not late:
            oldest = min(began for began, _ in self._began.values())
            self._changed.wait(max(0.01, min(longest, oldest + self._timeout - now)))

    def _call(self, call: Call) -> None:
        outcome, began = "error", time.monotonic()
        try:
            call.run()
            outcome = "done"
        except TrimaranError as problem:
            LOG.warning("%s: %s; tried again in the next cycle", call.item, problem)
        except BaseException:  # whatever a driver raises; the thread is needed again
            LOG.exception("%s: failed; tried again in the next cycle", call.item)
        with self._changed:
            in_time = self._began.pop(call.item, None) is not None
            self._hanging.discard(call.item)
            self._idle += 1
            self._changed.notify_all()
        if in_time:
            metrics.POLLS.labels(self.task, outcome).inc()
            metrics.POLL_SECONDS.labels(self.task).observe(time.monotonic() - began)
            self._end(call)

    @staticmethod
    def _end(call: Call) -> None:
        try:
            call.end()
        except Exception:
            LOG.exception("%s: its end could not be noted", call.item)
