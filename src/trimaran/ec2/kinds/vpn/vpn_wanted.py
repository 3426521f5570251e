"""What a VPC should have of Neutron's VPN as a service, by its items (spec ec2.md 3.17, 3.18)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trimaran.db.queries.ec2 import Item
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE
from trimaran.ec2.kinds.vpn import vpn_items as names

KINDS = ("vpc", "subnet", "rtb", names.GATEWAY, names.CUSTOMER, names.CONNECTION)


@dataclass(frozen=True)
class Link:
    """An IPsec connection of a subnet.

    Attributes:
        peer: the customer gateway's address.
        cidrs: what is behind it.
        ike: Neutron's IKE policy.
        ipsec: Neutron's IPsec policy.
        secret: the pre-shared key where the item has it (ec2-api stored it there).
    """

    peer: str
    cidrs: tuple[str, ...]
    ike: str
    ipsec: str
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Wanted:
    """What the items say a VPC should have; equal when they say the same.

    Attributes:
        router: Neutron's id of its router.
        attached: whether a VPN gateway is attached.
        services: Neutron's subnet by subnet id.
        links: by (connection, subnet).
    """

    router: str
    attached: bool
    services: dict[str, str] = field(default_factory=dict)
    links: dict[tuple[str, str], Link] = field(default_factory=dict)


def wanted_of(items: Iterable[Item], vpc_id: str) -> Wanted | None:
    """What a VPC should have, out of a project's items of `KINDS`; None when there is no VPC."""
    items = list(items)
    vpc = next((item for item in items if item.id == vpc_id and item.os_id), None)
    if vpc is None:
        return None
    mine = [item for item in items if item.vpc_id == vpc_id]
    gateway = next((item for item in mine if item.kind == names.GATEWAY), None)
    if gateway is None:
        return Wanted(vpc.os_id or "", attached=False)
    made = Wanted(vpc.os_id or "", attached=True)
    by_id = {item.id: item for item in items}
    for subnet in mine:
        if subnet.kind != "subnet" or not subnet.os_id or STAGE in subnet.data:
            continue
        made.services[subnet.id] = subnet.os_id
        table = by_id.get(subnet.data.get("route_table_id") or vpc.data.get("route_table_id") or "")
        for connection in items:
            if connection.data.get(names.OF_GATEWAY) != gateway.id or STAGE in connection.data:
                continue
            cidrs = _cidrs(table, gateway.id, connection)
            customer = by_id.get(connection.data.get(names.OF_CUSTOMER) or "")
            if cidrs and customer is not None:
                made.links[connection.id, subnet.id] = Link(
                    customer.data[names.ADDRESS],
                    cidrs,
                    connection.data.get(names.IKE) or "",
                    connection.data.get(names.IPSEC) or "",
                    connection.data.get(names.SECRET) or "",
                )
    return made


def _cidrs(table: Item | None, gateway_id: str, connection: Item) -> tuple[str, ...]:
    """Static routes of a table to the gateway, and the connection's where they are propagated."""
    if table is None:
        return ()
    found = {
        route["destination_cidr_block"]
        for route in table.data.get("routes") or ()
        if route.get("gateway_id") == gateway_id
    }
    if gateway_id in (table.data.get("propagating_gateways") or ()):
        found.update(connection.data.get(names.RANGES) or ())
    return tuple(sorted(found))
