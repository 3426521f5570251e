"""Clusters: lookups, listings, the quota, and changes that respect a status.

A listing never reads node groups row by row: their sums are one statement for
the whole page (``node_totals``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster, NodeGroup, ProjectGate, Quota, utcnow
from trimaran.db.queries.magnum_admin import now
from trimaran.db.queries.magnum_paging import (
    EVERYTHING,
    Page,
    Scope,
    as_uuid,
    columns_of_one,
    one,
    paged,
    paged_columns,
)
from trimaran.db.upsert import changed, insert_missing
from trimaran.errors import Conflict, QuotaExceeded

CLUSTER_RESOURCE = "Cluster"
SEVERAL = "Multiple clusters exist with same name. Please use the cluster uuid instead."
IN_PROGRESS = (
    "CREATE_IN_PROGRESS",
    "UPDATE_IN_PROGRESS",
    "DELETE_IN_PROGRESS",
    "ROLLBACK_IN_PROGRESS",
)


@dataclass
class NodeTotals:
    """What the node groups of one cluster add up to (spec/magnum.md 1.8)."""

    node_count: int = 0
    master_count: int = 0
    node_addresses: list[str] = field(default_factory=list)
    master_addresses: list[str] = field(default_factory=list)

    def add(self, role: str | None, count: int | None, addresses: list[str]) -> None:
        """Counts one node group in."""
        if role == "master":
            self.master_count += count or 0
            self.master_addresses += addresses
        else:
            self.node_count += count or 0
            self.node_addresses += addresses


def missing(ident: object) -> str:
    """What is said of a cluster that is not there."""
    return f"Cluster {ident} could not be found."


def get_cluster(session: Session, scope: Scope, ident: str) -> Cluster:
    """Finds a cluster by UUID or name.

    Raises:
        NotFound: none that the scope shows.
        Conflict: the name is used more than once.
    """
    query = sa.select(Cluster).where(scope.clause(Cluster))
    return one(session, query, Cluster, ident, missing=missing(ident), several=SEVERAL)


def columns_of_cluster(session: Session, scope: Scope, ident: str, *names: str) -> Sequence[Any]:
    """Finds a cluster by UUID or name and returns the values of some of its columns.

    Raises:
        NotFound: none that the scope shows.
        Conflict: the name is used more than once.
    """
    query = sa.select(Cluster).where(scope.clause(Cluster))
    absent = missing(ident)
    return columns_of_one(session, query, Cluster, ident, names, missing=absent, several=SEVERAL)


def find_cluster(session: Session, uuid: str, *, lock: bool = False) -> Cluster | None:
    """Returns the cluster with this UUID in any project, or None.

    Args:
        session: the unit of work.
        uuid: of the cluster.
        lock: whether to take the row's lock until the transaction ends.
    """
    query = sa.select(Cluster).where(Cluster.uuid == uuid)
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def list_clusters(
    session: Session,
    scope: Scope,
    page: Page | None = None,
    filters: Mapping[str, Any] | None = None,
) -> list[Cluster]:
    """Lists clusters.

    Args:
        session: the unit of work.
        scope: whose.
        page: which part; None means all.
        filters: column → value, or a sequence of values (``status``).
    """
    query = sa.select(Cluster).where(scope.clause(Cluster))
    for name, value in (filters or {}).items():
        column = Cluster.__table__.columns[name]
        several = isinstance(value, (list, tuple, set, frozenset))
        query = query.where(column.in_(list(value)) if several else column == value)
    page = page or Page()
    return paged(session, query, Cluster, page, missing=missing(page.marker))


def columns_of_clusters(
    session: Session, scope: Scope, page: Page, names: Sequence[str], *, nodes: bool = False
) -> list[dict[str, Any]]:
    """Lists clusters with some of their columns.

    Args:
        session: the unit of work.
        scope: whose.
        page: which part.
        names: of the columns.
        nodes: whether ``node_count`` and ``master_count`` are wanted too; the
            database adds them up, which saves reading two rows more for each.
    """
    query = sa.select(Cluster).where(scope.clause(Cluster))
    more = {"master_count": _nodes(_MASTER), "node_count": _nodes(~_MASTER)} if nodes else {}
    absent = missing(page.marker)
    return paged_columns(session, query, Cluster, page, names, missing=absent, more=more)


_GROUPS = NodeGroup.__table__.columns
# MySQL compares without regard to case; REPLACE does not, on any of the databases.
_MASTER = sa.and_(
    sa.func.coalesce(_GROUPS.role, "") == "master",
    sa.func.replace(sa.func.coalesce(_GROUPS.role, ""), "master", "") == "",
)


def _nodes(which: sa.ColumnElement[bool]) -> sa.ColumnElement[Any]:
    total = sa.func.coalesce(sa.func.sum(_GROUPS.node_count), 0)
    query = sa.select(sa.cast(total, sa.Integer)).where(
        _GROUPS.cluster_id == Cluster.__table__.columns.uuid, which
    )
    return query.correlate(Cluster.__table__).scalar_subquery()


def count_clusters(session: Session, scope: Scope = EVERYTHING) -> int:
    """Returns the number of clusters that a scope shows."""
    query = sa.select(sa.func.count()).select_from(Cluster).where(scope.clause(Cluster))
    return int(session.scalar(query) or 0)


def count_by_status(session: Session) -> dict[str, int]:
    """Counts clusters by status."""
    query = sa.select(Cluster.status, sa.func.count()).group_by(Cluster.status)
    return {status or "-": number for status, number in session.execute(query)}


def node_totals(session: Session, cluster_uuids: Sequence[str]) -> dict[str, NodeTotals]:
    """Adds up node groups for many clusters with one statement.

    Returns:
        One entry for each UUID asked for, also when it has no node group.
    """
    totals = {uuid: NodeTotals() for uuid in cluster_uuids}
    if not totals:
        return totals
    groups = NodeGroup.__table__.columns
    query = (
        sa.select(groups.cluster_id, groups.role, groups.node_count)
        .add_columns(groups.node_addresses)
        .where(groups.cluster_id.in_(list(totals)))
        .order_by(groups.id)
    )
    for cluster, role, count, addresses in session.execute(query):
        totals[cluster].add(role, count, addresses)
    return totals


def cluster_snapshot(session: Session, uuid: str) -> dict[str, Any] | None:
    """Returns a cluster's columns and the sums of its node groups, as they are in this unit.

    Changes that the unit has made by statements are seen.

    Args:
        session: the unit of work.
        uuid: of the cluster.
    """
    query = sa.select(Cluster).where(Cluster.uuid == uuid)
    row = session.scalars(query, execution_options={"populate_existing": True}).one_or_none()
    if row is None:
        return None
    values = {column.name: getattr(row, column.name) for column in Cluster.__table__.columns}
    return values | vars(node_totals(session, [uuid])[uuid])


def reserve_cluster_quota(session: Session, project_id: str, default_limit: int) -> None:
    """Checks the project's cluster quota and keeps other creators out until commit.

    It must be the first statement of a write transaction: MySQL's snapshot
    would otherwise be older than the lock (fault F-10).

    Args:
        session: the unit of work that inserts the cluster.
        project_id: who creates.
        default_limit: ``[quotas] max_clusters_per_project``, for projects without a quota.

    Raises:
        QuotaExceeded: the project has as many clusters as it may; those
            being deleted count too.
    """
    _pass_gate(session, project_id)
    check_cluster_quota(session, project_id, default_limit)


def check_cluster_quota(session: Session, project_id: str, default_limit: int) -> None:
    """Looks whether the project may have one more cluster, without keeping others out.

    For an early answer; ``reserve_cluster_quota`` decides.

    Raises:
        QuotaExceeded: the project has as many clusters as it may.
    """
    row = session.scalar(
        sa.select(Quota.hard_limit).where(
            Quota.project_id == project_id, Quota.resource == CLUSTER_RESOURCE
        )
    )
    limit = default_limit if row is None else row
    if count_clusters(session, Scope(project_id=project_id)) >= limit:
        raise QuotaExceeded(
            "Resource limit exceeded: You have reached the maximum clusters per project, "
            f"{limit}. You may delete a cluster to make room for a new one.",
            code="ResourceLimitExceeded",
        )


def _pass_gate(session: Session, project_id: str) -> None:
    step = (
        sa.update(ProjectGate)
        .where(ProjectGate.project_id == project_id)
        .values(reservations=ProjectGate.reservations + 1)
    )
    if not changed(session, step):
        insert_missing(session, ProjectGate, [{"project_id": project_id, "reservations": 0}])
        changed(session, step)


def insert_cluster(session: Session, values: Mapping[str, Any]) -> Cluster:
    """Inserts a cluster.

    Raises:
        Conflict: the UUID is taken.
    """
    row = Cluster(**values)
    try:
        with session.begin_nested():
            session.add(row)
            session.flush()
    except IntegrityError as problem:
        raise Conflict(
            f"A cluster with UUID {values['uuid']} already exists.", code="ClusterAlreadyExists"
        ) from problem
    return row


def create_cluster(
    session: Session, values: Mapping[str, Any], nodegroups: Iterable[Mapping[str, Any]]
) -> Cluster:
    """Inserts a cluster with its node groups, so that neither is ever without the other (F-4).

    It is born by the database's clock, since the create time-out is counted by it: the
    host's may differ.

    Raises:
        Conflict: the UUID is taken.
    """
    row = insert_cluster(session, {"created_at": now(session), **values})
    session.add_all([NodeGroup(**group) for group in nodegroups])
    session.flush()
    return row


def update_cluster(
    session: Session,
    uuid: str,
    changes: Mapping[str, Any],
    *,
    while_status: Iterable[str] | None = None,
) -> bool:
    """Writes columns of a cluster.

    Args:
        session: the unit of work.
        uuid: of the cluster.
        changes: column → new value.
        while_status: write only while the status is one of these; what
            another conductor decided meanwhile is then not overwritten (F-11).

    Returns:
        Whether the row was there (in one of those states).
    """
    query = sa.update(Cluster).where(Cluster.uuid == uuid).values(**changes, updated_at=utcnow())
    if while_status is not None:
        query = query.where(Cluster.status.in_(list(while_status)))
    return bool(changed(session, query))


def mark_cluster_deleting(session: Session, uuid: str) -> bool:
    """Sets DELETE_IN_PROGRESS.

    Returns:
        False when it was being deleted already, or is gone (F-65).
    """
    query = (
        sa.update(Cluster)
        .where(Cluster.uuid == uuid)
        .where(sa.or_(Cluster.status.is_(None), Cluster.status != "DELETE_IN_PROGRESS"))
        .values(status="DELETE_IN_PROGRESS", status_reason=None, updated_at=utcnow())
    )
    return bool(changed(session, query))


def fail_cluster(
    session: Session,
    uuid: str,
    action: str,
    reason: str,
    *,
    nodegroups: Mapping[str, str] | None = None,
) -> bool:
    """Ends an operation in ``<action>_FAILED``, the reason on the cluster and its node groups.

    Args:
        session: the unit of work.
        uuid: of the cluster.
        action: CREATE, UPDATE or DELETE; a cluster whose deletion was asked
            for meanwhile keeps that status.
        reason: why, for the user.
        nodegroups: node group → its status, for those that the operation is
            about.  None: all that are in progress fail with the cluster (F-3).

    Returns:
        Whether the cluster has that status now.
    """
    failed = f"{action}_FAILED"
    query = sa.update(Cluster).where(Cluster.uuid == uuid)
    if action != "DELETE":
        query = query.where(Cluster.status != "DELETE_IN_PROGRESS")
    query = query.values(status=failed, status_reason=reason, updated_at=utcnow())
    marked = bool(changed(session, query))
    group = sa.update(NodeGroup).where(NodeGroup.cluster_id == uuid)
    if nodegroups is None:
        query = group.where(NodeGroup.status.in_(IN_PROGRESS))
        changed(session, query.values(status=failed, status_reason=reason, updated_at=utcnow()))
    for ident, status in (nodegroups or {}).items():
        query = group.where(NodeGroup.uuid == ident)
        changed(session, query.values(status=status, status_reason=reason, updated_at=utcnow()))
    return marked


def destroy_cluster(session: Session, uuid: str) -> bool:
    """Removes a cluster and its node groups.

    Returns:
        Whether there was a row to remove.
    """
    session.execute(sa.delete(NodeGroup).where(NodeGroup.cluster_id == uuid))
    query = sa.delete(Cluster).where(Cluster.uuid == uuid)
    return bool(changed(session, query))


def clusters_to_poll(session: Session) -> dict[str, str | None]:
    """Returns the clusters whose state the driver has to be asked for, with their templates.

    Those in progress, those with node groups in progress under a settled
    cluster (F-66), and those whose deletion ended but whose rows are still
    there because a conductor died in between.

    Returns:
        UUID of the cluster to UUID of its template, the oldest cluster first.
    """
    busy = sa.select(NodeGroup.cluster_id).where(NodeGroup.status.in_(IN_PROGRESS))
    query = (
        sa.select(Cluster.uuid, Cluster.cluster_template_id)
        .where(
            sa.or_(
                Cluster.status.in_((*IN_PROGRESS, "DELETE_COMPLETE")),
                Cluster.uuid.in_(busy),
            )
        )
        .order_by(Cluster.id)
    )
    return {row.uuid: row.cluster_template_id for row in session.execute(query)}


__all__ = [
    "EVERYTHING",
    "IN_PROGRESS",
    "SEVERAL",
    "NodeTotals",
    "Page",
    "Scope",
    "as_uuid",
    "check_cluster_quota",
    "cluster_snapshot",
    "clusters_to_poll",
    "columns_of_cluster",
    "columns_of_clusters",
    "count_by_status",
    "count_clusters",
    "create_cluster",
    "destroy_cluster",
    "fail_cluster",
    "find_cluster",
    "get_cluster",
    "insert_cluster",
    "list_clusters",
    "mark_cluster_deleting",
    "missing",
    "node_totals",
    "reserve_cluster_quota",
    "update_cluster",
]
