"""Subnets: describe and delete (spec ec2.md 3.13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import topology, topology_raze
from trimaran.ec2.kinds.vpcs.default_vpc import with_default_vpc
from trimaran.ec2.kinds.vpcs.subnet_create import default_zone
from trimaran.ec2.kinds.vpcs.subnet_kind import ZONE, Subnets
from trimaran.ec2.kinds.vpcs.subnet_plug import ports_of
from trimaran.ec2.kinds.vpcs.subnet_view import shown_subnet
from trimaran.ec2.kinds.vpcs.vpc_kind import DELETING, STAGE, being_made, in_use
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import View
from trimaran.errors import Conflict, TrimaranError

Request = Mapping[str, Any]

_NAMES = "PrivateDnsNameOptionsOnLaunch"
_NAMES_FILTER = "private-dns-name-options-on-launch"
FILTERS: filters.Table = {
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "availabilityZone": "AvailabilityZone",
    "availabilityZoneId": "AvailabilityZoneId",
    "available-ip-address-count": "AvailableIpAddressCount",
    "cidr": "CidrBlock",
    "cidr-block": "CidrBlock",
    "cidrBlock": "CidrBlock",
    "customer-owned-ipv4-pool": "CustomerOwnedIpv4Pool",
    "default-for-az": "DefaultForAz",
    "defaultForAz": "DefaultForAz",
    "enable-dns64": "EnableDns64",
    "enable-lni-at-device-index": "EnableLniAtDeviceIndex",
    "ipv6-cidr-block-association.association-id": "Ipv6CidrBlockAssociationSet.AssociationId",
    "ipv6-cidr-block-association.ipv6-cidr-block": "Ipv6CidrBlockAssociationSet.Ipv6CidrBlock",
    "ipv6-cidr-block-association.state": "Ipv6CidrBlockAssociationSet.Ipv6CidrBlockState.State",
    "ipv6-native": "Ipv6Native",
    "map-customer-owned-ip-on-launch": "MapCustomerOwnedIpOnLaunch",
    "map-public-ip-on-launch": "MapPublicIpOnLaunch",
    "outpost-arn": "OutpostArn",
    "owner-id": "OwnerId",
    f"{_NAMES_FILTER}.enable-resource-name-dns-a-record": f"{_NAMES}.EnableResourceNameDnsARecord",
    f"{_NAMES_FILTER}.enable-resource-name-dns-aaaa-record": (
        f"{_NAMES}.EnableResourceNameDnsAAAARecord"
    ),
    f"{_NAMES_FILTER}.hostname-type": f"{_NAMES}.HostnameType",
    "state": "State",
    "subnet-arn": "SubnetArn",
    "subnet-id": "SubnetId",
    "vpc-id": "VpcId",
}


def describe_subnets(ctx: Context, request: Request) -> dict[str, Any]:
    """The subnets of the project's VPCs."""
    page = paging.Page(ctx.action, request, ids="SubnetIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("SubnetIds"), "subnetId", "subnet")
    kind = Subnets(ports=True)
    view = with_default_vpc(
        ctx,
        lambda: reconcile(ctx, kind, wanted or None),
        None if wanted else lambda view: kind.vpcs,
    )
    rows = matches.apply(shown_subnets(ctx, view))
    shown, token = page.slice(rows, key=lambda row: row["SubnetId"])
    return {"Subnets": shown, "NextToken": token}


def shown_subnets(ctx: Context, view: View) -> list[dict[str, Any]]:
    """All subnets of a view as boto3 shows them."""
    ports: dict[str, list[Mapping[str, Any]]] = {}
    for port in view.listed.get("ports", ()):
        ports.setdefault(port["network_id"], []).append(port)
    nameless = any(ZONE not in pair.item.data for pair in view.pairs)
    zone = default_zone(ctx) if nameless else ""
    return [
        shown_subnet(
            ctx,
            pair.item,
            pair.body,
            ports=ports.get(pair.body["network_id"], ()),
            zone=zone,
            tags=view.tags.get(pair.item.id),
        )
        for pair in view.pairs
        if pair.found is not None
    ]


def delete_subnet(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a subnet that no interface is in."""
    subnet_id = request.get("SubnetId")
    if not subnet_id:
        raise missing("SubnetId")
    ids.check_id(subnet_id, "SubnetId", "subnet")
    [pair] = reconcile(ctx, Subnets(), [subnet_id]).pairs
    item = pair.item
    ctx.db.read(lambda s: _deletable(s, ctx, subnet_id, [item]))
    if pair.found is not None:
        ports = ports_of(ctx.user, pair.body["network_id"])
        if topology_raze.foreign(ports, subnet_id):
            raise in_use("subnet", subnet_id)
    ctx.commit_point()
    job_id = ctx.db.write(lambda s: _stage(s, ctx, item))
    try:
        topology_raze.raze(ctx, ctx.user, subnet_id, item.os_id)
    except Conflict as error:
        staged = replace(item, data={**item.data, STAGE: DELETING})
        if topology_raze.still_there(ctx, ctx.user, staged):
            vpc_id = item.vpc_id or ""
            following = ctx.db.write(lambda s: _take_back(s, ctx, subnet_id, vpc_id, job_id))
            topology.follow(ctx, vpc_id, following)
            raise in_use("subnet", subnet_id) from error
        raise
    except TrimaranError:
        ctx.db.write(lambda s: journal.hasten(s, job_id))
        raise
    ctx.db.write(lambda s: _finish(s, ctx, subnet_id, job_id))
    return {}


def _deletable(session: Session, ctx: Context, subnet_id: str, items: Sequence[Item]) -> Item:
    """The subnet, if no interface is in it; also one whose deletion has begun before."""
    item = next((item for item in items if item.id == subnet_id), None)
    if item is None or being_made(item):
        raise ids.missing_ids([subnet_id])
    interfaces = queries.items_of(session, ctx.project_id, ["eni"])
    if any(each.data.get("subnet_id") == subnet_id for each in interfaces):
        raise in_use("subnet", subnet_id)
    return item


def _stage(session: Session, ctx: Context, item: Item) -> str:
    # The VPC's row is the lock of whoever adds interfaces to its subnets.
    queries.locked_items(session, ctx.project_id, [item.vpc_id or ""])
    items = queries.locked_items(session, ctx.project_id, [item.id])
    current = _deletable(session, ctx, item.id, items)
    data = {**current.data, STAGE: DELETING}
    queries.update_item(session, ctx.project_id, item.id, data=data)
    return topology_raze.begin(session, ctx, [item.id], [])


def _take_back(session: Session, ctx: Context, subnet_id: str, vpc_id: str, job_id: str) -> str:
    topology_raze.restore(session, ctx.project_id, subnet_id)
    journal.end(session, job_id)
    return topology.begin(session, ctx, vpc_id)


def _finish(session: Session, ctx: Context, subnet_id: str, job_id: str) -> None:
    queries.delete_items(session, ctx.project_id, [subnet_id])
    journal.end(session, job_id)
