"""Who may see which rows, and how a listing is cut into pages.

Upstream pages by keyset: the marker's own values are compared, so a page
costs the same wherever it begins.  NULLs sort first on some databases and
last on others; here they are always first (last when descending), otherwise
the same listing would page differently on PostgreSQL.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
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
T = TypeVar("T")
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

    @property
    def column(self) -> str | None:
        """The column that tells whose a row is; None: everybody's are seen."""
        if self.all_projects:
            return None
        return "project_id" if self.project_id else "user_id"

    @property
    def owner(self) -> str | None:
        """The value that :attr:`column` has in the rows that are seen."""
        return self.project_id or self.user_id

    def clause(self, model: Any) -> sa.ColumnElement[bool]:
        """Returns the WHERE condition that this scope puts on a table."""
        if self.column is None:
            return sa.true()
        return sa.ColumnElement.__eq__(getattr(model, self.column), self.owner)


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
    query = _identified(query, model, ident, allow_id=allow_id)
    rows: Sequence[M] = session.scalars(query.limit(2)).all()
    return single(rows, missing=missing, several=several)


def columns_of_one(
    session: Session,
    query: sa.Select[Any],
    model: Model[M],
    ident: str,
    names: Sequence[str],
    *,
    missing: str,
    several: str,
) -> Sequence[Any]:
    """As :func:`one`, but reads some columns only; returns their values.

    Each column costs the driver a description and a value to parse, so what
    needs one or two columns of thirty does not ask for all.
    """
    query = _only(_identified(query, model, ident), model, names)
    return single(session.execute(query.limit(2)).all(), missing=missing, several=several)


def single(rows: Sequence[T], *, missing: str, several: str) -> T:
    """The only one of at most two rows.

    Raises:
        NotFound: there is none.
        Conflict: there are two.
    """
    if not rows:
        raise NotFound(missing)
    if len(rows) > 1:
        raise Conflict(several)
    return rows[0]


def _identified(
    query: sa.Select[Any], model: Model[M], ident: str, *, allow_id: bool = False
) -> sa.Select[Any]:
    columns: Any = model
    canonical = as_uuid(ident)
    if canonical is not None:
        return query.where(columns.uuid == canonical)
    if allow_id and ident.isascii() and ident.isdigit() and len(ident) < 10:
        return query.where(columns.id == int(ident))
    return query.where(columns.name == ident)


def _only(query: sa.Select[Any], model: Model[M], names: Sequence[str]) -> sa.Select[Any]:
    columns = model.__table__.columns
    return query.with_only_columns(*(columns[name] for name in names))


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
    return list(session.scalars(_cut(session, query, model, page, missing)).all())


def paged_columns(
    session: Session,
    query: sa.Select[Any],
    model: Model[M],
    page: Page,
    names: Sequence[str],
    *,
    missing: str,
    more: Mapping[str, sa.ColumnElement[Any]] | None = None,
) -> list[dict[str, Any]]:
    """As :func:`paged`, but reads some columns only; returns them by name.

    Args:
        names: columns of the table.
        more: what else is computed for each row.
    """
    table = model.__table__.columns
    computed: Mapping[str, sa.ColumnElement[Any]] = more or {}
    query = _cut(session, query, model, page, missing).with_only_columns(
        *(table[name] for name in names), *(item.label(name) for name, item in computed.items())
    )
    every = (*names, *computed)
    return [dict(zip(every, row, strict=True)) for row in session.execute(query)]


def _cut(
    session: Session, query: sa.Select[Any], model: Model[M], page: Page, missing: str
) -> sa.Select[Any]:
    whole = query
    query = ordered(query, model, page.sort_key, page.sort_dir)
    if page.marker is not None:
        query = query.where(after_marker(session, whole, model, page, missing))
    return query if page.limit is None else query.limit(page.limit)


def ordered(query: sa.Select[Any], model: Model[M], sort_key: str, sort_dir: str) -> sa.Select[Any]:
    """Sorts a listing.

    Raises:
        BadRequest: ``sort_key`` is no column of the table.
    """
    key, identity = _sort_column(model, sort_key), _sort_column(model, "id")
    first = sa.case((key.is_(None), 0), else_=1)
    order = [identity] if sort_key == "id" else [first, key, identity]
    return query.order_by(*(item.desc() if sort_dir == "desc" else item.asc() for item in order))


def after_marker(
    session: Session, query: sa.Select[Any], model: Model[M], page: Page, missing: str
) -> sa.ColumnElement[bool]:
    """Returns the condition for what comes after the page's marker.

    Args:
        session: the unit of work.
        query: the whole listing.
        model: the table's class.
        page: with a marker.
        missing: text when the marker does not exist.

    Raises:
        BadRequest: ``sort_key`` is no column of the table.
        NotFound: the marker is unknown.
    """
    columns: Any = model
    key = _sort_column(model, page.sort_key)
    by = columns.id if model is models.Quota else columns.uuid
    marker = session.scalars(query.where(by == page.marker)).first()
    if marker is None:
        raise NotFound(missing)
    return _after(columns, key, marker, page.sort_key, page.sort_dir == "desc")


def _sort_column(model: Model[M], name: str) -> Any:
    if name not in model.__table__.columns:
        raise BadRequest(f'The sort_key value "{name}" is an invalid field for sorting')
    return getattr(model, name)


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
