"""What every runner does beside its service's work: delete the old, measure the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trimaran.db import Database
from trimaran.db.queries import work_jobs, work_leases
from trimaran.work import metrics

DAY = 86400.0
#: Seconds that done and cancelled jobs are kept for operators to see.
KEEP_DONE = 7 * DAY
#: Seconds that failed jobs are kept.
KEEP_FAILED = 30 * DAY
#: Seconds that a lease nobody takes any more is kept.
KEEP_LEASES = 30 * DAY
PURGE_EVERY = 3600.0
MEASURE_EVERY = 30.0
_BATCH = 500


class _Schedule(Protocol):
    def periodic(
        self,
        name: str,
        interval: float | Callable[[], float],
        fn: Callable[[], object],
        *,
        leased: bool = True,
        run_at_start: bool = True,
    ) -> None: ...


def add_to(schedule: _Schedule, db: Database, kinds: frozenset[str]) -> None:
    """Registers the periodic functions of this module.

    Args:
        schedule: the runner.
        db: its database.
        kinds: the job kinds that it has handlers for.
    """
    schedule.periodic("work.purge", PURGE_EVERY, lambda: purge(db), run_at_start=False)
    if kinds:
        schedule.periodic("work.measure", MEASURE_EVERY, Measure(db, kinds), leased=False)


def purge(
    db: Database, *, keep_done: float = KEEP_DONE, keep_failed: float = KEEP_FAILED
) -> tuple[int, int]:
    """Deletes finished jobs and forgotten leases, in small transactions.

    Args:
        db: where they are.
        keep_done: seconds that done and cancelled jobs are kept.
        keep_failed: seconds that failed jobs are kept.

    Returns:
        How many jobs and leases went.
    """
    jobs = _all(
        lambda: db.write(
            lambda session: work_jobs.purge(
                session, done_after=keep_done, failed_after=keep_failed, limit=_BATCH
            )
        )
    )
    leases = _all(
        lambda: db.write(
            lambda session: work_leases.purge(session, after=KEEP_LEASES, limit=_BATCH)
        )
    )
    return jobs, leases


def _all(batch: Callable[[], int]) -> int:
    total = 0
    while True:
        number = batch()
        total += number
        if number < _BATCH:
            return total


class Measure:
    """Reads the queue's length and age into the metrics.

    Args:
        db: where the jobs are.
        kinds: what to measure.
    """

    def __init__(self, db: Database, kinds: frozenset[str]) -> None:
        self._db = db
        self._kinds = kinds

    def __call__(self) -> None:
        """Measures once."""
        found = {
            (kind, state): (number, age)
            for kind, state, number, age in self._db.read(work_jobs.waiting)
        }
        for kind in self._kinds:
            for state in ("queued", "running"):
                number, age = found.get((kind, state), (0, 0.0))
                metrics.JOBS.labels(kind, state).set(number)
                if state == "queued":
                    metrics.QUEUE_AGE.labels(kind).set(max(0.0, age))
