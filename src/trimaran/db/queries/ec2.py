"""Items: reading, and the one way in which several creators agree on an id.

Every read is one statement on an index, whatever the number of items.  An
insert never fails on a conflict: it does nothing, and a read of the unique
``os_id`` then says whose row it is, so ten processes that see the same new
server at once all answer with the same id, without savepoints or retries
(spec ec2.md 4.3).  Times are the database's clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models.ec2 import ITEM_ID, ItemRow, TagRow
from trimaran.db.upsert import changed
from trimaran.errors import Conflict, TrimaranError

T = TypeVar("T")

#: Characters of an id at most.
LONGEST_ID = ITEM_ID
#: Values in one IN list, and rows in one INSERT: below SQLite's and PostgreSQL's parameter limits.
MANY = 5000
TABLE = cast("sa.Table", ItemRow.__table__)
ROWS = 1000
#: How often new ids are minted for rows whose random ids were taken.
MINTS = 8


@dataclass(frozen=True, slots=True)
class Item:
    """An item as read; detached from any session.

    Attributes:
        data: the fields of the JSON blob (spec 4.1, last column).
        dead_for: seconds since it became a tombstone, None for a live item.
        age: seconds since it was made; None for rows that upstream made.
    """

    id: str
    project_id: str | None
    os_id: str | None
    vpc_id: str | None
    data: dict[str, Any]
    is_public: bool = False
    version: int = 0
    age: float | None = None
    dead_for: float | None = None

    @property
    def kind(self) -> str:
        """The id's prefix."""
        return self.id.split("-", 1)[0]


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to be stored.

    Attributes:
        kind: prefix of its id.
        os_id: the OpenStack object, or None for what has none (yet).
        project_id: None makes a mapping row.
        alike: other kinds that the same OpenStack object may already have been stored as.
        id: a chosen id; otherwise one is minted.
    """

    kind: str
    os_id: str | None
    project_id: str | None
    data: Mapping[str, Any] = field(default_factory=dict)
    vpc_id: str | None = None
    is_public: bool = False
    alike: tuple[str, ...] = ()
    id: str = ""


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most ``size``."""
    rows = list(values)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def pack(data: Mapping[str, Any]) -> str | None:
    """The blob's text, as upstream writes and searches it (``": "`` between key and value)."""
    return json.dumps(data) if data else None


_COLUMNS = (
    ItemRow.id,
    ItemRow.project_id,
    ItemRow.os_id,
    ItemRow.vpc_id,
    ItemRow.data,
    ItemRow.is_public,
    ItemRow.version,
    (db_now() - ItemRow.created_at).label("age"),
    (db_now() - ItemRow.deleted_at).label("dead_for"),
)


def _items(session: Session, *where: sa.ColumnElement[bool]) -> list[Item]:
    rows = session.execute(sa.select(*_COLUMNS).where(*where)).all()
    return [
        Item(
            id=row[0],
            project_id=row[1],
            os_id=row[2],
            vpc_id=row[3],
            data=json.loads(row[4]) if row[4] else {},
            is_public=bool(row[5]),
            version=row[6] or 0,
            age=row[7],
            dead_for=row[8],
        )
        for row in rows
    ]


def _of_kinds(kinds: Collection[str]) -> sa.ColumnElement[bool]:
    # Rows of an upstream process that still ran during the migration have no kind.
    unmarked = [ItemRow.id.startswith(f"{kind}-") for kind in kinds]
    return sa.or_(ItemRow.kind.in_(kinds), sa.and_(ItemRow.kind.is_(None), sa.or_(*unmarked)))


def items_of(session: Session, project_id: str, kinds: Collection[str]) -> list[Item]:
    """All items of a project of the kinds, tombstones included."""
    return _items(session, ItemRow.project_id == project_id, _of_kinds(kinds))


def items_by_ids(session: Session, project_id: str, item_ids: Collection[str]) -> list[Item]:
    """The project's items among the ids; others are as if they did not exist."""
    found: list[Item] = []
    for some in chunks(item_ids, MANY):
        found += _items(session, ItemRow.project_id == project_id, ItemRow.id.in_(some))
    return found


def locked_items(session: Session, project_id: str, item_ids: Collection[str]) -> list[Item]:
    """The project's items among the ids, which nobody else changes before this unit ends.

    SQLite needs no lock: its writing units run one after the other.
    """
    rows = sa.select(ItemRow.id).where(ItemRow.project_id == project_id, ItemRow.id.in_(item_ids))
    # Taken in one order and read afterwards: a row that was waited for is seen as it is now.
    session.execute(rows.order_by(ItemRow.id).with_for_update()).all()
    return items_by_ids(session, project_id, item_ids)


