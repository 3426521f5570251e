"""The default security group of each VPC: made with it, repaired, deleted with it.

In Neutron it is a group of the project that bears the VPC's id as its name; its
item has the VPC's number (spec ec2.md 3.11).  That name is how it is found
again after a crash, and how a second one is not made.  Neutron's initial rules
stay as they are: everything may leave, nothing may come in.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import CloudSession
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.errors import Forbidden, NotFound, QuotaExceeded

LOG = logging.getLogger(__name__)

PREFIX = "sg"
#: How the group is called on the wire.
NAME = "default"
DESCRIPTION = "Default VPC security group"


def default_group_id(vpc_id: str) -> str:
    """The id of a VPC's default group."""
    return ids.derive(vpc_id, PREFIX)


def is_default_group(item: Item) -> bool:
    """Whether a group is the default one of its VPC."""
    return item.vpc_id is not None and item.id == default_group_id(item.vpc_id)


def make_default_group(ctx: Context, cloud: CloudSession, vpc_id: str) -> str:
    """Make the default group of a VPC in Neutron, or find it.

    Args:
        ctx: whose VPC it is.
        cloud: as whom; the group belongs to the project in any case.
        vpc_id: the VPC.

    Returns:
        Its Neutron id.

    Raises:
        QuotaExceeded: the project may have no more groups.
    """
    there = _named(ctx, cloud, vpc_id)
    if there:
        return min(there)
    body = {"project_id": ctx.project_id, "name": vpc_id, "description": DESCRIPTION}
    return str(cloud.network.create_security_group(body)["id"])


def default_group_item(ctx: Context, vpc_id: str, os_id: str) -> NewItem:
    """The item of a VPC's default group."""
    return NewItem(PREFIX, os_id, ctx.project_id, vpc_id=vpc_id, id=default_group_id(vpc_id))


def delete_default_group(ctx: Context, cloud: CloudSession, vpc_id: str) -> None:
    """Delete the default group of a VPC in Neutron, if it is there.

    Raises:
        Conflict: a port is still in it.
    """
    for os_id in _named(ctx, cloud, vpc_id):
        with contextlib.suppress(NotFound):
            cloud.network.delete_security_group(os_id)


def repair_default_groups(ctx: Context, vpcs: Iterable[Item]) -> bool:
    """Give VPCs the default group that they lack (somebody deleted it in Neutron).

    One process makes a group, whoever else looks waits for it (spec 11.15).

    Args:
        ctx: the request.
        vpcs: VPCs whose group was not among the listed ones.

    Returns:
        Whether anything was done, so that what was listed is not true any more.
    """
    done = False
    for vpc in vpcs:
        with work.hold(ctx.db, f"ec2.default-group.{vpc.id}"):
            if not _exists(ctx, vpc.id):
                continue  # it was deleted meanwhile
            try:
                os_id = make_default_group(ctx, ctx.user, vpc.id)
            except (QuotaExceeded, Forbidden) as error:
                # Whoever only looks is not kept from seeing the other groups.
                LOG.warning("%s has no default group, nor gets one: %s", vpc.id, error.message)
                continue
            _store(ctx, vpc.id, os_id)
            done = True
    return done


def _exists(ctx: Context, item_id: str) -> bool:
    return bool(ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [item_id])))


def _store(ctx: Context, vpc_id: str, os_id: str) -> None:
    new = default_group_item(ctx, vpc_id, os_id)

    def write(session: Session) -> None:
        stale = queries.items_by_ids(session, ctx.project_id, [new.id])
        # A describe may have stored the group under an id of its own.
        stale += queries.by_os_ids(session, [os_id]).values()
        gone = {item.id for item in stale if (item.id, item.os_id) != (new.id, os_id)}
        queries.delete_items(session, ctx.project_id, gone)
        queries.add_items(session, [new], ids.mint)

    ctx.db.write(write)


def _named(ctx: Context, cloud: CloudSession, vpc_id: str) -> list[str]:
    rows = cloud.network.security_groups(
        name=vpc_id, project_id=ctx.project_id, fields=["id", "name", "project_id"]
    )
    return [str(row["id"]) for row in rows if row.get("project_id") in (None, ctx.project_id)]
