"""Subnets as the reconciliation engine sees them: a Neutron subnet, alone in its network.

The item's ``os_id`` is the Neutron *subnet*; its ``vpc_id`` column the VPC.
The blob has upstream's ``route_table_id`` (when a table is associated) and
``os_vpnservice_id``, and of ours:

``stage``
    as with VPCs (see `vpc_kind`);
``cidr_block``
    its range, so that overlapping ones are refused before anything is made;
``availability_zone``
    what it was made in; networks have no zone;
``map_public_ip_on_launch``, ``default_for_az``, ``attributes``
    what CreateDefaultSubnet and ModifySubnetAttribute say.

Networks and subnets that no item names belong to the project alone and are
not shown (spec ec2.md 3.13).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import Built, usable
from trimaran.ec2.protocol.errors import missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, Selection, Thunks

PREFIX = "subnet"
ROUTE_TABLE = "route_table_id"
CIDR = "cidr_block"
ZONE = "availability_zone"
MAP_PUBLIC = "map_public_ip_on_launch"
DEFAULT_FOR_ZONE = "default_for_az"

_FIELDS = ["id", "network_id", "cidr", "gateway_ip", "host_routes", "project_id"]
_PORT_FIELDS = ["id", "network_id", "device_owner", "fixed_ips"]


class Subnets(Built):
    """The subnets of the caller's project.

    Args:
        ports: also list the ports, from which free addresses are counted.
    """

    prefixes = (PREFIX,)
    listing = "subnets"

    def __init__(self, *, ports: bool = False) -> None:
        super().__init__()
        self._ports = ports
        #: the project's VPCs, when all subnets were asked for
        self.vpcs: list[Item] = []

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        if wanted is not None:
            return super().load(session, ctx, wanted)
        items = queries.items_of(session, ctx.project_id, [PREFIX, "vpc"])
        self.vpcs = [item for item in items if item.kind == "vpc"]
        return self.knowing([item for item in items if item.kind == PREFIX])

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        if selection is None and not self._known:
            return {}
        neutron = ctx.user.network
        query: dict[str, Any] = {"project_id": ctx.project_id}
        chosen: dict[str, Any] = {}
        if selection is not None:
            chosen["id"] = list(selection.os_ids)
        thunks = {"subnets": partial(neutron.subnets, **query, **chosen, fields=_FIELDS)}
        if self._ports:
            thunks["ports"] = partial(neutron.ports, **query, fields=_PORT_FIELDS)
        return thunks


def one_subnet(ctx: Context, subnet_id: str | None, parameter: str = "SubnetId") -> Pair:
    """The subnet that a request names: its item, and Neutron's JSON as ``body``.

    Args:
        ctx: the request.
        subnet_id: what the caller sent.
        parameter: its wire name.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, ``InvalidSubnetID.NotFound``
            (also when it was deleted in Neutron).
    """
    if not subnet_id:
        raise missing(parameter)
    ids.check_id(subnet_id, parameter, PREFIX)
    [pair] = subnets_by_ids(ctx, [subnet_id])
    return pair


def subnets_by_ids(ctx: Context, subnet_ids: Sequence[str]) -> list[Pair]:
    """Well-formed subnet ids with what Neutron says of them, in one call.

    Raises:
        EC2Error: ``InvalidSubnetID.NotFound`` when one does not exist.
    """
    pairs = {pair.item.id: pair for pair in reconcile(ctx, Subnets(), subnet_ids).pairs}
    for subnet_id in pairs:
        usable([pairs[subnet_id].item], subnet_id)
    return [pairs[subnet_id] for subnet_id in dict.fromkeys(subnet_ids)]


def subnet_items(session: Session, project_id: str, vpc_id: str | None = None) -> list[Item]:
    """The project's subnets, or those of a VPC; with those that are being made or deleted."""
    items = queries.items_of(session, project_id, [PREFIX])
    return [item for item in items if vpc_id is None or item.vpc_id == vpc_id]
