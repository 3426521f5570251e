"""Cluster templates: who sees which, and what may change while clusters use one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster, ClusterTemplate, utcnow
from trimaran.db.queries.magnum_paging import Page, Scope, one, paged
from trimaran.errors import BadRequest, Conflict, NotFound

_SEVERAL = (
    "Multiple ClusterTemplates exist with same name. Please use the ClusterTemplate uuid instead."
)


def _missing(ident: object) -> str:
    return f"ClusterTemplate {ident} could not be found."


def _visible(scope: Scope) -> sa.ColumnElement[bool]:
    shared: sa.ColumnElement[bool] = ClusterTemplate.public.is_(True)
    if not scope.is_admin:
        shared = sa.and_(shared, ClusterTemplate.hidden.is_not(True))
    return sa.or_(scope.clause(ClusterTemplate), shared)


def get_template(
    session: Session, scope: Scope, ident: str, *, allow_id: bool = False
) -> ClusterTemplate:
    """Finds a template by UUID or name among those that the scope shows (spec 1.7).

    Args:
        session: the unit of work.
        scope: of the caller.
        ident: UUID or name.
        allow_id: whether the integer id is accepted too (cluster create).

    Raises:
        NotFound: none.
        Conflict: the name is used more than once.
    """
    query = sa.select(ClusterTemplate).where(_visible(scope))
    return one(
        session,
        query,
        ClusterTemplate,
        ident,
        missing=_missing(ident),
        several=_SEVERAL,
        allow_id=allow_id,
    )


def find_template(session: Session, uuid: str) -> ClusterTemplate | None:
    """Returns the template with this UUID in any project, or None."""
    query = sa.select(ClusterTemplate).where(ClusterTemplate.uuid == uuid)
    return session.scalars(query).one_or_none()


def templates_by_uuid(session: Session, uuids: Collection[str]) -> dict[str, ClusterTemplate]:
    """Returns templates of any project by UUID, with one statement."""
    if not uuids:
        return {}
    query = sa.select(ClusterTemplate).where(ClusterTemplate.uuid.in_(list(uuids)))
    return {row.uuid: row for row in session.scalars(query)}


def template_labels(session: Session, uuids: Collection[str]) -> dict[str, dict[str, str]]:
    """Returns the labels of templates of any project by UUID, with one statement."""
    if not uuids:
        return {}
    columns = ClusterTemplate.__table__.columns
    query = sa.select(columns.uuid, columns.labels).where(columns.uuid.in_(list(uuids)))
    return {row.uuid: row.labels for row in session.execute(query)}


def list_templates(
    session: Session, scope: Scope, page: Page | None = None
) -> list[ClusterTemplate]:
    """Lists the templates that a scope shows."""
    query = sa.select(ClusterTemplate).where(_visible(scope))
    page = page or Page()
    return paged(session, query, ClusterTemplate, page, missing=_missing(page.marker))


def template_in_use(session: Session, uuid: str) -> bool:
    """Whether any cluster was made from this template."""
    query = sa.select(Cluster.id).where(Cluster.cluster_template_id == uuid).limit(1)
    return session.scalar(query) is not None


def insert_template(session: Session, values: Mapping[str, Any]) -> ClusterTemplate:
    """Inserts a template.

    Raises:
        Conflict: the UUID is taken.
    """
    row = ClusterTemplate(**values)
    try:
        with session.begin_nested():
            session.add(row)
            session.flush()
    except IntegrityError as problem:
        raise Conflict(
            f"A ClusterTemplate with UUID {values['uuid']} already exists.",
            code="ClusterTemplateAlreadyExists",
        ) from problem
    return row


def update_template(session: Session, uuid: str, changes: Mapping[str, Any]) -> ClusterTemplate:
    """Writes columns of a template.

    While clusters use it, only one of ``public`` → true, ``hidden``, ``tags``
    and ``name`` may change at a time (spec/magnum.md 1.14).

    Raises:
        NotFound: it is gone.
        BadRequest: a cluster uses it and the change is not allowed then.
    """
    query = sa.select(ClusterTemplate).where(ClusterTemplate.uuid == uuid).with_for_update()
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound(_missing(uuid))
    wanted = {name: value for name, value in changes.items() if getattr(row, name) != value}
    if wanted and not _harmless(wanted) and template_in_use(session, uuid):
        raise _in_use(uuid)
    for name, value in wanted.items():
        setattr(row, name, value)
    if wanted:
        row.updated_at = utcnow()
    session.flush()
    return row


def _harmless(changes: Mapping[str, Any]) -> bool:
    if len(changes) != 1:
        return False
    ((name, value),) = changes.items()
    return (
        (name == "public" and bool(value))
        or name in ("hidden", "name")
        or (name == "tags" and value is not None)
    )


def _in_use(uuid: str) -> BadRequest:
    return BadRequest(
        f"ClusterTemplate {uuid} is referenced by one or multiple clusters.",
        code="ClusterTemplateReferenced",
    )


def delete_template(session: Session, uuid: str) -> None:
    """Removes a template.

    Raises:
        NotFound: it is gone.
        BadRequest: a cluster uses it.
    """
    query = sa.select(ClusterTemplate).where(ClusterTemplate.uuid == uuid).with_for_update()
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound(_missing(uuid))
    if template_in_use(session, uuid):
        raise _in_use(uuid)
    session.delete(row)
    session.flush()
