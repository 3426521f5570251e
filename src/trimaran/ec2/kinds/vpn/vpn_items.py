"""Items of the VPN kinds: gateways, customers' gateways, connections.

All of them live in the database; what Neutron has for them follows (`vpn_sync`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE, usable
from trimaran.ec2.protocol.errors import EC2Error, invalid_value
from trimaran.ec2.tags_shown import Tags, tags_by_item

GATEWAY = "vgw"
CUSTOMER = "cgw"
CONNECTION = "vpn"

#: The only type of gateways and connections.
TYPE = "ipsec.1"

# Upstream's names in the blobs (spec ec2.md 4.1).
ADDRESS = "ip_address"
OF_CUSTOMER = "customer_gateway_id"
OF_GATEWAY = "vpn_gateway_id"
RANGES = "cidrs"
SECRET = "pre_shared_key"  # noqa: S105 - the name of a field
IKE = "os_ikepolicy_id"
IPSEC = "os_ipsecpolicy_id"


def read(session: Session, project_id: str, kind: str) -> tuple[dict[str, Item], Tags]:
    """The items of a kind that are there, by id, and their tags."""
    items = {
        item.id: item
        for item in queries.items_of(session, project_id, [kind])
        if STAGE not in item.data
    }
    return items, tags_by_item(tag_queries.tags_of(session, project_id, [kind]))


def choose(items: dict[str, Item], wanted: Sequence[str]) -> list[Item]:
    """The items of some ids, or all when none are given.

    Raises:
        EC2Error: the kind's ``NotFound``.
    """
    absent = [item_id for item_id in wanted if item_id not in items]
    if absent:
        raise ids.missing_ids(absent)
    return [items[item_id] for item_id in wanted or items]


def locked(session: Session, project_id: str, item_id: str) -> Item:
    """An item, kept from everybody else's changes until the transaction ends.

    Raises:
        EC2Error: the kind's ``NotFound``.
    """
    return usable(queries.locked_items(session, project_id, [item_id]), item_id)


def delete(ctx: Context, item: Item, check: Callable[[Session], None]) -> None:
    """Delete an item unless something speaks against it.

    Args:
        ctx: the request.
        item: what to delete.
        check: raises for a reason not to; asked before the commit point, and
            once more when nobody else can change the item.
    """
    ctx.db.read(check)
    ctx.commit_point()

    def apply(session: Session) -> None:
        locked(session, ctx.project_id, item.id)
        check(session)
        queries.delete_items(session, ctx.project_id, [item.id])

    ctx.db.write(apply)


def check_type(request: Any) -> None:
    """The one type that there is.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    if request.get("Type") != TYPE:
        raise invalid_value("type", request.get("Type") or "", f"Expected: {TYPE}")


def in_use(item_id: str, why: str) -> EC2Error:
    """The error for what cannot go because something needs it."""
    return EC2Error("IncorrectState", f"The resource '{item_id}' {why}.")
