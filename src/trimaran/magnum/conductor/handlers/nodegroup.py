"""Create, update and delete of node groups (spec/magnum.md 6.6).

The guard knows the cluster's state too: an operation on a node group of a
cluster that is being made or removed would overwrite that state, and a
deletion would be forgotten (F-17).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from trimaran import errors
from trimaran.db.queries import magnum as queries
from trimaran.magnum.conductor.handlers.cluster import IN_PROGRESS
from trimaran.magnum.conductor.operation import CHANGEABLE, Operation, refusal
from trimaran.magnum.objects import NodeGroup

_CLOSED = ("CREATE_", "DELETE_")
_OPEN = "CREATE_COMPLETE"


def _guard(op: Operation, group: NodeGroup | None) -> None:
    status = op.cluster.status or ""
    if status != _OPEN and status.startswith(_CLOSED):
        raise refusal(f'{op.name} when cluster status is "{status}" is not supported.')
    if group is not None and group.status and group.status not in CHANGEABLE:
        raise refusal(f'{op.name} when nodegroup status is "{group.status}" is not supported.')


def _begin(op: Operation, group: NodeGroup, changes: dict[str, Any], **noted: Any) -> None:
    def write(session: Session) -> None:
        queries.update_cluster(session, op.cluster.uuid, IN_PROGRESS)
        queries.update_nodegroup(session, group.uuid, changes)

    op.note("marked", write, **noted)
    op.cluster.refresh()
    group.refresh()


def _call(
    op: Operation,
    group: NodeGroup,
    call: Callable[[], None],
    failed: str,
    undo: dict[str, Any] | None = None,
) -> None:
    try:
        call()
        op.cluster.save()
        _save(group)
    except Exception as problem:  # noqa: BLE001 - whatever a driver raises is for the user
        op.failed(
            "UPDATE",
            problem,
            nodegroups={group.uuid: failed},
            undo=(lambda session: queries.update_nodegroup(session, group.uuid, undo))
            if undo
            else None,
        )
    op.done()


def _save(group: NodeGroup) -> None:
    try:
        group.save()
    except errors.NotFound:
        # A driver may remove the row at once.
        return


def create(op: Operation) -> None:
    """Has the driver begin a node group; its row is there already."""
    group = op.nodegroup()
    if op.step == "":
        try:
            _guard(op, None)
        except errors.BadRequest as problem:
            why = {"status": "CREATE_FAILED", "status_reason": problem.message}
            op.crew.db.write(lambda s: queries.update_nodegroup(s, group.uuid, why))
            op.refused(problem)
        _begin(op, group, {"status": "CREATE_IN_PROGRESS", "status_reason": None})
    _call(
        op,
        group,
        lambda: op.driver().create_nodegroup(op.context, op.cluster, group),
        "CREATE_FAILED",
    )


def update(op: Operation) -> None:
    """Changes limits, labels or taints of a node group and has the driver apply them."""
    group = op.nodegroup()
    changes = dict(op.args.get("changes") or {})
    if op.step == "":
        try:
            _guard(op, group)
        except errors.BadRequest as problem:
            op.refused(problem)
        old = {name: group.value(name) for name in changes}
        _begin(op, group, changes | IN_PROGRESS, old=old)
    _call(
        op,
        group,
        lambda: op.driver().update_nodegroup(op.context, op.cluster, group),
        "UPDATE_FAILED",
        undo=op.noted.get("old"),
    )


def delete(op: Operation) -> None:
    """Has the driver remove a node group; its row goes when the nodes are gone (F-16)."""
    try:
        group = op.nodegroup()
    except errors.NotFound:
        op.done()
        return
    if op.step == "":
        try:
            _guard(op, None)
        except errors.BadRequest as problem:
            op.refused(problem)
        _begin(op, group, {"status": "DELETE_IN_PROGRESS", "status_reason": None})
    _call(
        op,
        group,
        lambda: op.driver().delete_nodegroup(op.context, op.cluster, group),
        "DELETE_FAILED",
    )
