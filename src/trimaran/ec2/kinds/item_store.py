"""Storing new items with their tags, under ids that are free (spec ec2.md F19)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Conflict, TrimaranError

T = TypeVar("T")

#: How often new ids are minted when one is taken.
TRIES = 8


def store_items(
    ctx: Context,
    wanted: Callable[[Session], Sequence[NewItem]],
    *,
    tags: Mapping[str, str] | None = None,
    beside: Callable[[Session, list[Item]], T],
) -> tuple[list[Item], T]:
    """Store new items in one transaction.

    Args:
        ctx: whose they are.
        wanted: the items with ids of their own, freshly minted at each call; it
            is the place for checks and locks, and may raise.
        tags: of the first one.
        beside: what else belongs into the transaction.

    Returns:
        The items in their order, and what ``beside`` returned.
    """

    def store(session: Session) -> tuple[list[Item], T]:
        items = queries.add_items(session, wanted(session), ids.mint)
        rows = [Tag(items[0].id, key, value) for key, value in (tags or {}).items()]
        tag_queries.set_tags(session, ctx.project_id, rows)
        return items, beside(session, items)

    for _ in range(TRIES):
        try:
            return ctx.db.write(store)
        except EC2Error:
            raise
        except Conflict:
            continue  # an id is taken: nothing was stored
    raise TrimaranError("No free id could be found.")


def store_item(
    ctx: Context,
    wanted: Callable[[Session], NewItem],
    *,
    tags: Mapping[str, str] | None = None,
) -> Item:
    """Store one item that nothing else belongs to; see `store_items`."""
    items, _ = store_items(ctx, lambda s: [wanted(s)], tags=tags, beside=lambda s, items: None)
    return items[0]


def shown_tags(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    """The tags of a create as boto3 shows them."""
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]
