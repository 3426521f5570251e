"""Customer gateways: the far ends of VPN connections, known by their address (spec ec2.md 3.3)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_item
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs.vpc_kind import named_item
from trimaran.ec2.kinds.vpn import vpn_items
from trimaran.ec2.kinds.vpn.vpn_items import ADDRESS, CONNECTION, OF_CUSTOMER, TYPE
from trimaran.ec2.protocol import filters
from trimaran.ec2.protocol.errors import EC2Error, invalid_combination, invalid_value, unsupported

Request = Mapping[str, Any]

PREFIX = vpn_items.CUSTOMER
#: Routes are static here; this is the number of who speaks no BGP.
ASN = 65000
NAME = "device_name"

FILTERS: filters.Table = {
    "bgp-asn": "BgpAsn",
    "customer-gateway-id": "CustomerGatewayId",
    "device-name": "DeviceName",
    "ip-address": "IpAddress",
    "state": "State",
    "type": "Type",
}


def create_customer_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a customer gateway, or find the one of this address."""
    vpn_items.check_type(request)
    specified = tag_specifications(request.get("TagSpecifications"), ["customer-gateway"])
    tags = specified.get("customer-gateway", {})
    address = _checked_address(request)
    if request.get("CertificateArn"):
        raise unsupported("Certificates of customer gateways are not supported.")
    for asn in (request.get("BgpAsn"), request.get("BgpAsnExtended")):
        if asn not in (None, ASN):
            raise EC2Error("Unsupported", f"BGP is not supported; the BgpAsn must be {ASN}.")
    items, known_tags = ctx.db.read(lambda s: vpn_items.read(s, ctx.project_id, PREFIX))
    ctx.commit_point()
    for item in items.values():
        if item.data.get(ADDRESS) == address:
            return {"CustomerGateway": _shown(item, known_tags.get(item.id))}
    data = {ADDRESS: address}
    if request.get("DeviceName"):
        data[NAME] = request["DeviceName"]
    made = store_item(
        ctx,
        lambda s: NewItem(PREFIX, None, ctx.project_id, data, id=ids.mint(PREFIX)),
        tags=tags,
    )
    return {"CustomerGateway": _shown(made, shown_tags(tags))}


def _checked_address(request: Request) -> str:
    given = {request.get("IpAddress"), request.get("PublicIp")} - {None, ""}
    if not given:
        raise EC2Error("Unsupported", "A customer gateway needs an IP address.")
    if len(given) > 1:
        raise invalid_combination("IpAddress and PublicIp are the same parameter.")
    text = str(given.pop())
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise invalid_value("ipAddress", text, "Not a valid IP address") from None


def describe_customer_gateways(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's customer gateways."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    asked = request.get("CustomerGatewayIds")
    wanted = ids.check_ids(asked, "customerGatewayId", PREFIX)
    items, tags = ctx.db.read(lambda s: vpn_items.read(s, ctx.project_id, PREFIX))
    rows = [_shown(item, tags.get(item.id)) for item in vpn_items.choose(items, wanted)]
    rows.sort(key=lambda row: str(row["CustomerGatewayId"]))
    return {"CustomerGateways": matches.apply(rows)}


def delete_customer_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a customer gateway that no connection needs."""
    item = named_item(ctx, request.get("CustomerGatewayId"), "CustomerGatewayId", PREFIX)

    def check(session: Session) -> None:
        connections = queries.items_of(session, ctx.project_id, [CONNECTION])
        if any(each.data.get(OF_CUSTOMER) == item.id for each in connections):
            raise vpn_items.in_use(item.id, "is in use by a VPN connection")

    vpn_items.delete(ctx, item, check)
    return {}


def _shown(item: Item, tags: Sequence[dict[str, str]] | None) -> dict[str, Any]:
    made = {
        "CustomerGatewayId": item.id,
        "State": "available",
        "Type": TYPE,
        "IpAddress": item.data.get(ADDRESS),
        "BgpAsn": str(ASN),
        "DeviceName": item.data.get(NAME),
        "Tags": list(tags or ()),
    }
    return {name: value for name, value in made.items() if value is not None}
