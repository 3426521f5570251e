"""Runs many calls at once, a bounded number, none for ever.

A thread cannot be ended from outside.  A call that takes too long is left to
itself: its place is given to another, its item is not called again before it
comes back, and when too many hang at once nothing new is begun, so that a
dead backend cannot eat the process.  Whoever asks for calls waits for them
only so long: a slow one keeps its place, not the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimaran.errors import TrimaranError
from trimaran.magnum.conductor import metrics

LOG = logging.getLogger(__name__)


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
                call.end()
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
        threading.Thread(
            target=self._call, args=(call,), name=f"call-{call.item[-12:]}", daemon=True
        ).start()
        return True

    def _wait(self, longest: float) -> None:
        """Waits for a change; calls that took too long lose their place."""
        now = time.monotonic()
        late = [call for began, call in self._began.values() if now - began >= self._timeout]
        for call in late:
            LOG.warning("%s: no answer within %s s; left to itself", call.item, self._timeout)
            del self._began[call.item]
            self._hanging.add(call.item)
            metrics.POLLS.labels(self.task, "late").inc()
            call.end()
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
        except Exception:
            LOG.exception("%s: failed; tried again in the next cycle", call.item)
        finally:
            with self._changed:
                in_time = self._began.pop(call.item, None) is not None
                self._hanging.discard(call.item)
                self._changed.notify_all()
            if in_time:
                metrics.POLLS.labels(self.task, outcome).inc()
                metrics.POLL_SECONDS.labels(self.task).observe(time.monotonic() - began)
                call.end()
