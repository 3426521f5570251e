"""Sets of DHCP options, and which one a VPC uses (spec ec2.md 3.4)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_item
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs import topology
from trimaran.ec2.kinds.vpcs.dhcp_options_ports import CONFIGURATION, NAMES, PROVIDED, sync_ports
from trimaran.ec2.kinds.vpcs.vpc_kind import (
    DHCP_OPTIONS,
    in_use,
    locked_vpc,
    named_item,
    one_vpc,
    usable,
)
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing
from trimaran.ec2.tags_shown import tags_by_item

Request = Mapping[str, Any]

PREFIX = "dopt"
#: What AssociateDhcpOptions takes for "no set", and VPCs without one show.
DEFAULT = "default"

_SERVERS = ("domain-name-servers", "netbios-name-servers", "ntp-servers")
_NODE_TYPES = ("1", "2", "4", "8")
_LONGEST = 255

FILTERS: filters.Table = {
    "dhcp-options-id": "DhcpOptionsId",
    # Upstream's spelling.
    "dhcp_options_id": "DhcpOptionsId",
    "key": "DhcpConfigurations.Key",
    "owner-id": "OwnerId",
    "value": "DhcpConfigurations.Values.Value",
}


def create_dhcp_options(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a set of options."""
    configuration = _configuration(request.get("DhcpConfigurations"))
    specified = tag_specifications(request.get("TagSpecifications"), ["dhcp-options"])
    tags = specified.get("dhcp-options", {})
    ctx.commit_point()
    data = {CONFIGURATION: configuration}
    item = store_item(
        ctx, lambda s: NewItem(PREFIX, None, ctx.project_id, data, id=ids.mint(PREFIX)), tags=tags
    )
    return {"DhcpOptions": _shown(ctx, item, shown_tags(tags))}


def describe_dhcp_options(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's sets of options."""
    page = paging.Page(ctx.action, request, ids="DhcpOptionsIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("DhcpOptionsIds"), "dhcpOptionsId", PREFIX)

    def read(session: Session) -> tuple[list[Item], list[tag_queries.Tag]]:
        items = queries.items_of(session, ctx.project_id, [PREFIX])
        return items, tag_queries.tags_of(session, ctx.project_id, [PREFIX])

    items, rows = ctx.db.read(read)
    by_id = {item.id: item for item in items}
    if absent := set(wanted) - set(by_id):
        raise ids.missing_ids(absent)
    tags = tags_by_item(rows)
    made = [_shown(ctx, by_id[each], tags.get(each)) for each in wanted or by_id]
    shown, token = page.slice(matches.apply(made), key=lambda row: row["DhcpOptionsId"])
    return {"DhcpOptions": shown, "NextToken": token}


def delete_dhcp_options(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a set that no VPC uses."""
    options = _one(ctx, request.get("DhcpOptionsId"))

    def check(session: Session) -> None:
        vpcs = queries.items_of(session, ctx.project_id, ["vpc"])
        if any(vpc.data.get(DHCP_OPTIONS) == options.id for vpc in vpcs):
            raise in_use("dhcpOptions", options.id)

    ctx.db.read(check)
    ctx.commit_point()

    def delete(session: Session) -> None:
        queries.locked_items(session, ctx.project_id, [options.id])
        check(session)
        queries.delete_items(session, ctx.project_id, [options.id])

    ctx.db.write(delete)
    return {}


def associate_dhcp_options(ctx: Context, request: Request) -> dict[str, Any]:
    """Let a VPC use a set, or none; its interfaces, and no others, learn of it (F31)."""
    wanted = request.get("DhcpOptionsId")
    chosen = None if wanted == DEFAULT else _one(ctx, wanted)
    vpc = one_vpc(ctx, request.get("VpcId"))
    ctx.commit_point()
    value = chosen.id if chosen else None
    # Untouched ports of a VPC that never had a set stay untouched.
    if value is None and DHCP_OPTIONS not in vpc.data:
        return {}
    before: list[dict[str, Any]] = []

    def put(session: Session, data: Mapping[str, Any]) -> None:
        queries.update_item(session, ctx.project_id, vpc.id, data=data)

    def apply(session: Session) -> None:
        current = locked_vpc(session, ctx.project_id, vpc.id)
        if value:
            usable(queries.locked_items(session, ctx.project_id, [value]), value)
        before[:] = [dict(current.data)]
        put(session, {**current.data, DHCP_OPTIONS: value})

    def take_back(session: Session) -> None:
        current = locked_vpc(session, ctx.project_id, vpc.id)
        if current.data.get(DHCP_OPTIONS) == value:
            put(session, {**current.data, DHCP_OPTIONS: before[0].get(DHCP_OPTIONS)})

    topology.change(ctx, vpc.id, apply, lambda: sync_ports(ctx, vpc.id), take_back)
    return {}


def _one(ctx: Context, options_id: str | None) -> Item:
    return named_item(ctx, options_id, "DhcpOptionsId", PREFIX)


def _configuration(rows: Sequence[Mapping[str, Any]] | None) -> dict[str, list[str]]:
    if not rows:
        raise missing("DhcpConfiguration")
    found: dict[str, list[str]] = {}
    for row in rows:
        key, values = row.get("Key") or "", row.get("Values") or []
        if key not in NAMES:
            raise invalid_value("DhcpConfiguration.Key", key, "Unknown DHCP option.")
        if not values:
            raise _invalid(key, "", "An option needs a value.")
        for value in values:
            _check(key, str(value))
        found[key] = [str(value) for value in values]
    return found


def _check(key: str, value: str) -> None:
    if key in _SERVERS:
        if key == "domain-name-servers" and value == PROVIDED:
            return
        try:
            ipaddress.IPv4Address(value)
        except ValueError:
            raise _invalid(key, value, "It is no IPv4 address.") from None
    elif key == "netbios-node-type" and value not in _NODE_TYPES:
        raise _invalid(key, value, "It must be 1, 2, 4 or 8.")
    elif not value or len(value) > _LONGEST or any(char in value for char in ",\n\0"):
        # One option is one line of the DHCP server's configuration.
        raise _invalid(key, value, "It is no domain name.")


def _invalid(key: str, value: str, reason: str) -> EC2Error:
    return invalid_value(f"DhcpConfiguration.{key}", value, reason)


def _shown(
    ctx: Context, item: Item, tags: Sequence[dict[str, str]] | None = None
) -> dict[str, Any]:
    configuration = item.data.get(CONFIGURATION) or {}
    return {
        "DhcpOptionsId": item.id,
        "OwnerId": ctx.project_id,
        "DhcpConfigurations": [
            {"Key": key, "Values": [{"Value": str(value)} for value in values]}
            for key, values in configuration.items()
        ],
        "Tags": list(tags or ()),
    }