def mapped_by_ids(session: Session, item_ids: Collection[str]) -> list[Item]:
    """Items of any project by id: for objects that OpenStack itself shows to the caller.

    The caller must ask OpenStack, with the user's own token, whether the
    object is visible before anything of such an item is shown.
    """
    found: list[Item] = []
    for some in chunks(item_ids, MANY):
        found += _items(session, ItemRow.id.in_(some))
    return found


def by_os_ids(session: Session, os_ids: Collection[str]) -> dict[str, Item]:
    """The items of any project behind OpenStack ids; the same caution as `mapped_by_ids`."""
    found: dict[str, Item] = {}
    for some in chunks(os_ids, MANY):
        for item in _items(session, ItemRow.os_id.in_(some)):
            if item.os_id:
                found[item.os_id] = item
    return found


def _insert_missing(session: Session, values: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; one that meets a unique key changes nothing and is no error."""
    dialect = session.get_bind().dialect.name
    statement: Any
    if dialect in ("mysql", "mariadb"):
        # Not INSERT IGNORE, which would hide truncated values as well.
        statement = mysql.insert(TABLE).on_duplicate_key_update(id=TABLE.c.id)
    elif dialect == "postgresql":
        statement = postgresql.insert(TABLE).on_conflict_do_nothing()
    else:
        statement = sqlite.insert(TABLE).on_conflict_do_nothing()
    # Plain parameters, compiled once, which each driver sends in bulk.
    session.execute(statement, values)


def _values(item_id: str, new: NewItem, now: float) -> dict[str, Any]:
    return {
        "id": item_id,
        "project_id": new.project_id,
        "vpc_id": new.vpc_id,
        "os_id": new.os_id,
        "data": pack(new.data),
        "kind": new.kind,
        "is_public": new.is_public,
        "version": 0,
        "created_at": now,
        "updated_at": now,
    }


def add_items(
    session: Session, wanted: Sequence[NewItem], mint: Callable[[str], str]
) -> list[Item]:
    """Store items, or find the ones that are there already for the same OpenStack objects.

    Args:
        session: a write session.  READ COMMITTED, which is what the engine has
            on all dialects, makes the read after the insert see what others
            committed meanwhile.
        wanted: what to store.
        mint: a new random id for a kind; asked again when an id is taken (F19).

    Returns:
        One item for each wanted one, in order.  Its id is the stored row's:
        a row of no project is adopted (project and data become ours, the id
        stays); the row of another project is taken over when we claim the
        object for a project (OpenStack says it moved), and only read when we
        ask for a mapping.

    Raises:
        Conflict: the object is stored as an item of a different kind.
    """
    if not wanted:
        return []
    # One order everywhere: concurrent bulk inserts then wait for each other, not in a circle.
    order = sorted(range(len(wanted)), key=lambda index: wanted[index].os_id or wanted[index].id)
    now = session.scalars(sa.select(db_now())).one()
    done: dict[int, Item] = {}
    for _ in range(MINTS):
        left = [index for index in order if index not in done]
        if not left:
            break
        chosen = {index: wanted[index].id or mint(wanted[index].kind) for index in left}
        _insert_missing(session, [_values(chosen[index], wanted[index], now) for index in left])
        stored = by_os_ids(session, [os_id for i in left if (os_id := wanted[i].os_id)])
        plain = [chosen[index] for index in left if not wanted[index].os_id]
        named = {item.id: item for item in mapped_by_ids(session, plain)} if plain else {}
        for index in left:
            new = wanted[index]
            item = stored.get(new.os_id) if new.os_id else named.get(chosen[index])
            if item is None:
                continue  # the random id belongs to another row
            if new.os_id is None and not _is_ours(item, new):
                if new.id:
                    raise Conflict("The id is already in use.")
                continue
            done[index] = _settle(session, item, new, chosen[index])
    if len(done) < len(wanted):
        raise TrimaranError("No free id could be found.")
    return [done[index] for index in range(len(wanted))]


def _is_ours(item: Item, new: NewItem) -> bool:
    return (item.project_id, item.os_id, item.vpc_id, item.data) == (
        new.project_id,
        None,
        new.vpc_id,
        json.loads(pack(new.data) or "{}"),
    )


def _settle(session: Session, item: Item, new: NewItem, chosen: str) -> Item:
    """What the stored row means for one wanted item: made, found, adopted or taken over."""
    if item.id == chosen:
        return item
    if item.kind != new.kind and item.kind not in new.alike:
        raise Conflict("The OpenStack object is known as another kind of resource.")
    if new.project_id is None or item.project_id == new.project_id:
        return item
    data = {**(item.data if item.project_id is None else {}), **new.data}
    taken = changed(
        session,
        sa.update(ItemRow)
        .where(ItemRow.id == item.id, ItemRow.version == item.version)
        .values(
            project_id=new.project_id,
            data=pack(data),
            vpc_id=new.vpc_id,
            is_public=new.is_public,
            kind=item.kind,
            version=ItemRow.version + 1,
            updated_at=db_now(),
            deleted_at=None,
        ),
    )
    if taken and item.project_id is not None:
        # The former owner's tags are not the new one's to see, nor theirs to find again.
        changed(session, sa.delete(TagRow).where(TagRow.item_id == item.id))
    return replace(
        item,
        project_id=new.project_id,
        data=data,
        vpc_id=new.vpc_id,
        is_public=new.is_public,
        version=item.version + 1,
        dead_for=None,
    )


_KEEP: Any = object()


def update_item(
    session: Session,
    project_id: str | None,
    item_id: str,
    *,
    version: int | None = None,
    data: Mapping[str, Any] | None = None,
    os_id: str | None = None,
    vpc_id: str | None = _KEEP,
    is_public: bool | None = None,
    revive: bool = False,
) -> bool:
    """Change one item of a project.

    Args:
        version: change it only if it still has this version.
        data: the whole new blob, or None to leave it.
        os_id: may be set once; an item that has another one is left alone (spec 4.3).
        vpc_id: new value, None to clear.
        is_public: new value, or None to leave it.
        revive: a tombstone becomes a live item again.

    Returns:
        Whether the item was there, as expected, and is changed now.
    """
    values: dict[str, Any] = {"version": ItemRow.version + 1, "updated_at": db_now()}
    if data is not None:
        values["data"] = pack(data)
    if vpc_id is not _KEEP:
        values["vpc_id"] = vpc_id
    if is_public is not None:
        values["is_public"] = is_public
    if revive:
        values["deleted_at"] = None
    statement = sa.update(ItemRow).where(ItemRow.id == item_id)
    if project_id is None:
        statement = statement.where(ItemRow.project_id.is_(None))
    else:
        statement = statement.where(ItemRow.project_id == project_id)
    if os_id is not None:
        values["os_id"] = os_id
        statement = statement.where(sa.or_(ItemRow.os_id.is_(None), ItemRow.os_id == os_id))
    if version is not None:
        statement = statement.where(ItemRow.version == version)
    return changed(session, statement.values(**values)) > 0


def touch_items(session: Session, project_id: str, item_ids: Collection[str]) -> None:
    """Raise the versions of items: what they are shown with has changed, if not they themselves.

    Whoever keeps a description of an item (the metadata service) compares its
    version; called in the transaction of the change.
    """
    for some in chunks(sorted(item_ids), MANY):
        changed(
            session,
            sa.update(ItemRow)
            .where(ItemRow.project_id == project_id, ItemRow.id.in_(some))
            .values(version=ItemRow.version + 1, updated_at=db_now()),
        )


def version_of(session: Session, item_id: str) -> int | None:
    """The version of an item; None when there is none, or a tombstone."""
    found = sa.select(ItemRow.version).where(ItemRow.id == item_id, ItemRow.deleted_at.is_(None))
    return session.scalars(found).one_or_none()


def bury_items(session: Session, project_id: str, item_ids: Collection[str]) -> int:
    """Make tombstones: the items stay with their tags, marked as gone since now.

    Returns:
        How many became tombstones by this call (another process may have been quicker).
    """
    count = 0
    for some in chunks(sorted(item_ids), MANY):
        statement = (
            sa.update(ItemRow)
            .where(
                ItemRow.project_id == project_id,
                ItemRow.id.in_(some),
                ItemRow.deleted_at.is_(None),
            )
            .values(deleted_at=db_now(), updated_at=db_now(), version=ItemRow.version + 1)
        )
        count += changed(session, statement)
    return count


def delete_items(session: Session, project_id: str, item_ids: Collection[str]) -> int:
    """Delete items of a project and their tags.

    Returns:
        How many items there were.
    """
    count = 0
    for some in chunks(sorted(item_ids), MANY):
        count += changed(
            session,
            sa.delete(ItemRow).where(ItemRow.project_id == project_id, ItemRow.id.in_(some)),
        )
        changed(
            session,
            sa.delete(TagRow).where(TagRow.project_id == project_id, TagRow.item_id.in_(some)),
        )
    return count
