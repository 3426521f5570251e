"""A route table as Neutron's subnets know it: host routes that guests learn by DHCP.

Subnets have no ``gateway_ip`` in Neutron, since that cannot be taken away again
while a router is in the subnet (spec ec2.md 11.2).  The router is plugged in
with the first address all the same, and the default route, when the table has
an active one, is a host route like the others.  What was made with a
``gateway_ip`` before keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import CloudSession, gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.subnet_kind import ROUTE_TABLE
from trimaran.ec2.kinds.vpcs.vpc_cidr import gateway_of
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR, MAIN_TABLE
from trimaran.ec2.kinds.vpn import vpn_sync
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import BadRequest, NotFound

Row = Mapping[str, Any]
HostRoute = tuple[str, str]

DESTINATION = "destination_cidr_block"
GATEWAY = "gateway_id"
INTERFACE = "network_interface_id"
ROUTES = "routes"
PROPAGATING = "propagating_gateways"

ANYWHERE = "0.0.0.0/0"
#: Both together are more specific than a subnet's own gateway.
_HALVES = ("0.0.0.0/1", "128.0.0.0/1")
METADATA = "169.254.169.254/32"
#: Where packets to a vanished target go: nowhere (as upstream says it).
NOWHERE = "127.0.0.1"
KINDS = ("vpc", "subnet", "rtb", "igw", "vgw", "vpn", "eni")


@dataclass(frozen=True)
class Topology:
    """What the items say about a VPC's routes; equal when they say the same.

    Attributes:
        vpc: the VPC's item data that matters: range and main table.
        tables: (routes, propagated ranges) by route table.
        subnets: (Neutron id, route table) by subnet.
        gateways: gateways attached to the VPC.
        interfaces: private address by interface.
    """

    vpc: tuple[str, str]
    tables: dict[str, tuple[list[Row], list[str]]] = field(default_factory=dict)
    subnets: dict[str, tuple[str, str]] = field(default_factory=dict)
    gateways: frozenset[str] = frozenset()
    interfaces: dict[str, str] = field(default_factory=dict)

    def host_routes(self, table_id: str, subnet: Row) -> list[HostRoute]:
        """The host routes of a subnet (Neutron's JSON) under a table."""
        gateway = str(subnet.get("gateway_ip") or gateway_of(subnet["cidr"]))
        routes, propagated = self.tables.get(table_id, ([], []))
        found: dict[str, str] = {}
        for route in routes:
            hop = self._next_hop(route, gateway)
            if hop is None and route[DESTINATION] != ANYWHERE:
                hop = NOWHERE
            if hop is not None and route[DESTINATION] != subnet["cidr"]:
                found[route[DESTINATION]] = hop
        for cidr in propagated:
            found.setdefault(cidr, gateway)
        if found.get(ANYWHERE) != gateway:
            found.setdefault(METADATA, gateway)
            if subnet.get("gateway_ip") and ANYWHERE in found:
                hop = found.pop(ANYWHERE)
                found.update(dict.fromkeys(_HALVES, hop))
        return sorted(found.items())

    def _next_hop(self, route: Row, gateway: str) -> str | None:
        if route.get(INTERFACE):
            return self.interfaces.get(route[INTERFACE])
        target = route.get(GATEWAY)
        return gateway if target is None or target in self.gateways else None


def topology_of(items: Iterable[Item], vpc_id: str) -> Topology | None:
    """A VPC's routes out of a project's items of `KINDS`; None when there is no VPC."""
    mine = [item for item in items if item.id == vpc_id or item.vpc_id == vpc_id]
    vpc = next((item for item in mine if item.id == vpc_id), None)
    if vpc is None:
        return None
    main = vpc.data.get(MAIN_TABLE) or ""
    gateways = frozenset(item.id for item in mine if item.kind in ("igw", "vgw"))
    connections = [item for item in items if item.kind == "vpn"]
    made = Topology((vpc.data[CIDR], main), gateways=gateways)
    for item in mine:
        if item.kind == "rtb":
            active = gateways & set(item.data.get(PROPAGATING) or ())
            ranges = [
                cidr
                for each in connections
                if each.data.get("vpn_gateway_id") in active
                for cidr in each.data.get("cidrs") or ()
            ]
            made.tables[item.id] = (list(item.data.get(ROUTES) or ()), ranges)
        elif item.kind == "subnet" and item.os_id:
            made.subnets[item.id] = (item.os_id, item.data.get(ROUTE_TABLE) or main)
        elif item.kind == "eni" and item.data.get("private_ip_address"):
            made.interfaces[item.id] = item.data["private_ip_address"]
    return made


def read_topology(session: Session, project_id: str, vpc_id: str) -> Topology | None:
    """A VPC's routes as the items are now, in one query."""
    return topology_of(queries.items_of(session, project_id, KINDS), vpc_id)


def push_routes(ctx: Context, vpc_id: str, cloud: CloudSession | None = None) -> None:
    """Give all subnets of a VPC the host routes of their tables, where they differ.

    VPN connections follow the routes (`vpn_sync`).

    Raises:
        EC2Error: ``RouteLimitExceeded`` when Neutron takes no more routes.
    """
    asked = cloud or ctx.user
    told: Topology | None = None
    while (wanted := ctx.db.read(lambda s: read_topology(s, ctx.project_id, vpc_id))) != told:
        if wanted is None:
            return
        if not _push(asked, wanted):
            break
        told = wanted
    vpn_sync.sync_vpn(ctx, vpc_id, asked)


def _push(cloud: CloudSession, wanted: Topology) -> bool:
    tables = dict(wanted.subnets.values())
    if not tables:
        return False
    rows = cloud.network.subnets(
        id=sorted(tables), fields=["id", "cidr", "gateway_ip", "host_routes"]
    )
    updates: dict[str, Callable[[], None]] = {}
    for row in rows:
        routes = wanted.host_routes(tables[row["id"]], row)
        if routes != told_routes(row):
            updates[row["id"]] = partial(_update, cloud, row["id"], routes)
    if updates:
        gather(**updates)
    return bool(updates)


def told_routes(subnet: Row) -> list[HostRoute]:
    """The host routes that a subnet has in Neutron."""
    rows = subnet.get("host_routes") or ()
    return sorted((row["destination"], row["nexthop"]) for row in rows)


def as_rows(routes: Sequence[HostRoute]) -> list[dict[str, str]]:
    """Host routes as Neutron takes them."""
    return [{"destination": cidr, "nexthop": hop} for cidr, hop in routes]


def _update(cloud: CloudSession, os_id: str, routes: Sequence[HostRoute]) -> None:
    try:
        cloud.network.update_subnet(os_id, {"host_routes": as_rows(routes)})
    except NotFound:
        return  # the next describe of subnets finds out
    except BadRequest as error:
        raise EC2Error(
            "RouteLimitExceeded", "The subnets of this cloud take no more routes."
        ) from error
