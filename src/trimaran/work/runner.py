"""The runner: one a process, it claims jobs, runs them and hands them over when it stops.

Threads: a dispatcher that looks for work and starts it, a heartbeat that keeps
the leases, and one thread for each job or periodic function that is running,
``work_concurrency`` jobs at most.  An idle runner asks the database one
question a poll.  All state that matters is in the database, so a process may
be killed at any moment: its jobs are claimed by others when their leases end.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from trimaran import errors
from trimaran.config.common import Own
from trimaran.db import Database
from trimaran.db.queries import work_jobs
from trimaran.work import housekeeping, metrics, wakeups
from trimaran.work.heartbeat import Heartbeat
from trimaran.work.kinds import Handler, Kind, OnFailed
from trimaran.work.leases import Leases, acquire_many, default_owner
from trimaran.work.outcome import settle
from trimaran.work.periodic import Periodic, Timetable
from trimaran.work.run import JobRun

LOG = logging.getLogger(__name__)

H = TypeVar("H", bound=Handler)

#: Seconds that a run may take where its kind says nothing.
RUN_TIMEOUT = 3600.0


class Runner:
    """Runs the background work of one process.

    Args:
        db: where jobs and leases are.
        own: concurrency, lease time, poll interval and shutdown time.
        name: of the service, for operators ("magnum-conductor").
    """

    def __init__(self, db: Database, *, own: Own, name: str) -> None:
        self._db = db
        self._own = own
        self.name = name
        # Fresh with each start: a restarted process is not the owner of its former jobs.
        self.owner = f"{name}@{default_owner()}:{uuid.uuid4().hex[:8]}"
        self._kinds: dict[str, Kind] = {}
        self._lock = threading.Condition()
        self._running: dict[str, JobRun] = {}
        self._woken = False
        # The last claim filled all places: there may be more, claim without asking.
        self._more = False
        self._started = False
        self._stopping = False
        self._ttl = float(own.work_lease_seconds)
        self._heartbeat = Heartbeat(db, self.owner, self._ttl)
        self._timetable = Timetable(db, self.owner, self._ttl, self._heartbeat, self.wake)
        self._dispatcher = threading.Thread(target=self._dispatch, name="work-runner", daemon=True)

    def job(
        self,
        kind: str,
        *,
        timeout: float = RUN_TIMEOUT,
        max_age: float | None = None,
        limit: int | None = None,
        on_failed: OnFailed | None = None,
    ) -> Callable[[H], H]:
        """Decorator form of ``add_job``."""

        def register(handler: H) -> H:
            self.add_job(
                kind, handler, timeout=timeout, max_age=max_age, limit=limit, on_failed=on_failed
            )
            return handler

        return register

    def add_job(
        self,
        kind: str,
        handler: Handler,
        *,
        timeout: float = RUN_TIMEOUT,
        max_age: float | None = None,
        limit: int | None = None,
        on_failed: OnFailed | None = None,
    ) -> None:
        """Says who runs the jobs of a kind; before ``start``.

        Args:
            kind: as given to ``enqueue``.
            handler: called with a JobRun, maybe more than once for a job.
                Returning ends the job; ``Retry`` and ``Fail`` say otherwise;
                any other exception is a failed attempt.
            timeout: seconds that one run may take before its job is given to
                another process.
            max_age: seconds since it was asked for after which a job that
                would be run again fails instead; None for no end.
            limit: runs of this kind at the same time in this process.
            on_failed: called with the JobRun and the reason before the job
                becomes failed, at least once, also when a process died with it.
        """
        if self._started:
            raise RuntimeError("job kinds are added before the runner is started")
        if kind in self._kinds:
            raise ValueError(f"job kind {kind} has a handler already")
        self._kinds[kind] = Kind(kind, handler, timeout, max_age, limit, on_failed)

    def periodic(
        self,
        name: str,
        interval: float | Callable[[], float],
        fn: Callable[[], object],
        *,
        leased: bool = True,
        run_at_start: bool = True,
    ) -> None:
        """Has a function run again and again; before ``start``.

        Args:
            name: unique; processes that share the work use the same one.
            interval: seconds from start to start, or a function that is asked
                at each turn; 0 or less switches it off.
            fn: what to run; what it raises is logged.
            leased: one process of all runs it each time; False: each process does.
            run_at_start: False makes the very first run wait for one interval.
        """
        if self._started:
            raise RuntimeError("periodic functions are added before the runner is started")
        self._timetable.add(Periodic(name, interval, fn, leased, run_at_start))

    def share(
        self, names: Sequence[str], *, limit: int | None = None, every: float | None = None
    ) -> Leases:
        """Takes a share of many items and keeps it until ``give_up`` or the runner's stop.

        Args:
            names: of the items.
            limit: at most so many.
            every: seconds that must have passed since an item was last taken.

        Returns:
            What was taken; to be ended with ``give_up``.
        """
        leases = acquire_many(self._db, names, self.owner, self._ttl, limit=limit, every=every)
        if leases.names:
            self._heartbeat.add_leases(leases)
        return leases

    def give_up(self, leases: Leases) -> None:
        """Ends a share."""
        self._heartbeat.remove_leases(leases)
        leases.release()

    def start(self) -> None:
        """Starts; returns at once.  The database need not answer yet."""
        if self._started:
            raise RuntimeError("the runner is started already")
        housekeeping.add_to(self, self._db, frozenset(self._kinds), self._own)
        self._started = True
        self._heartbeat.start()
        self._timetable.begin()
        wakeups.register(self)
        self._dispatcher.start()

    def wake(self) -> None:
        """Makes it look for work now; cheap, from any thread."""
        with self._lock:
            self._woken = True
            self._lock.notify_all()

    def reconsider(self) -> None:
        """Looks at the intervals of periodic functions again; to be called when they changed."""
        self._timetable.reconsider()
        self.wake()

    def stop(self, timeout: float | None = None) -> None:
        """Stops: claims nothing more, lets runs end, hands over those that do not.

        A handler that notes a step meanwhile is ended there.  What is left
        after the time-out may be claimed by another process at once; its
        thread here can write nothing more through its JobRun.

        Args:
            timeout: seconds; None for the ``shutdown_timeout`` option.
        """
        limit = time.monotonic() + (self._own.shutdown_timeout if timeout is None else timeout)
        wakeups.forget(self)
        with self._lock:
            already = self._stopping or not self._started
            self._stopping = True
            for run in self._running.values():
                run.ask_to_stop()
            self._lock.notify_all()
        if already:
            return
        self._dispatcher.join(timeout=max(0.0, limit - time.monotonic()))
        with self._lock:
            self._lock.wait_for(self._idle, timeout=max(0.0, limit - time.monotonic()))
            left = list(self._running.values())
        self._hand_over(left)
        self._heartbeat.stop()
        for leases in self._heartbeat.named():
            leases.release(done=False)

    def _idle(self) -> bool:
        return not self._running and not self._timetable.running()

    def _hand_over(self, runs: list[JobRun]) -> None:
        for run in runs:
            run.mark_lost()
            try:
                self._db.write(
                    lambda session, run=run: work_jobs.put_back(  # type: ignore[misc]
                        session, run.id, self.owner, run.fence, delay=0, attempt=run.attempt - 1
                    )
                )
            except errors.Unavailable:
                LOG.warning("Job %s could not be handed over; its lease ends by itself", run.id)
            else:
                metrics.RUNS.labels(run.kind, "handed_over").inc()
                LOG.info("Job %s (%s) handed over at step %r", run.id, run.kind, run.step)

    def _dispatch(self) -> None:
        failures = 0
        while True:
            wait = self._own.work_poll_seconds * random.uniform(0.9, 1.1)  # noqa: S311
            try:
                wait = self._claim(wait)
                failures = 0
            except errors.Unavailable:
                failures += 1
                wait = min(5.0, wait * 2**failures)
            except Exception:
                LOG.exception("Looking for work failed")
            due = self._timetable.run_due() if not self._stopping else None
            if due is not None:
                wait = min(wait, due)
            with self._lock:
                self._lock.wait_for(lambda: self._woken or self._stopping, timeout=wait)
                self._woken = False
                if self._stopping:
                    return

    def _claim(self, poll: float) -> float:
        """Claims and starts what is due; returns seconds until the next look."""
        with self._lock:
            free = self._own.work_concurrency - len(self._running)
            kinds, room = self._open_kinds()
            mine = set(self._running)
        if free <= 0 or not kinds:
            return poll  # a run's end wakes us
        if not self._more:
            due = self._db.read(lambda session: work_jobs.seconds_to_next(session, kinds))
            if due is None or due > 0:
                return poll if due is None else min(poll, due + 0.005)
        claimed = self._db.write(
            lambda session: work_jobs.claim(
                session,
                owner=self.owner,
                kinds=kinds,
                limit=free,
                ttl=self._ttl,
                room=room,
                without=mine,
            )
        )
        self._more = len(claimed) == free
        for item in claimed:
            self._begin(JobRun(self._db, item, owner=self.owner, ttl=self._ttl))
        # Slots are left: look at once when the next job will be due.
        return 0.0 if 0 < len(claimed) < free else poll

    def _open_kinds(self) -> tuple[list[str], dict[str, int]]:
        """The kinds that may start now, and how many of those that have a limit."""
        counts = Counter(run.kind for run in self._running.values())
        room = {
            name: kind.limit - counts[name]
            for name, kind in self._kinds.items()
            if kind.limit is not None
        }
        return [name for name in self._kinds if room.get(name, 1) > 0], room

    def _begin(self, run: JobRun) -> None:
        kind = self._kinds[run.kind]
        with self._lock:
            self._running[run.id] = run
            if self._stopping:
                run.ask_to_stop()
        self._heartbeat.add_run(run, kind.timeout)
        metrics.RUNNING.labels(run.kind).inc()
        name = f"work-{run.kind}-{run.id[-8:]}"
        threading.Thread(target=self._execute, args=(kind, run), name=name, daemon=True).start()

    def _execute(self, kind: Kind, run: JobRun) -> None:
        try:
            settle(self._db, self.owner, kind, run)
        except Exception:
            LOG.exception("Job %s (%s): its end could not be recorded", run.id, run.kind)
        finally:
            self._heartbeat.remove_run(run)
            metrics.RUNNING.labels(run.kind).dec()
            metrics.SECONDS.labels(run.kind).observe(time.monotonic() - run.started)
            with self._lock:
                self._running.pop(run.id, None)
                self._woken = True
                self._lock.notify_all()
