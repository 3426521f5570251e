"""Static routes of VPN connections: what is behind the customer's gateway (spec ec2.md 3.18)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import route_push, topology
from trimaran.ec2.kinds.vpcs.vpc_kind import named_item
from trimaran.ec2.kinds.vpn import vpn_items, vpn_sync
from trimaran.ec2.kinds.vpn.vpn_items import CONNECTION, OF_GATEWAY, RANGES
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing

Request = Mapping[str, Any]

#: Ranges of a connection at most, as AWS has it (and well below what a blob holds).
MOST_RANGES = 100


def create_vpn_connection_route(ctx: Context, request: Request) -> dict[str, Any]:
    """Add a range to a connection; one that is there already is no error."""

    def add(ranges: list[str], cidr: str) -> list[str]:
        if cidr in ranges:
            return ranges
        if len(ranges) >= MOST_RANGES:
            raise EC2Error("VpnConnectionRouteLimitExceeded", "The connection has too many routes.")
        return [*ranges, cidr]

    return _edit(ctx, request, add)


def delete_vpn_connection_route(ctx: Context, request: Request) -> dict[str, Any]:
    """Take a range away from a connection."""

    def remove(ranges: list[str], cidr: str) -> list[str]:
        if cidr not in ranges:
            raise EC2Error("InvalidRoute.NotFound", f"The specified route {cidr} does not exist.")
        return [each for each in ranges if each != cidr]

    return _edit(ctx, request, remove)


def _edit(
    ctx: Context, request: Request, change: Callable[[list[str], str], list[str]]
) -> dict[str, Any]:
    item = named_item(ctx, request.get("VpnConnectionId"), "VpnConnectionId", CONNECTION)
    cidr = _checked(request.get("DestinationCidrBlock"))
    change(list(item.data.get(RANGES) or ()), cidr)
    ctx.commit_point()
    before: list[str] = []

    def apply(session: Session) -> None:
        current = vpn_items.locked(session, ctx.project_id, item.id)
        before[:] = current.data.get(RANGES) or ()
        data = {**current.data, RANGES: change(list(before), cidr)}
        queries.update_item(session, ctx.project_id, item.id, data=data)

    def take_back(session: Session) -> None:
        for current in queries.locked_items(session, ctx.project_id, [item.id]):
            ranges = [each for each in current.data.get(RANGES) or () if each != cidr]
            if cidr in before:
                ranges.append(cidr)
            data = {**current.data, RANGES: ranges}
            queries.update_item(session, ctx.project_id, item.id, data=data)

    gateway = item.data.get(OF_GATEWAY) or ""
    vpc_id = ctx.db.read(lambda s: vpn_sync.attached_gateway(s, ctx.project_id, gateway))
    if not vpc_id:
        ctx.db.write(apply)
        return {}

    def tell() -> None:
        route_push.push_routes(ctx, vpc_id)
        vpn_sync.sync_vpn(ctx, vpc_id)

    topology.change(ctx, vpc_id, apply, tell, take_back)
    return {}


def _checked(text: str | None) -> str:
    if not text:
        raise missing("DestinationCidrBlock")
    try:
        if "/" not in text:
            raise ValueError
        return str(ipaddress.IPv4Network(text, strict=False))
    except ValueError:
        raise invalid_value(
            "destinationCidrBlock", text, "This is not a valid CIDR block."
        ) from None
