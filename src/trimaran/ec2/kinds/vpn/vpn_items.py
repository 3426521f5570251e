"""Items of the VPN kinds: gateways, customers' gateways, connections.

All of them live in the database; what Neutron has for them follows (`vpn_sync`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE, usable
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing

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

Tags = dict[str, list[dict[str, str]]]


def read(session: Session, project_id: str, kind: str) -> tuple[dict[str, Item], Tags]:
    """The items of a kind that are there, by id, and their tags."""
    items = {
        item.id: item
        for item in queries.items_of(session, project_id, [kind])
        if STAGE not in item.data
    }
    tags: Tags = {}
    for tag in tag_queries.tags_of(session, project_id, [kind]):
        tags.setdefault(tag.item_id, []).append({"Key": tag.key, "Value": tag.value})
    return items, tags


def choose(items: dict[str, Item], wanted: Sequence[str]) -> list[Item]:
    """The items of some ids, or all when none are given.

    Raises:
        EC2Error: the kind's ``NotFound``.
    """
    absent = [item_id for item_id in wanted if item_id not in items]
    if absent:
        raise ids.missing_ids(absent)
    return [items[item_id] for item_id in wanted or items]


def one(ctx: Context, item_id: str | None, parameter: str, kind: str) -> Item:
    """The item that a request names.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, the kind's ``NotFound``.
    """
    if not item_id:
        raise missing(parameter)
    ids.check_id(item_id, parameter[:1].lower() + parameter[1:], kind)
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [item_id]))
    return usable(items, item_id)


def locked(session: Session, project_id: str, item_id: str) -> Item:
    """An item, kept from everybody else's changes until the transaction ends.

    Raises:
        EC2Error: the kind's ``NotFound``.
    """
    return usable(queries.locked_items(session, project_id, [item_id]), item_id)


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
