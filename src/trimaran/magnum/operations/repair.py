"""What an operator does about an operation: run it again, or end it visibly.

Both are one transaction over the job and the cluster's row, so that neither
is seen without the other, and a conductor that still runs the operation can
write nothing more.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.models import work as states
from trimaran.db.queries import magnum as queries
from trimaran.errors import Conflict, NotFound
from trimaran.magnum.context import RequestContext
from trimaran.magnum.notifications import record
from trimaran.magnum.operations.record import KINDS, action_in_status, name_of

#: what stays of a payload when an operation begins anew
_ASKED = ("cluster", "args", "context", "token")


def retry(session: Session, operation_id: str) -> str:
    """Has a failed or cancelled operation run again from its beginning.

    The user's token went with the failure: a driver that cannot do without it
    fails again and says so.

    Args:
        session: of a writing unit.
        operation_id: its id.

    Returns:
        The cluster's UUID.

    Raises:
        NotFound: there is no such operation, or its cluster is gone.
        Conflict: it has not failed, or the cluster is in another state by now.
    """
    job, name, uuid = _find(session, operation_id)
    cluster = queries.find_cluster(session, uuid, lock=True)
    if cluster is None:
        raise NotFound(f"the cluster {uuid} of operation {operation_id} is gone")
    payload = {key: job.payload.get(key) for key in _ASKED}
    payload["retries"] = int(job.payload.get("retries") or 0) + 1
    status = cluster.status or ""
    if name == "cluster_create":
        if status not in ("CREATE_FAILED", "CREATE_IN_PROGRESS"):
            raise Conflict(f"the cluster {uuid} is {status} by now")
        begun = {"status": "CREATE_IN_PROGRESS", "status_reason": None}
        queries.update_cluster(session, uuid, begun)
        queries.update_nodegroups_of(session, uuid, begun)
    elif name != "cluster_delete" and status.startswith("DELETE_"):
        raise Conflict(f"the cluster {uuid} is {status} by now")
    if not queries.restart_operation(session, operation_id, payload):
        raise Conflict(f"operation {operation_id} is {job.state}: it has not failed")
    return uuid


def fail(session: Session, operation_id: str, reason: str) -> str | None:
    """Ends an operation; the cluster gets the status and the reason of its failure.

    An operation whose driver call is done, and whose end the driver never
    tells, is ended too, as long as the cluster is in progress.

    Args:
        session: of a writing unit.
        operation_id: its id.
        reason: for the user.

    Returns:
        The status that the cluster has now; None when its status is another
        operation's business, or the cluster is gone.

    Raises:
        NotFound: there is no such operation.
        Conflict: it is over.
    """
    job, name, uuid = _find(session, operation_id)
    action = action_in_status(name)
    cluster = queries.find_cluster(session, uuid, lock=True)
    error = {"status": 500, "code": None, "message": reason}
    payload = {**job.payload, "token": None, "error": error}
    if not queries.end_operation(session, operation_id, reason, payload) and not (
        job.state == states.DONE
        and cluster is not None
        and cluster.status == f"{action}_IN_PROGRESS"
    ):
        raise Conflict(f"operation {operation_id} is {job.state}, and its cluster not in progress")
    if cluster is None or queries.in_operation(session, KINDS, uuid):
        return None
    if not queries.fail_cluster(session, uuid, action, reason):
        return None
    context = RequestContext.from_dict(job.payload.get("context") or {})
    told = f"{operation_id}/{job.payload.get('retries') or 0}/operator"
    record(session, context, uuid, action.lower(), "failure", operation=told)
    return f"{action}_FAILED"


def _find(session: Session, operation_id: str) -> tuple[Any, str, str]:
    job = queries.find_operation(session, KINDS, operation_id, lock=True)
    if job is None:
        raise NotFound(f"there is no operation {operation_id}")
    return job, name_of(job.kind), str(job.payload["cluster"])
