"""Functions that are run again and again, by one process of many each time.

When the next run is due is counted from the start of the last one, which is
kept beside the lease by the database's clock: it does not matter which process
did it, whether processes come and go, or that the interval was changed since.
A process that dies in the middle leaves an ended lease with its name on it,
and the next one to look takes over at once.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from trimaran import errors
from trimaran.db import Database
from trimaran.db.queries import work_leases
from trimaran.db.queries.work_leases import Taken
from trimaran.work import metrics
from trimaran.work.heartbeat import Heartbeat
from trimaran.work.leases import Lease

LOG = logging.getLogger(__name__)

#: Seconds between two looks at an interval that is 0 (switched off) or cannot be read.
OFF = 30.0


@dataclass(eq=False)
class Periodic:
    """A function with its interval.

    Attributes:
        name: of the lease (with "periodic/" before it) and in the metrics.
        interval: seconds between two starts, or a function that says so at
            each turn; 0 or less switches it off.
        fn: what is run; an exception is logged.
        leased: one process of all runs it each time; otherwise each does.
        run_at_start: False makes the very first run wait for one interval.
        last_look: monotonic time of the last attempt.
        next_look: monotonic time of the next one.
        running: a thread is at it.
    """

    name: str
    interval: float | Callable[[], float]
    fn: Callable[[], object]
    leased: bool
    run_at_start: bool
    last_look: float = 0.0
    next_look: float = 0.0
    running: bool = False

    def seconds(self) -> float:
        """The interval now; 0 when it is switched off or cannot be read."""
        try:
            return float(self.interval() if callable(self.interval) else self.interval)
        except Exception:
            LOG.exception("The interval of %s cannot be read", self.name)
            return 0.0


class Timetable:
    """Runs periodic functions when they are due, each in a thread of its own.

    Args:
        db: where the leases are.
        owner: the runner's name.
        ttl: seconds that a lease lasts without renewal.
        heartbeat: renews the leases of running functions.
        changed: called when a run has ended and ``run_due`` should be asked again.
    """

    def __init__(
        self,
        db: Database,
        owner: str,
        ttl: float,
        heartbeat: Heartbeat,
        changed: Callable[[], None],
    ) -> None:
        self._db = db
        self._owner = owner
        self._ttl = ttl
        self._heartbeat = heartbeat
        self._changed = changed
        self._lock = threading.Lock()
        self._entries: list[Periodic] = []

    def add(self, entry: Periodic) -> None:
        """Adds a function; names are unique."""
        with self._lock:
            if any(other.name == entry.name for other in self._entries):
                raise ValueError(f"a periodic function {entry.name} exists already")
            self._entries.append(entry)

    def begin(self) -> None:
        """Sets the first looks; called once when the runner starts."""
        now = time.monotonic()
        for entry in self._entries:
            late = not entry.leased and not entry.run_at_start
            entry.last_look = now
            entry.next_look = now + (entry.seconds() if late else 0.0)

    def reconsider(self) -> None:
        """Has intervals that became shorter take effect at once, not after the old ones."""
        with self._lock:
            entries = [entry for entry in self._entries if not entry.running]
        for entry in entries:
            interval = entry.seconds()
            if interval > 0:
                entry.next_look = min(entry.next_look, entry.last_look + interval)

    def run_due(self) -> float | None:
        """Starts what is due.

        Returns:
            Seconds until something else will be; None when nothing waits.
        """
        now = time.monotonic()
        waits: list[float] = []
        with self._lock:
            entries = list(self._entries)
        for entry in entries:
            if entry.running:
                continue
            if entry.next_look > now:
                waits.append(entry.next_look - now)
                continue
            entry.running = True
            name = f"periodic-{entry.name}"
            threading.Thread(target=self._turn, args=(entry,), name=name, daemon=True).start()
        return min(waits, default=None)

    def running(self) -> list[Periodic]:
        """The functions that run now (or look whether they should)."""
        return [entry for entry in self._entries if entry.running]

    def _turn(self, entry: Periodic) -> None:
        started = entry.last_look = time.monotonic()
        try:
            interval = entry.seconds()
            if interval <= 0:
                entry.next_look = started + OFF
            elif entry.leased:
                self._leased_turn(entry, interval)
            else:
                entry.next_look = started + interval
                self._call(entry)
        except errors.Unavailable:
            # Logged by the database layer; the function itself was not run.
            entry.next_look = time.monotonic() + min(5.0, self._ttl)
        except Exception:
            LOG.exception("Periodic function %s: its turn failed", entry.name)
            entry.next_look = time.monotonic() + OFF
        finally:
            entry.running = False
            self._changed()

    def _leased_turn(self, entry: Periodic, interval: float) -> None:
        name = f"periodic/{entry.name}"
        token = uuid.uuid4().hex
        asked = time.monotonic()
        taken: Taken = self._db.write(
            lambda session: work_leases.take(
                session,
                name,
                owner=self._owner,
                token=token,
                ttl=self._ttl,
                every=interval,
                first_at_once=entry.run_at_start,
            )
        )
        # A little apart, so that the processes do not all ask in the same moment.
        apart = random.uniform(0.005, min(1.0, 0.005 + interval * 0.05))  # noqa: S311
        if not taken.ok:
            # Looked at once an interval at least: another's run may end, or its process.
            entry.next_look = time.monotonic() + min(taken.wait, interval) + apart
            return
        lease = Lease(self._db, name, self._owner, token, self._ttl, asked)
        self._heartbeat.add_leases(lease)
        try:
            self._call(entry)
        finally:
            self._heartbeat.remove_leases(lease)
            lease.release()
            entry.next_look = max(asked + interval, time.monotonic()) + apart

    def _call(self, entry: Periodic) -> None:
        begun = time.monotonic()
        outcome = "error"
        try:
            entry.fn()
            outcome = "done"
        except errors.Unavailable as error:
            # Whoever could not reach the part has logged which, and why.
            LOG.warning("Periodic function %s: %s It runs again in its time", entry.name, error)
        except Exception:
            LOG.exception("Periodic function %s failed; it runs again in its time", entry.name)
        finally:
            metrics.PERIODIC_RUNS.labels(entry.name, outcome).inc()
            metrics.PERIODIC_SECONDS.labels(entry.name).observe(time.monotonic() - begun)
