"""Making an image so that a crash leaves neither an image without item nor an item without image.

The item comes first, with its final id, its tags and an entry in the journal;
the image is then made with that id as a property; last the item learns the
image's id.  Whoever finds the entry of a dead process links what there is, and
removes what is only half there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import CloudError, CloudSession
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_kind import MAKING, MARK, STAGE, made
from trimaran.errors import Conflict, NotFound, TrimaranError, Unavailable

LOG = logging.getLogger(__name__)

#: How often a new id is minted when one is taken.
TRIES = 8

Row = Mapping[str, Any]
T = TypeVar("T")


def make_image(
    ctx: Context,
    create: Callable[[str], Row],
    *,
    kind: str = "ami",
    noted: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    then: Callable[[Session, str, str], object] | None = None,
) -> str:
    """Make an image and its item.

    Args:
        ctx: the request, behind its commit point.
        create: makes the image with the given EC2 id as its property
            ``ec2_id`` and returns Glance's JSON; leaves nothing when it raises.
        kind: prefix of the id.
        noted: what the item's blob keeps of the request; what is empty is left out.
        tags: of the image.
        then: called with session, EC2 id and Glance's id in the transaction
            that links the two: what is to be done with the image from there on.

    Returns:
        The image's EC2 id.

    Raises:
        TrimaranError: what ``create`` raised; nothing is left.
        Unavailable: nobody knows whether there is an image; the journal will see.
    """
    data: dict[str, Any] = {"is_public": False, STAGE: MAKING}
    data |= {name: value for name, value in (noted or {}).items() if value not in ("", {}, None)}

    def begin(session: Session, image_id: str) -> str:
        payload = {"project": ctx.project_id, "item": image_id}
        return journal.begin(session, ctx.conf, journal.IMAGE, image_id, payload)

    item, job_id = reserve_item(ctx, kind, data, tags or {}, begin)
    try:
        image = create(item.id)
    except Unavailable:
        raise
    except TrimaranError:
        ctx.db.write(lambda s: _drop(s, ctx.project_id, item.id, job_id))
        raise

    def link(session: Session) -> None:
        _link(session, ctx.project_id, item, image["id"], job_id)
        if then is not None:
            then(session, item.id, image["id"])

    ctx.db.write(link)
    return item.id


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.image``: the process that made an image died."""
    item_id = job.payload["item"]
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [item_id]))
    if not items or items[0].data.get(STAGE) != MAKING:
        return
    query = {"owner": ctx.project_id, MARK: item_id, "visibility": "all"}
    for image in ctx.admin.image.images(**query):
        if image.get("owner") != ctx.project_id or image.get(MARK) != item_id:
            continue
        if image.get("status") in ("queued", "killed"):
            discard(ctx.admin, image["id"])
            continue
        job.commit(partial(_link_only, project_id=ctx.project_id, item=items[0], os_id=image["id"]))
        return
    job.commit(lambda s: _drop(s, ctx.project_id, item_id, None))


def discard(cloud: CloudSession, os_id: str) -> None:
    """Delete an image that is half there; a failure is logged only."""
    try:
        cloud.image.delete_image(os_id)
    except NotFound:
        pass
    except TrimaranError as error:
        words = error.remote_message if isinstance(error, CloudError) else str(error)
        LOG.error("Image %s, which was not finished, could not be deleted: %s", os_id, words)


def reserve_item(
    ctx: Context,
    kind: str,
    data: Mapping[str, Any],
    tags: Mapping[str, str],
    begin: Callable[[Session, str], T],
) -> tuple[Item, T]:
    """Store the item of an image that is still to be made.

    Args:
        ctx: the request, behind its commit point.
        kind: prefix of the id.
        data: the item's blob.
        tags: of the image.
        begin: called with session and EC2 id in the same transaction, to record
            who makes the image.

    Returns:
        The item, and what ``begin`` returned.
    """
    for _ in range(TRIES):
        new = NewItem(kind, None, ctx.project_id, data, id=ids.mint(kind))

        def store(session: Session, new: NewItem = new) -> tuple[Item, T]:
            [item] = queries.add_items(session, [new], ids.mint)
            rows = [Tag(item.id, key, value) for key, value in tags.items()]
            tag_queries.set_tags(session, ctx.project_id, rows)
            return item, begin(session, item.id)

        try:
            return ctx.db.write(store)
        except Conflict:
            continue  # the id is taken: nothing was stored, mint another
    raise TrimaranError("No free id could be found.")


def _link(session: Session, project_id: str, item: Item, os_id: str, job_id: str | None) -> None:
    queries.update_item(session, project_id, item.id, data=made(item.data), os_id=os_id)
    if job_id:
        journal.end(session, job_id)


def _link_only(session: Session, *, project_id: str, item: Item, os_id: str) -> None:
    _link(session, project_id, item, os_id, None)


def _drop(session: Session, project_id: str, item_id: str, job_id: str | None) -> None:
    queries.delete_items(session, project_id, [item_id])
    if job_id:
        journal.end(session, job_id)
