"""Operations on clusters, seen in the table of jobs.

An operation is a job whose key begins with its cluster's UUID, so that the
operations of one cluster can be put in order and found.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.models.work import Job


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


def in_operation(session: Session, kinds: Collection[str], cluster_uuid: str) -> bool:
    """Whether a cluster has an unfinished operation."""
    query = sa.select(Job.id).where(
        Job.due_at.is_not(None), Job.kind.in_(list(kinds)), Job.key.like(f"{cluster_uuid}/%")
    )
    return session.scalar(query.limit(1)) is not None


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
            Job.due_at.is_not(None),
            Job.kind.in_(list(kinds)),
            Job.key.like(f"{cluster_uuid}/%"),
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
