"""CreateDefaultVpc and CreateDefaultSubnet: what was deleted comes back (spec ec2.md 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2_default_vpc as markers
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.default_vpc import (
    LEASE,
    SUBNET_PREFIX,
    WAIT,
    lease_name,
    make_default_vpc,
)
from trimaran.ec2.kinds.vpcs.subnet_create import make_subnet, zone_of
from trimaran.ec2.kinds.vpcs.subnet_kind import (
    CIDR,
    DEFAULT_FOR_ZONE,
    MAP_PUBLIC,
    ZONE,
    Subnets,
    subnet_items,
)
from trimaran.ec2.kinds.vpcs.subnet_view import shown_subnet
from trimaran.ec2.kinds.vpcs.vpc_cidr import first_free
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR as VPC_CIDR
from trimaran.ec2.kinds.vpcs.vpc_kind import default_vpc_of, vpc_items
from trimaran.ec2.kinds.vpcs.vpc_view import shown_vpc
from trimaran.ec2.protocol.errors import EC2Error, missing, unsupported
from trimaran.ec2.reconcile import reconcile

Request = Mapping[str, Any]


def create_default_vpc(ctx: Context, request: Request) -> dict[str, Any]:
    """Make the default VPC, also where it was deleted or could not be made."""
    if not ctx.conf.disable_ec2_classic:
        raise unsupported("There are no default VPCs where EC2-Classic is enabled.")
    _refuse_second(ctx)
    ctx.commit_point()
    with work.hold(ctx.db, lease_name(ctx), LEASE, timeout=WAIT):
        _refuse_second(ctx)
        ctx.db.write(lambda s: markers.forget(s, ctx.project_id))
        return {"Vpc": shown_vpc(ctx, make_default_vpc(ctx))}


def create_default_subnet(ctx: Context, request: Request) -> dict[str, Any]:
    """Make the default subnet of a zone, in the first free range of the default VPC."""
    if request.get("Ipv6Native"):
        raise unsupported("IPv6 subnets are not supported.")
    if not request.get("AvailabilityZone") and not request.get("AvailabilityZoneId"):
        raise missing("AvailabilityZone")
    zone = zone_of(ctx, request)
    vpc = _default_vpc(ctx)
    if vpc is None:
        raise EC2Error("DefaultVpcDoesNotExist", "There is no default VPC in this project.")
    _free_range(ctx, vpc, zone)
    ctx.commit_point()
    with work.hold(ctx.db, lease_name(ctx), LEASE, timeout=WAIT):
        cidr = _free_range(ctx, vpc, zone)
        data = {ZONE: zone, DEFAULT_FOR_ZONE: True, MAP_PUBLIC: True}
        item, body = make_subnet(ctx, vpc, cidr, data)
    return {"Subnet": shown_subnet(ctx, item, body)}


def _default_vpc(ctx: Context) -> Item | None:
    return ctx.db.read(lambda s: default_vpc_of(vpc_items(s, ctx.project_id)))


def _refuse_second(ctx: Context) -> None:
    if _default_vpc(ctx) is not None:
        raise EC2Error("DefaultVpcAlreadyExists", "A default VPC already exists in this project.")


def _free_range(ctx: Context, vpc: Item, zone: str) -> IPv4Network:
    """The range of the zone's default subnet.

    Raises:
        EC2Error: the zone has one already, or nothing is free.
    """

    def inside(session: Session) -> list[Item]:
        return subnet_items(session, ctx.project_id, vpc.id)

    items = ctx.db.read(inside)
    if any(item.data.get(DEFAULT_FOR_ZONE) and item.data.get(ZONE) == zone for item in items):
        raise EC2Error(
            "DefaultSubnetAlreadyExistsInAvailabilityZone",
            f"A default subnet already exists in the availability zone '{zone}'.",
        )
    known = {
        pair.item.id: pair.body["cidr"] for pair in reconcile(ctx, Subnets()).pairs if pair.found
    }
    taken = [
        IPv4Network(text) for item in items if (text := item.data.get(CIDR) or known.get(item.id))
    ]
    whole = IPv4Network(vpc.data[VPC_CIDR])
    found = first_free(whole, taken, max(SUBNET_PREFIX, whole.prefixlen))
    if found is None:
        raise EC2Error("InsufficientCidrBlocks", "The default VPC has no free range of addresses.")
    return found
