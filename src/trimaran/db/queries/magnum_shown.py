"""What the most frequent requests read: one cluster, and its node groups.

Building a statement costs SQLAlchemy several times what the driver and the
server need for it.  Those of these requests are therefore built once for each
shape (whose rows, found by what, sorted how) and only their values are bound
anew; and each request is one statement.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster, ClusterTemplate, NodeGroup
from trimaran.db.queries import magnum_clusters as clusters
from trimaran.db.queries import magnum_nodegroups as nodegroups
from trimaran.db.queries.magnum_clusters import NodeTotals
from trimaran.db.queries.magnum_paging import Page, Scope, as_uuid, ordered
from trimaran.errors import Conflict, NotFound

_CLUSTERS = Cluster.__table__.columns
_GROUPS = NodeGroup.__table__.columns
_NAMES = tuple(column.name for column in _CLUSTERS)
_IDENT: sa.BindParameter[str] = sa.bindparam("ident")
_OWNER: sa.BindParameter[str] = sa.bindparam("owner")


def _owned(owner: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if owner is None else _CLUSTERS[owner] == _OWNER


@functools.cache
def _cluster(owner: str | None, by: str) -> sa.Select[Any]:
    template = ClusterTemplate.__table__.columns
    tables = (
        sa.outerjoin(
            Cluster.__table__,
            ClusterTemplate.__table__,
            template.uuid == _CLUSTERS.cluster_template_id,
        )
    ).outerjoin(NodeGroup.__table__, _GROUPS.cluster_id == _CLUSTERS.uuid)
    return (
        sa.select(
            *_CLUSTERS,
            template.labels.label("template_labels"),
            _GROUPS.role,
            _GROUPS.node_count,
            _GROUPS.node_addresses,
        )
        .select_from(tables)
        .where(_owned(owner), _CLUSTERS[by] == _IDENT)
        .order_by(_GROUPS.id)
    )


def cluster_in_full(
    session: Session, scope: Scope, ident: str
) -> tuple[dict[str, Any], NodeTotals, dict[str, str]]:
    """Finds a cluster by UUID or name, with what its template and node groups add.

    Returns:
        Its columns by name, the sums of its node groups, and the labels of its
        template (none, where an adopted database lost the template).

    Raises:
        NotFound: none that the scope shows.
        Conflict: the name is used more than once.
    """
    uuid = as_uuid(ident)
    query = _cluster(scope.column, "name" if uuid is None else "uuid")
    rows = session.execute(query, {"ident": uuid or ident, "owner": scope.owner}).all()
    if not rows:
        raise NotFound(clusters.missing(ident))
    if len({row.uuid for row in rows}) > 1:
        raise Conflict(clusters.SEVERAL)
    nodes = NodeTotals()
    for *_, role, count, addresses in rows:
        nodes.add(role, count, addresses)
    first = rows[0]
    return dict(zip(_NAMES, first, strict=False)), nodes, first.template_labels


@functools.cache
def _nodegroups(
    owner: str | None, of_role: bool, limited: bool, names: tuple[str, ...], key: str, way: str
) -> sa.Select[Any]:
    query = sa.select(NodeGroup).where(_GROUPS.cluster_id == _IDENT)
    if owner is not None:
        query = query.where(sa.exists().where(_CLUSTERS.uuid == _IDENT, _owned(owner)))
    if of_role:
        query = query.where(_GROUPS.role == sa.bindparam("role"))
    query = ordered(query, NodeGroup, key, way)
    if limited:
        query = query.limit(sa.bindparam("limit", type_=sa.Integer))
    return query.with_only_columns(*(_GROUPS[name] for name in names))


def nodegroups_of_page(
    session: Session,
    scope: Scope,
    ident: str,
    page: Page,
    role: str | None,
    names: tuple[str, ...],
) -> tuple[str, list[dict[str, Any]]]:
    """Lists the node groups of a cluster that is named by UUID or name.

    Args:
        session: the unit of work.
        scope: which clusters are seen.
        ident: of the cluster.
        page: which part.
        role: only those of this role.
        names: of the columns wanted.

    Returns:
        The cluster's UUID, and the columns by name.

    Raises:
        BadRequest: ``sort_key`` is no column of the table.
        NotFound: no such cluster, or no such marker.
        Conflict: the cluster's name is used more than once.
    """
    uuid = as_uuid(ident)
    if uuid is None:
        (uuid,) = clusters.columns_of_cluster(session, scope, ident, "uuid")
    query = _nodegroups(
        scope.column, role is not None, page.limit is not None, names, page.sort_key, page.sort_dir
    )
    if page.marker is not None:
        query = query.where(nodegroups.after_marker(session, uuid, role, page))
    values = {"ident": uuid, "owner": scope.owner, "role": role, "limit": page.limit}
    rows: Sequence[Any] = session.execute(query, values).all()
    if not rows:
        # None on this page, or no such cluster.
        clusters.columns_of_cluster(session, scope, ident, "uuid")
    return uuid, [dict(zip(names, row, strict=True)) for row in rows]
