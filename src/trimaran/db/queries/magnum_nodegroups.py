"""Node groups of one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import NodeGroup, utcnow
from trimaran.db.queries import magnum_paging
from trimaran.db.queries.magnum_paging import Page, one, paged
from trimaran.db.upsert import changed
from trimaran.errors import Conflict

_SEVERAL = "Multiple nodegroups exist with same name. Please use the nodegroup uuid instead."


def _missing(ident: object) -> str:
    return f"Nodegroup {ident} could not be found."


def get_nodegroup(session: Session, cluster_uuid: str, ident: str) -> NodeGroup:
    """Finds a node group of a cluster by UUID, name, or integer id (spec/magnum.md 1.11).

    Raises:
        NotFound: the cluster has no such node group.
    """
    query = sa.select(NodeGroup).where(NodeGroup.cluster_id == cluster_uuid)
    return one(
        session,
        query,
        NodeGroup,
        ident,
        missing=_missing(ident),
        several=_SEVERAL,
        allow_id=True,
    )


def _listed(cluster_uuid: str, role: str | None) -> sa.Select[Any]:
    query = sa.select(NodeGroup).where(NodeGroup.cluster_id == cluster_uuid)
    return query if role is None else query.where(NodeGroup.role == role)


def list_nodegroups(
    session: Session, cluster_uuid: str, page: Page | None = None, role: str | None = None
) -> list[NodeGroup]:
    """Lists node groups of a cluster, those of one role when it is given."""
    page = page or Page()
    query = _listed(cluster_uuid, role)
    return paged(session, query, NodeGroup, page, missing=_missing(page.marker))


def after_marker(
    session: Session, cluster_uuid: str, role: str | None, page: Page
) -> sa.ColumnElement[bool]:
    """Returns the condition for the node groups that come after the page's marker.

    Raises:
        NotFound: the marker is unknown.
    """
    query = _listed(cluster_uuid, role)
    return magnum_paging.after_marker(session, query, NodeGroup, page, _missing(page.marker))


def nodegroups_of(
    session: Session, cluster_uuid: str, filters: Mapping[str, Any] | None = None
) -> list[NodeGroup]:
    """Returns all node groups of a cluster in the order of their creation.

    Args:
        session: the unit of work.
        cluster_uuid: whose.
        filters: column → value.
    """
    query = sa.select(NodeGroup).where(NodeGroup.cluster_id == cluster_uuid)
    for name, value in (filters or {}).items():
        query = query.where(NodeGroup.__table__.columns[name] == value)
    return list(session.scalars(query.order_by(NodeGroup.id)).all())


def find_nodegroup(session: Session, uuid: str) -> NodeGroup | None:
    """Returns the node group with this UUID, or None."""
    return session.scalars(sa.select(NodeGroup).where(NodeGroup.uuid == uuid)).one_or_none()


def insert_nodegroup(session: Session, values: Mapping[str, Any]) -> NodeGroup:
    """Inserts a node group.

    Raises:
        Conflict: the cluster has one of that name, or the UUID is taken.
    """
    row = NodeGroup(**values)
    try:
        with session.begin_nested():
            session.add(row)
            session.flush()
    except IntegrityError as problem:
        raise Conflict(
            f"A node group with name {values['name']} already exists in the cluster "
            f"{values['cluster_id']}.",
            code="NodeGroupAlreadyExists",
        ) from problem
    return row


def update_nodegroup(session: Session, uuid: str, changes: Mapping[str, Any]) -> bool:
    """Writes columns of a node group.

    Returns:
        Whether the row was there.
    """
    query = (
        sa.update(NodeGroup).where(NodeGroup.uuid == uuid).values(**changes, updated_at=utcnow())
    )
    return bool(changed(session, query))


def update_nodegroups_of(session: Session, cluster_uuid: str, changes: Mapping[str, Any]) -> int:
    """Writes the same columns on all node groups of a cluster.

    Returns:
        How many there are.
    """
    query = (
        sa.update(NodeGroup)
        .where(NodeGroup.cluster_id == cluster_uuid)
        .values(**changes, updated_at=utcnow())
    )
    return changed(session, query)


def destroy_nodegroup(session: Session, uuid: str) -> bool:
    """Removes a node group.

    Returns:
        Whether there was one.
    """
    query = sa.delete(NodeGroup).where(NodeGroup.uuid == uuid)
    return bool(changed(session, query))
