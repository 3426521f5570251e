"""What every runner does beside its service's work: delete the old, measure the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trimaran.config.common import Own
from trimaran.db import Database
from trimaran.db.queries import work_jobs, work_leases
from trimaran.work import metrics

DAY = 86400.0
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


def add_to(schedule: _Schedule, db: Database, kinds: frozenset[str], own: Own) -> None:
    """Registers the periodic functions of this module.

    Args:
        schedule: the runner.
        db: its database.
        kinds: the job kinds that it has handlers for.
        own: how long finished jobs are kept.
    """
    done, failed = own.work_keep_days * DAY, own.work_keep_failed_days * DAY
    schedule.periodic(
        "work.purge",
        PURGE_EVERY,
        lambda: purge(db, keep_done=done, keep_failed=failed),
        run_at_start=False,
    )
    if kinds:
        schedule.periodic("work.measure", MEASURE_EVERY, Measure(db, kinds), leased=False)


def purge(db: Database, *, keep_done: float, keep_failed: float) -> tuple[int, int]:
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
