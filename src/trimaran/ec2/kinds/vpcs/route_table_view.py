"""How a route table looks on the wire (spec ec2.md 3.10 and appendix B)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.route_push import (
    DESTINATION,
    GATEWAY,
    INTERFACE,
    KINDS,
    PROPAGATING,
    ROUTES,
    topology_of,
)
from trimaran.ec2.kinds.vpcs.subnet_kind import ROUTE_TABLE
from trimaran.ec2.kinds.vpcs.vpc_kind import MAIN_TABLE, being_made

Row = Mapping[str, Any]
Tags = Sequence[dict[str, str]]

#: Items that the description of route tables needs.
NEEDED = KINDS
ASSOCIATED = {"State": "associated"}


class Viewer:
    """Shows route tables out of a project's items.

    Args:
        ctx: the request.
        items: the project's items of the kinds `NEEDED`.
    """

    def __init__(self, ctx: Context, items: Sequence[Item]) -> None:
        self._ctx = ctx
        self._items = items
        vpcs = [item for item in items if item.kind == "vpc"]
        self._main = {item.id: item.data.get(MAIN_TABLE) for item in vpcs}
        coming = {item.id for item in vpcs if being_made(item)}
        self.tables = {
            item.id: item for item in items if item.kind == "rtb" and item.vpc_id not in coming
        }
        self._interfaces = {item.id: item for item in items if item.kind == "eni"}
        self._gateways = {item.id: item.vpc_id for item in items if item.kind in ("igw", "vgw")}
        self._subnets = [i for i in items if i.kind == "subnet" and not being_made(i)]

    def targets(self, tables: Iterable[Item]) -> set[str]:
        """The instances that routes of tables lead to."""
        routes = [route for table in tables for route in table.data.get(ROUTES) or ()]
        found = (self._interfaces.get(route.get(INTERFACE, "")) for route in routes)
        return {item.data["instance_id"] for item in found if item and item.data.get("instance_id")}

    def shown(self, table: Item, tags: Tags | None, stopped: Collection[str]) -> dict[str, Any]:
        """A table as boto3 shows it.

        Args:
            table: its item.
            tags: of it.
            stopped: instances that take no packets.
        """
        return {
            "RouteTableId": table.id,
            "VpcId": table.vpc_id,
            "OwnerId": self._ctx.project_id,
            "Routes": self._routes(table, stopped),
            "Associations": self.associations(table),
            "PropagatingVgws": [{"GatewayId": each} for each in table.data.get(PROPAGATING) or ()],
            "Tags": list(tags or ()),
        }

    def associations(self, table: Item) -> list[dict[str, Any]]:
        """What is associated: the VPC, of its main table, and subnets."""
        found = []
        if table.vpc_id and self._main.get(table.vpc_id) == table.id:
            found.append(association(table.id, table.vpc_id) | {"Main": True})
        for subnet in self._subnets:
            if subnet.data.get(ROUTE_TABLE) == table.id:
                found.append(
                    association(table.id, subnet.id) | {"Main": False, "SubnetId": subnet.id}
                )
        return found

    def _routes(self, table: Item, stopped: Collection[str]) -> list[dict[str, Any]]:
        shown = [self._route(table, row, stopped) for row in table.data.get(ROUTES) or ()]
        told = {row["DestinationCidrBlock"] for row in shown}
        # A table keeps gateways that were detached meanwhile; a VPC has one at most.
        propagating = table.data.get(PROPAGATING) or ()
        active = [each for each in propagating if self._gateways.get(each) == table.vpc_id]
        if not active:
            return shown
        topology = topology_of(self._items, table.vpc_id or "")
        ranges = topology.tables[table.id][1] if topology else []
        return shown + [
            {
                "DestinationCidrBlock": cidr,
                "GatewayId": active[0],
                "Origin": "EnableVgwRoutePropagation",
                "State": "active",
            }
            for cidr in dict.fromkeys(ranges)
            if cidr not in told
        ]

    def _route(self, table: Item, route: Row, stopped: Collection[str]) -> dict[str, Any]:
        made: dict[str, Any] = {"DestinationCidrBlock": route[DESTINATION]}
        if route.get(INTERFACE):
            return made | self._to_interface(route[INTERFACE], stopped)
        target = route.get(GATEWAY)
        if target is None:
            return made | {
                "GatewayId": "local",
                "Origin": "CreateRouteTable",
                "State": "active",
            }
        active = self._gateways.get(target) == table.vpc_id
        return made | {
            "GatewayId": target,
            "Origin": "CreateRoute",
            "State": _state(active),
        }

    def _to_interface(self, interface_id: str, stopped: Collection[str]) -> dict[str, Any]:
        made: dict[str, Any] = {"NetworkInterfaceId": interface_id, "Origin": "CreateRoute"}
        interface = self._interfaces.get(interface_id)
        instance = interface.data.get("instance_id") if interface else None
        if instance:
            made |= {"InstanceId": instance, "InstanceOwnerId": self._ctx.project_id}
        return made | {"State": _state(interface is not None and instance not in stopped)}


def association(table_id: str, with_id: str) -> dict[str, Any]:
    """What all associations of a table have; the id is that of the VPC or subnet."""
    return {
        "RouteTableAssociationId": ids.derive(with_id, "rtbassoc"),
        "RouteTableId": table_id,
        "AssociationState": dict(ASSOCIATED),
    }


def _state(active: bool) -> str:
    return "active" if active else "blackhole"
