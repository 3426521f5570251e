"""Tags: one statement to read those of a describe, an upsert to write them.

A tag's key is compared by its bytes on every dialect.  Tags belong to the
project, not to the object: another project never sees them (spec ec2.md 3.14).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Session

from trimaran.db.models.ec2 import TagRow
from trimaran.db.queries.ec2 import MANY, ROWS, chunks
from trimaran.db.upsert import changed

TABLE = cast("sa.Table", TagRow.__table__)


class Tag(NamedTuple):
    """One tag as read."""

    item_id: str
    key: str
    value: str


def _tags(session: Session, *where: sa.ColumnElement[bool]) -> list[Tag]:
    statement = (
        sa.select(TagRow.item_id, TagRow.key, TagRow.value)
        .where(*where)
        .order_by(TagRow.item_id, TagRow.key)
    )
    return [Tag(row[0], row[1], row[2] or "") for row in session.execute(statement)]


def tags_of(session: Session, project_id: str, kinds: Collection[str] | None = None) -> list[Tag]:
    """A project's tags on items of the kinds (id prefixes), or all of them; sorted."""
    where: list[sa.ColumnElement[bool]] = [TagRow.project_id == project_id]
    if kinds is not None:
        # "-" sorts directly before ".", so this is a range of the primary key.
        where.append(
            sa.or_(
                *(
                    sa.and_(TagRow.item_id >= f"{kind}-", TagRow.item_id < f"{kind}.")
                    for kind in kinds
                )
            )
        )
    return _tags(session, *where)


def tags_by_items(session: Session, project_id: str, item_ids: Collection[str]) -> list[Tag]:
    """A project's tags on the items; sorted."""
    found: list[Tag] = []
    for some in chunks(sorted(item_ids), MANY):
        found += _tags(session, TagRow.project_id == project_id, TagRow.item_id.in_(some))
    return found


def set_tags(session: Session, project_id: str, tags: Sequence[Tag]) -> None:
    """Insert tags or change the values of those that are there; the last of equal ones wins."""
    last = {(tag.item_id, tag.key): tag.value for tag in tags}
    rows = [
        {"project_id": project_id, "item_id": item_id, "key": key, "value": value}
        for (item_id, key), value in sorted(last.items())
    ]
    dialect = session.get_bind().dialect.name
    for some in chunks(rows, ROWS):
        statement: Any
        if dialect in ("mysql", "mariadb"):
            insert = mysql.insert(TABLE).values(some)
            statement = insert.on_duplicate_key_update(value=insert.inserted.value)
        else:
            make: Any = postgresql.insert if dialect == "postgresql" else sqlite.insert
            insert = make(TABLE).values(some)
            statement = insert.on_conflict_do_update(
                index_elements=["project_id", "item_id", "key"],
                set_={"value": insert.excluded.value},
            )
        session.execute(statement)


def delete_tags(
    session: Session,
    project_id: str,
    item_ids: Collection[str],
    pairs: Sequence[tuple[str, str | None]] | None,
) -> int:
    """Delete tags of the items.

    Args:
        pairs: (key, value) pairs; the value None deletes whatever it is, any
            other text (the empty one as well) only if it is equal.  None
            deletes all tags of the items.

    Returns:
        How many tags were deleted.
    """
    count = 0
    for some in chunks(sorted(item_ids), MANY):
        where = [TagRow.project_id == project_id, TagRow.item_id.in_(some)]
        if pairs is not None:
            where.append(
                sa.or_(
                    *(
                        TagRow.key == key
                        if value is None
                        else sa.and_(TagRow.key == key, TagRow.value == value)
                        for key, value in pairs
                    )
                )
            )
        count += changed(session, sa.delete(TagRow).where(*where))
    return count
