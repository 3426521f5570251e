"""Operations on clusters, seen in the table of jobs.

An operation is a job whose key begins with its cluster's UUID, so that the
operations of one cluster can be put in order and found.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models import work
from trimaran.db.models.magnum import Cluster
from trimaran.db.models.work import Job, Lease
from trimaran.db.queries import work_jobs
from trimaran.db.upsert import changed

#: names in one statement
_CHUNK = 1000


def operation_key(cluster_uuid: str, rest: str) -> str:
    """Returns the key of an operation's job."""
    return f"{cluster_uuid}/{rest}"


def clusters_in_operation(session: Session, kinds: Collection[str]) -> set[str]:
    """Returns the UUIDs of the clusters that have an unfinished operation.

    Args:
        session: the unit of work.
        kinds: kinds of job that are operations.
    """
    query = sa.select(Job.key).where(Job.due_at.is_not(None), Job.kind.in_(list(kinds)))
    return {key.partition("/")[0] for key in session.scalars(query) if key}


def _unfinished(kinds: Collection[str], prefix: Any) -> sa.ColumnElement[bool]:
    """The condition for unfinished operations of a cluster; ``prefix`` begins their keys."""
    return sa.and_(
        Job.due_at.is_not(None),
        # The key of unfinished jobs only, and it has an index.
        Job.active_key.like(prefix),
        Job.kind.in_(list(kinds)),
    )


def in_operation(session: Session, kinds: Collection[str], cluster_uuid: str) -> bool:
    """Whether a cluster has an unfinished operation."""
    query = sa.select(Job.id).where(_unfinished(kinds, f"{cluster_uuid}/%"))
    return session.scalar(query.limit(1)) is not None


@functools.cache
def _at_rest(kinds: tuple[str, ...]) -> sa.Select[Any]:
    busy = sa.exists().where(_unfinished(kinds, sa.bindparam("prefix")))
    return sa.select(Cluster).where(Cluster.uuid == sa.bindparam("uuid"), ~busy)


def cluster_at_rest(session: Session, kinds: tuple[str, ...], cluster_uuid: str) -> Cluster | None:
    """Returns a cluster unless it is gone or has an unfinished operation.

    It is asked for each poll of a cluster, so the statement is built once.
    """
    values = {"uuid": cluster_uuid, "prefix": f"{cluster_uuid}/%"}
    return session.scalars(_at_rest(kinds), values).one_or_none()


def earlier_operation(
    session: Session, kinds: Collection[str], cluster_uuid: str, job_id: str
) -> str | None:
    """Returns the kind of an unfinished operation of this cluster that was asked for before.

    Args:
        session: the unit of work.
        kinds: kinds of job that are operations.
        cluster_uuid: whose.
        job_id: the operation that wants to run.
    """
    mine = sa.select(Job.created_at).where(Job.id == job_id).scalar_subquery()
    query = (
        sa.select(Job.kind)
        .where(
            _unfinished(kinds, f"{cluster_uuid}/%"),
            Job.id != job_id,
            sa.or_(
                Job.created_at < mine,
                sa.and_(Job.created_at == mine, Job.id < job_id),
            ),
        )
        .order_by(Job.created_at)
        .limit(1)
    )
    return session.scalar(query)


def last_taken(session: Session, names: Sequence[str]) -> dict[str, float]:
    """Returns when leases were last taken, by the database's clock.

    Args:
        session: the unit of work.
        names: of leases; those that were never taken are not in the answer.
    """
    found: dict[str, float] = {}
    for start in range(0, len(names), _CHUNK):
        query = sa.select(Lease.name, Lease.started_at)
        query = query.where(Lease.name.in_(names[start : start + _CHUNK]))
        found.update((name, taken) for name, taken in session.execute(query))
    return found


def find_operation(
    session: Session, kinds: Collection[str], operation_id: str, *, lock: bool = False
) -> Job | None:
    """Returns an operation, or None.

    Args:
        session: the unit of work.
        kinds: kinds of job that are operations.
        operation_id: its id.
        lock: whether to take the row's lock until the transaction ends.
    """
    query = sa.select(Job).where(Job.id == operation_id, Job.kind.in_(list(kinds)))
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def list_operations(
    session: Session,
    kinds: Collection[str],
    *,
    cluster_uuid: str | None = None,
    state: str | None = None,
    limit: int = 100,
) -> list[Job]:
    """Returns operations for an operator's eyes, newest first.

    Args:
        session: the unit of work.
        kinds: kinds of job to show.
        cluster_uuid: only this cluster's.
        state: only those in this state.
        limit: at most.
    """
    query = sa.select(Job).where(Job.kind.in_(list(kinds))).order_by(Job.id.desc()).limit(limit)
    if cluster_uuid is not None:
        query = query.where(Job.key.like(f"{cluster_uuid}/%"))
    if state is not None:
        query = query.where(Job.state == state)
    return list(session.scalars(query).all())


def count_operations(session: Session, kinds: Collection[str]) -> dict[tuple[str, str], int]:
    """Counts operations by kind and state, finished ones that are still kept included."""
    query = (
        sa.select(Job.kind, Job.state, sa.func.count())
        .where(Job.kind.in_(list(kinds)))
        .group_by(Job.kind, Job.state)
    )
    return {(kind, state): number for kind, state, number in session.execute(query)}


def end_operation(
    session: Session, operation_id: str, reason: str, payload: Mapping[str, Any]
) -> bool:
    """Ends an unfinished operation as failed; whoever runs it writes nothing more.

    Args:
        session: the unit of work.
        operation_id: its id.
        reason: why.
        payload: what the job keeps.

    Returns:
        False when it is finished already.
    """
    query = (
        sa.update(Job)
        .where(Job.id == operation_id, Job.state.in_(work.UNFINISHED))
        .values(
            state=work.FAILED,
            step="failed",
            payload=dict(payload),
            active_key=None,
            due_at=None,
            owner="",
            fence=Job.fence + 1,
            error=reason[: work_jobs.ERROR_LENGTH],
            finished_at=db_now(),
            updated_at=db_now(),
        )
    )
    return bool(changed(session, query))


def restart_operation(session: Session, operation_id: str, payload: Mapping[str, Any]) -> bool:
    """Queues a failed or cancelled operation again, from its beginning.

    Args:
        session: the unit of work.
        operation_id: its id.
        payload: what the handler is given.

    Returns:
        False when it has not failed.

    Raises:
        Conflict: one of the same key is under way.
    """
    if not work_jobs.retry(session, operation_id):
        return False
    query = sa.update(Job).where(Job.id == operation_id).values(step="", payload=dict(payload))
    return bool(changed(session, query))
