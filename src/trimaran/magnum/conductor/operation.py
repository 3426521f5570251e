"""One operation while it runs: what handlers are given, and how they end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from sqlalchemy.orm import Session

from trimaran import errors, work
from trimaran.db.queries import magnum as queries
from trimaran.magnum.conductor.crew import Crew, infrastructure
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers import Driver
from trimaran.magnum.objects import Cluster, NodeGroup
from trimaran.magnum.statuses import CHANGEABLE as CHANGEABLE
from trimaran.magnum.statuses import COMPLETE as COMPLETE
from trimaran.magnum.statuses import refusal as refusal_text

LOG = logging.getLogger(__name__)

#: operations whose caller waits for the outcome
AWAITED = frozenset({"cluster_upgrade", "rotate_ca_certificate", "credential_rotate"})


def refusal(text: str) -> errors.BadRequest:
    """Returns the error of an operation that the cluster's state does not permit."""
    return errors.BadRequest(text, code="NotSupported")


@dataclass
class Operation:
    """An operation that runs, alone with its cluster.

    Attributes:
        name: of the RPC method.
        cluster: as it is in the database now.
        args: as recorded.
        context: of the user, with database and cloud.
    """

    crew: Crew
    job: work.JobRun
    name: str
    cluster: Cluster
    args: dict[str, Any]
    context: RequestContext

    @property
    def step(self) -> str:
        """The last step that an earlier run reached, empty at first."""
        return self.job.step

    @property
    def noted(self) -> dict[str, Any]:
        """What earlier steps noted."""
        return self.job.payload

    def driver(self) -> Driver:
        """Returns the cluster's driver.

        Raises:
            BadRequest: there is none.
        """
        return self.crew.drivers.for_template(self.cluster.cluster_template)

    def nodegroup(self) -> NodeGroup:
        """Returns the node group that the operation is about.

        Raises:
            NotFound: it is gone.
        """
        return NodeGroup.get(self.context, self.cluster.uuid, self.args["nodegroup"])

    def allow(self, statuses: frozenset[str], doing: str) -> None:
        """Checks the cluster's status as it is now.

        Raises:
            BadRequest: not one of these.
        """
        if self.noted.get("retries"):
            # Its own failure is not in its way (an operator wants it again).
            statuses = statuses | {"UPDATE_FAILED"}
        if self.cluster.status not in statuses:
            raise refusal(refusal_text(doing, self.cluster.status))

    def note(
        self,
        step: str,
        write: Callable[[Session], Any] | None = None,
        *,
        tell: tuple[str, str] | None = None,
        **updates: Any,
    ) -> None:
        """Notes a step; what is written with it takes effect only while the job is ours.

        Args:
            step: its name.
            write: changes of the database that belong to it.
            tell: action and outcome of the notification that belongs to it.
            updates: what later steps need.
        """

        def unit(session: Session) -> None:
            if write is not None:
                write(session)
            if tell is not None:
                self.crew.notifier.record(
                    session, self.context, self.cluster.uuid, *tell, operation=tag_of(self.job)
                )

        self.job.commit(unit, step, **updates)

    def failed(
        self,
        action: str,
        problem: Exception,
        *,
        nodegroups: Mapping[str, str] | None = None,
        undo: Callable[[Session], Any] | None = None,
    ) -> NoReturn:
        """Ends the operation with a failure that the user sees.

        Args:
            action: CREATE, UPDATE or DELETE.
            problem: what happened; a fault of our own parts is raised again,
                so that the operation is run later.
            nodegroups: see ``queries.fail_cluster``.
            undo: restores what was written before, in the same transaction.
        """
        if infrastructure(problem) or isinstance(problem, work.Retry):
            raise problem
        reason = reason_of(problem)
        LOG.error(
            "%s of cluster %s failed: %s",
            self.name,
            self.cluster.uuid,
            reason,
            exc_info=None if isinstance(problem, errors.TrimaranError) else problem,
        )

        def write(session: Session) -> None:
            if undo is not None:
                undo(session)
            queries.fail_cluster(session, self.cluster.uuid, action, reason, nodegroups=nodegroups)

        self.note(
            "failed", write, tell=(action.lower(), "failure"), error=told(problem), token=None
        )
        raise work.Fail(reason)

    def refused(self, problem: errors.TrimaranError, *, action: str = "update") -> NoReturn:
        """Ends the operation without a change.

        A caller that waits is told; otherwise the reason is left on the
        cluster, since nothing else could tell its user (F-2).
        """
        LOG.warning("%s of cluster %s refused: %s", self.name, self.cluster.uuid, problem)

        def write(session: Session) -> None:
            if self.name not in AWAITED:
                reason = {"status_reason": problem.message}
                queries.update_cluster(session, self.cluster.uuid, reason)

        self.note("refused", write, tell=(action, "failure"), error=told(problem), token=None)
        raise work.Fail(problem.message)

    def done(self, write: Callable[[Session], Any] | None = None) -> None:
        """Notes that nothing is left to do, and drops the user's token."""
        self.note("done", write, token=None)


def tag_of(job: work.JobRun) -> str:
    """Names an operation in notifications; when an operator has it run again, it is another."""
    return f"{job.id}/{job.payload['retries']}" if job.payload.get("retries") else job.id


def reason_of(problem: Exception) -> str:
    """Returns what is written into ``status_reason``.

    An error of the cloud brings the service's own words, which its user would
    have seen as well when asking the service directly.
    """
    said = getattr(problem, "remote_message", None)
    text = str(problem) or type(problem).__name__
    return f"{text.rstrip('.')}: {said}" if said else text


def told(problem: Exception) -> dict[str, Any]:
    """Returns an error as a job keeps it, for a caller that waits for the outcome."""
    if isinstance(problem, errors.TrimaranError):
        return {
            "status": problem.status,
            "code": problem.code,
            "message": problem.message,
        }
    return {"status": 500, "code": None, "message": reason_of(problem)}
