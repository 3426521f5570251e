"""Who may see which rows, and how a listing is cut into pages.

Upstream pages by keyset: the marker's own values are compared, so a page
costs the same wherever it begins.  NULLs sort first on some databases and
last on others; here they are always first (last when descending), otherwise
the same listing would page differently on PostgreSQL.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.models import magnum as models
from trimaran.errors import BadRequest, Conflict, NotFound

M = TypeVar(
    "M",
    models.Cluster,
    models.ClusterTemplate,
    models.NodeGroup,
    models.Quota,
    models.Federation,
)
Model = type[M]


@dataclass(frozen=True)
class Scope:
    """Whose rows a caller sees (spec/magnum.md 1.6).

    Attributes:
        project_id: rows of this project.
        user_id: rows of this user, where the token has no project.
        all_projects: everything; the caller is an admin and policy agreed.
        is_admin: the caller is an admin, who sees hidden public templates too.
    """

    project_id: str | None = None
    user_id: str | None = None
    all_projects: bool = False
    is_admin: bool = False

    def clause(self, model: Any) -> sa.ColumnElement[bool]:
        """Returns the WHERE condition that this scope puts on a table."""
        if self.all_projects:
            return sa.true()
        if self.project_id:
            return sa.ColumnElement.__eq__(model.project_id, self.project_id)
        return sa.ColumnElement.__eq__(model.user_id, self.user_id)


#: conductors and periodic work see every row
EVERYTHING = Scope(all_projects=True)


@dataclass(frozen=True)
class Page:
    """One page of a listing (spec/magnum.md 1.5).

    Attributes:
        limit: rows at most; None means all.
        marker: the last row of the page before: its UUID (quotas: its id).
        sort_key: a column of the table; ``id`` always breaks ties.
        sort_dir: ``asc`` or ``desc``.
    """

    limit: int | None = None
    marker: str | int | None = None
    sort_key: str = "id"
    sort_dir: str = "asc"


def as_uuid(ident: str) -> str | None:
    """Returns the canonical form of a UUID in any case, with or without dashes, else None."""
    try:
        return str(uuid.UUID(ident))
    except ValueError:
        return None


def one(
    session: Session,
    query: sa.Select[Any],
    model: Model[M],
    ident: str,
    *,
    missing: str,
    several: str,
    allow_id: bool = False,
) -> M:
    """Finds one row by UUID or name, as upstream identifies (1.6).

    Args:
        session: the unit of work.
        query: what the caller may see.
        model: the table's class.
        ident: UUID, name, or with ``allow_id`` the integer id as text.
        missing: text when nothing fits.
        several: text when a name fits more than one row.
        allow_id: whether a number means the ``id`` column.

    Raises:
        NotFound: nothing fits.
        Conflict: a name fits several rows.
    """
    columns: Any = model
    canonical = as_uuid(ident)
    if canonical is not None:
        query = query.where(columns.uuid == canonical)
    elif allow_id and ident.isascii() and ident.isdigit() and len(ident) < 10:
        query = query.where(columns.id == int(ident))
    else:
        query = query.where(columns.name == ident)
    rows: Sequence[M] = session.scalars(query.limit(2)).all()
    if not rows:
        raise NotFound(missing)
    if len(rows) > 1:
        raise Conflict(several)
    return rows[0]


def paged(
    session: Session,
    query: sa.Select[Any],
    model: Model[M],
    page: Page,
    *,
    missing: str,
) -> list[M]:
    """Runs a listing and returns the page that is asked for.

    Args:
        session: the unit of work.
        query: what the caller may see.
        model: the table's class.
        page: which part.
        missing: text when the marker does not exist.

    Raises:
        BadRequest: ``sort_key`` is no column of the table.
        NotFound: the marker is unknown.
    """
    columns: Any = model
    if page.sort_key not in model.__table__.columns:
        raise BadRequest(f'The sort_key value "{page.sort_key}" is an invalid field for sorting')
    key = getattr(columns, page.sort_key)
    descending = page.sort_dir == "desc"
    if page.marker is not None:
        by = columns.id if model is models.Quota else columns.uuid
        marker = session.scalars(query.where(by == page.marker)).first()
        if marker is None:
            raise NotFound(missing)
        query = query.where(_after(columns, key, marker, page.sort_key, descending))
    first = sa.case((key.is_(None), 0), else_=1)
    order = [columns.id] if page.sort_key == "id" else [first, key, columns.id]
    query = query.order_by(*(item.desc() if descending else item.asc() for item in order))
    if page.limit is not None:
        query = query.limit(page.limit)
    return list(session.scalars(query).all())


def _after(
    columns: Any, key: Any, marker: Any, name: str, descending: bool
) -> sa.ColumnElement[bool]:
    past_id: sa.ColumnElement[bool] = (
        columns.id < marker.id if descending else columns.id > marker.id
    )
    if name == "id":
        return past_id
    value = getattr(marker, name)
    if value is None:
        same = sa.and_(key.is_(None), past_id)
        return same if descending else sa.or_(same, key.is_not(None))
    bound = sa.literal(value, key.type)
    past = key.op("<" if descending else ">")(bound)
    same = sa.and_(key.op("=")(bound), past_id)
    return sa.or_(past, same, key.is_(None)) if descending else sa.or_(past, same)
