"""Making one object of OpenStack so that neither a crash nor a retry makes two.

The pattern of RunInstances for what one call makes (volumes, snapshots, network
interfaces, addresses): the item comes first,
with its final id, tags and client token in one transaction; the object is then
made with that id as its name; last the item learns the object's id.  Whatever
a crash leaves is paired by name on the next describe, or, when the object never
came, goes after ``launch_deadline_seconds``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import CloudError
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries import ec2_tokens as token_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.db.queries.ec2_tags import Tag
from trimaran.db.queries.ec2_tokens import ClientToken
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags
from trimaran.ec2.kinds.volumes.volume_kind import DRAFT, MAKING, STAGE, made
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.reconcile_kind import Found, Pair, View
from trimaran.errors import Conflict, TrimaranError, Unavailable

LOG = logging.getLogger(__name__)

Row = Mapping[str, Any]
#: How often a new id is minted when one is taken.
TRIES = 8


@dataclass(frozen=True)
class Wanted:
    """An object to be made.

    Attributes:
        kind: prefix of its id.
        draft: what is shown of it until it is there, as OpenStack's JSON.
        data: what stays in the item.
        tags: its tags.
        token: the request's client token, or "".
        fingerprint: digest of the request that the token is for.
        vpc_id: the VPC that it is in, if any.
    """

    kind: str
    draft: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    fingerprint: str = ""
    vpc_id: str | None = None

    def tagged(self) -> list[dict[str, str]]:
        """The tags as boto3 shows them."""
        return shown_tags(self.tags)


def make(
    ctx: Context,
    wanted: Wanted,
    create: Callable[[str], Row],
    find: Callable[[str], list[dict[str, Any]]],
    learnt: Callable[[Row], dict[str, Any]] = lambda row: {},
    first: Callable[[Session], object] = lambda session: None,
) -> tuple[View, Pair] | ClientToken:
    """Make an object of OpenStack and its item.

    Args:
        ctx: the request, behind its commit point.
        wanted: what to make.
        create: makes the object of that name and returns its JSON.
        find: the caller's objects of that name, asked when ``create`` got no answer.
        learnt: more for the item's blob, from the object's JSON.
        first: what the transaction that stores the item begins with; it may refuse.

    Returns:
        Item and object with a view of their tags and ids; or the token of the
        request that was first.

    Raises:
        TrimaranError: OpenStack refused; nothing is left.
        Unavailable: OpenStack gave no answer; if the object was made after all, it
            gets the reserved item.
    """
    item = _reserve(ctx, wanted, first)
    if isinstance(item, ClientToken):
        return item
    try:
        row = create(item.id)
    except Unavailable as error:
        row = _look_for(ctx, wanted, item, find, error)
    except TrimaranError:
        _drop(ctx, wanted, item)
        raise
    data = {**made(item.data), **learnt(row)}
    ctx.db.write(
        lambda s: queries.update_item(s, ctx.project_id, item.id, data=data, os_id=row["id"])
    )
    view = View(ctx, ids={row["id"]: item.id})
    if wanted.tags:
        view.tags = {item.id: wanted.tagged()}
    found = Found(wanted.kind, row["id"], row)
    return view, Pair(replace(item, data=data, os_id=row["id"]), found)


def known_token(ctx: Context, token: str, fingerprint: str) -> str:
    """The id that an earlier request with the same token made, or "".

    Raises:
        EC2Error: ``IdempotentParameterMismatch`` when that request asked for something else.
    """
    if not token:
        return ""
    known = ctx.db.read(lambda s: token_queries.find_token(s, ctx.project_id, ctx.action, token))
    return same_request(known, fingerprint) if known else ""


def same_request(known: ClientToken, fingerprint: str) -> str:
    """The result of the request that a token was first used for, if it is the same one.

    Raises:
        EC2Error: ``IdempotentParameterMismatch``.
    """
    if known.fingerprint != fingerprint:
        raise EC2Error(
            "IdempotentParameterMismatch",
            "The client token was used with other parameters before.",
        )
    return known.result


def _reserve(
    ctx: Context, wanted: Wanted, first: Callable[[Session], object]
) -> Item | ClientToken:
    data = {**wanted.data, STAGE: MAKING, DRAFT: wanted.draft}
    for _ in range(TRIES):
        item_id = ids.mint(wanted.kind)
        new = NewItem(wanted.kind, None, ctx.project_id, data, wanted.vpc_id, id=item_id)

        def store(
            session: Session, new: NewItem = new, item_id: str = item_id
        ) -> Item | ClientToken:
            first(session)
            if wanted.token:
                taken = token_queries.take_token(
                    session, ctx.project_id, ctx.action, wanted.token, wanted.fingerprint, item_id
                )
                if taken.result != item_id:
                    return taken
            [item] = queries.add_items(session, [new], ids.mint)
            rows = [Tag(item.id, key, value) for key, value in wanted.tags.items()]
            tag_queries.set_tags(session, ctx.project_id, rows)
            return item

        try:
            return ctx.db.write(store)
        except Conflict:
            continue  # the id is taken: nothing was stored, mint another
    raise TrimaranError("No free id could be found.")


def _look_for(
    ctx: Context,
    wanted: Wanted,
    item: Item,
    find: Callable[[str], list[dict[str, Any]]],
    error: TrimaranError,
) -> Row:
    """No answer is no refusal: the object may be there."""
    words = error.remote_message if isinstance(error, CloudError) else str(error)
    LOG.warning("OpenStack did not say whether it made %s: %s", item.id, words)
    try:
        rows = find(item.id)
    except TrimaranError:
        raise error from None  # the item stays, in case that the object comes
    if rows:
        return rows[0]
    _drop(ctx, wanted, item)
    raise error


def _drop(ctx: Context, wanted: Wanted, item: Item) -> None:
    def write(session: Session) -> None:
        queries.delete_items(session, ctx.project_id, [item.id])
        if wanted.token:
            token_queries.drop_token(session, ctx.project_id, ctx.action, wanted.token, item.id)

    ctx.db.write(write)
