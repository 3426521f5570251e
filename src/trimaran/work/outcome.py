"""From how a handler ended to what becomes of its job.

A job that fails for good first gets its ``on_failed`` call, still under its
lease: when the process dies in between, the next one finds the attempts used
up and makes the call again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from sqlalchemy.orm import Session

from trimaran import errors
from trimaran.db import Database
from trimaran.db.models import work
from trimaran.db.queries import work_jobs
from trimaran.work import metrics
from trimaran.work.jobs import backoff
from trimaran.work.kinds import Kind
from trimaran.work.run import JobRun
from trimaran.work.signals import Fail, HandedOver, LeaseLost, Retry

LOG = logging.getLogger(__name__)

#: Further attempts to make the on_failed call.
ON_FAILED_ATTEMPTS = 5


def settle(db: Database, owner: str, kind: Kind, run: JobRun) -> None:
    """Runs a job's handler and records the outcome.

    Args:
        db: where the job is.
        owner: the runner that claimed it.
        kind: of the job.
        run: the claim.
    """
    outcome = _Outcome(db, owner, kind, run)
    if run.attempt > run.max_attempts:
        outcome.failed(run.last_error or "the processes that ran it died")
        return
    try:
        kind.handler(run)
    except LeaseLost:
        LOG.warning("Job %s (%s) is another's by now; this run stops", run.id, run.kind)
        outcome.count("lost")
    except HandedOver:
        outcome.handed_over()
    except Retry as wish:
        outcome.later(wish)
    except Fail as failure:
        outcome.failed(failure.reason)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is its job's failure
        outcome.attempt_failed(error)
    else:
        outcome.done()


class _Outcome:
    def __init__(self, db: Database, owner: str, kind: Kind, run: JobRun) -> None:
        self._db = db
        self._owner = owner
        self._kind = kind
        self._run = run

    def count(self, outcome: str) -> None:
        metrics.RUNS.labels(self._run.kind, outcome).inc()

    def done(self) -> None:
        self._finish(work.DONE, "", "done")

    def handed_over(self) -> None:
        self._put_back(0, self._run.attempt - 1, None, "handed_over")

    def later(self, wish: Retry) -> None:
        if self._too_old():
            self.failed(f"gave up after {self._run.age:.0f} s: {wish.reason or 'not ready'}")
            return
        delay = max(0.0, wish.delay)
        self._put_back(delay, self._run.attempt - 1, wish.reason, "retry")

    def attempt_failed(self, error: Exception) -> None:
        run = self._run
        reason = f"{type(error).__name__}: {error}"
        LOG.warning(
            "Job %s (%s): attempt %d of %d failed at step %r",
            run.id,
            run.kind,
            run.attempt,
            run.max_attempts,
            run.step,
            exc_info=error,
        )
        if run.attempt >= run.max_attempts or self._too_old():
            self.failed(reason)
        else:
            self._put_back(self._pause(run.attempt), run.attempt, reason, "error")

    def failed(self, reason: str) -> None:
        run = self._run
        if self._kind.on_failed is not None:
            try:
                self._kind.on_failed(run, reason)
            except LeaseLost:
                self.count("lost")
                return
            except (Exception, HandedOver) as error:
                LOG.warning(
                    "Job %s (%s): its failure's own work failed", run.id, run.kind, exc_info=error
                )
                if run.attempt < run.max_attempts + ON_FAILED_ATTEMPTS:
                    # Counted as used up, so that the handler is not run again.
                    used = max(run.attempt, run.max_attempts)
                    self._put_back(self._pause(1), used, reason, "error")
                    return
        LOG.error("Job %s (%s) failed at step %r: %s", run.id, run.kind, run.step, reason)
        self._finish(work.FAILED, reason, "failed")

    def _too_old(self) -> bool:
        return self._kind.max_age is not None and self._run.age > self._kind.max_age

    @staticmethod
    def _pause(attempt: int) -> float:
        return backoff(attempt, random.random())  # noqa: S311 - no secret

    def _finish(self, state: str, error: str, outcome: str) -> None:
        run = self._run
        self._record(
            lambda session: work_jobs.finish(
                session, run.id, self._owner, run.fence, state=state, error=error
            ),
            outcome,
        )

    def _put_back(self, delay: float, attempt: int, error: str | None, outcome: str) -> None:
        run = self._run
        self._record(
            lambda session: work_jobs.put_back(
                session,
                run.id,
                self._owner,
                run.fence,
                delay=delay,
                attempt=attempt,
                error=error,
            ),
            outcome,
        )

    def _record(self, unit: Callable[[Session], bool], outcome: str) -> None:
        """Writes the outcome, however long the database takes to come back.

        The write is fenced, so it is either the truth or without effect; not
        writing it would run the job once more.
        """
        run = self._run
        pause = 0.5
        while True:
            try:
                if self._db.write(unit):
                    self.count(outcome)
                else:
                    run.mark_lost()
                    self.count("lost")
                    LOG.warning("Job %s (%s) ended here but is another's by now", run.id, run.kind)
                return
            except errors.Unavailable:
                if run.stopping:
                    raise
                time.sleep(pause)
                pause = min(5.0, pause * 2)
