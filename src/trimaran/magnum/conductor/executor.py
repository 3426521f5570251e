"""Runs recorded operations: in order, alone with their cluster, to an end that is seen."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import errors, work
from trimaran.db.models import work as states
from trimaran.db.queries import magnum as queries
from trimaran.db.queries import work_jobs
from trimaran.magnum.conductor.crew import Crew, infrastructure
from trimaran.magnum.conductor.handlers import HANDLERS
from trimaran.magnum.conductor.operation import Operation, tag_of, told
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import Cluster
from trimaran.magnum.operations import KINDS, action_in_status, kind_of, name_of
from trimaran.magnum.rpc import faults

LOG = logging.getLogger(__name__)

#: seconds that one run of an operation may take before another process tries
RUN_TIMEOUT = 3600.0


class Executor:
    """Runs operations.

    Args:
        crew: the conductor's parts.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def register(self, runner: work.Runner) -> None:
        """Makes a runner run operations."""
        for name in HANDLERS:
            runner.add_job(kind_of(name), self._run, timeout=RUN_TIMEOUT, on_failed=self._gave_up)

    def _run(self, job: work.JobRun) -> None:
        if job.step in ("failed", "refused"):
            raise work.Fail(job.payload["error"]["message"])
        if job.step == "done":
            return
        uuid = job.payload["cluster"]
        earlier = self._crew.db.read(lambda s: queries.earlier_operation(s, KINDS, uuid, job.id))
        if earlier is not None:
            raise work.Retry(0.5, f"{name_of(earlier)} was asked for before")
        with self._crew.alone_with(uuid):
            operation = self._operation(job)
            if operation is None:
                LOG.info("%s: cluster %s is gone", job.kind, uuid)
                return
            try:
                HANDLERS[operation.name](operation)
            except errors.TrimaranError as problem:
                if infrastructure(problem):
                    raise
                operation.refused(problem)

    def _operation(self, job: work.JobRun) -> Operation | None:
        payload = job.payload
        row = self._crew.db.read(lambda s: queries.find_cluster(s, payload["cluster"]))
        if row is None:
            return None
        context = self._crew.context(
            payload.get("context") or {}, payload.get("token"), tag_of(job)
        )
        return Operation(
            crew=self._crew,
            job=job,
            name=name_of(job.kind),
            cluster=Cluster.from_row(row, context),
            args=dict(payload.get("args") or {}),
            context=context,
        )

    def _gave_up(self, job: work.JobRun, reason: str) -> None:
        """Makes the failure of an operation visible that no handler could end."""
        if "error" in job.payload:
            return
        action = action_in_status(name_of(job.kind))
        text = f"The operation was given up: {reason}"
        uuid = job.payload["cluster"]
        context = RequestContext.from_dict(job.payload.get("context") or {})

        def give_up(session: Session) -> None:
            queries.fail_cluster(session, uuid, action, text)
            self._crew.notifier.record(
                session, context, uuid, action.lower(), "failure", operation=tag_of(job)
            )

        job.commit(give_up, "failed", error=told(errors.TrimaranError(text)), token=None)

    def wait(self, operation_id: str, timeout: float) -> None:
        """Waits for the end of an operation, for a caller that wants its outcome.

        One that is not over in time goes on; the caller is then told nothing
        else than that it was accepted.

        Args:
            operation_id: of the operation.
            timeout: seconds.

        Raises:
            TrimaranError: what the operation ended with.
        """
        limit = time.monotonic() + timeout
        pause = 0.05
        while True:
            job = self._crew.db.read(lambda s: work_jobs.show(s, operation_id))
            if job is None or job.state == states.DONE:
                return
            if job.state in states.FINISHED:
                raise _error(job.payload.get("error"), job.error)
            if time.monotonic() + pause > limit:
                return
            time.sleep(pause)
            pause = min(0.5, pause * 1.3)


def _error(error: Mapping[str, Any] | None, reason: str) -> errors.TrimaranError:
    if not error:
        return errors.TrimaranError(reason)
    cls = faults.KNOWN.get(error.get("code") or "") or faults.BY_STATUS.get(error["status"])
    return (cls or errors.TrimaranError)(error["message"], code=error.get("code"))
