"""How VPN connections look on the wire (spec ec2.md 3.18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import NoEndpoint, gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpn import vpn_items as names
from trimaran.ec2.kinds.vpn.vpn_configuration import configuration
from trimaran.errors import NotFound

Row = Mapping[str, Any]


@dataclass
class Around:
    """What connections are shown with.

    Attributes:
        customers: addresses by customer gateway.
        gateways: our side's addresses by VPN gateway.
        ike: Neutron's IKE policies by id.
        ipsec: Neutron's IPsec policies by id.
    """

    customers: dict[str, str] = field(default_factory=dict)
    gateways: dict[str, str] = field(default_factory=dict)
    ike: dict[str, Row] = field(default_factory=dict)
    ipsec: dict[str, Row] = field(default_factory=dict)


def look_around(ctx: Context) -> Around:
    """What all connections of the project are shown with: three calls, whatever their number."""

    def read(session: Session) -> list[Item]:
        kinds = [names.CUSTOMER, names.GATEWAY, "vpc"]
        return queries.items_of(session, ctx.project_id, kinds)

    items = ctx.db.read(read)
    neutron = ctx.user.network
    mine = {"project_id": ctx.project_id}
    try:
        seen = gather(
            ike=lambda: neutron.ike_policies(**mine),
            ipsec=lambda: neutron.ipsec_policies(**mine),
            routers=lambda: neutron.routers(**mine, fields=["id", "external_gateway_info"]),
        )
    except (NotFound, NoEndpoint):
        seen = {"ike": [], "ipsec": [], "routers": []}
    made = Around(
        ike={row["id"]: row for row in seen["ike"]},
        ipsec={row["id"]: row for row in seen["ipsec"]},
    )
    outside = {row["id"]: _address(row) for row in seen["routers"]}
    routers = {item.id: item.os_id for item in items if item.kind == "vpc"}
    for item in items:
        if item.kind == names.CUSTOMER:
            made.customers[item.id] = item.data.get(names.ADDRESS) or ""
        elif item.kind == names.GATEWAY and item.vpc_id:
            made.gateways[item.id] = outside.get(routers.get(item.vpc_id) or "", "")
    return made


def _address(router: Row) -> str:
    addresses = (router.get("external_gateway_info") or {}).get("external_fixed_ips") or ()
    found = [row["ip_address"] for row in addresses if ":" not in row["ip_address"]]
    return str(found[0]) if found else ""


def shown_connection(
    item: Item, around: Around, tags: Sequence[dict[str, str]] | None
) -> dict[str, Any]:
    """A connection as boto3 shows it."""
    data = item.data
    customer = around.customers.get(data.get(names.OF_CUSTOMER) or "", "")
    gateway = around.gateways.get(data.get(names.OF_GATEWAY) or "", "")
    ike = around.ike.get(data.get(names.IKE) or "", {})
    ipsec = around.ipsec.get(data.get(names.IPSEC) or "", {})
    return {
        "VpnConnectionId": item.id,
        "State": "available",
        "Type": names.TYPE,
        "Category": "VPN",
        "CustomerGatewayId": data.get(names.OF_CUSTOMER),
        "VpnGatewayId": data.get(names.OF_GATEWAY),
        "CustomerGatewayConfiguration": configuration(item, customer, gateway, ike, ipsec),
        "Options": {
            "EnableAcceleration": False,
            "StaticRoutesOnly": True,
            "LocalIpv4NetworkCidr": "0.0.0.0/0",
            "RemoteIpv4NetworkCidr": "0.0.0.0/0",
            "TunnelInsideIpVersion": "ipv4",
        },
        "Routes": [
            {"DestinationCidrBlock": cidr, "Source": "Static", "State": "available"}
            for cidr in data.get(names.RANGES) or ()
        ],
        "VgwTelemetry": [],
        "Tags": list(tags or ()),
    }
