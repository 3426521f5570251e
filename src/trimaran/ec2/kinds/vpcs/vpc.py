"""VPCs: describe and delete (spec ec2.md 3.16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_default_vpc as markers
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_default import default_group_id
from trimaran.ec2.kinds.vpcs import topology_raze
from trimaran.ec2.kinds.vpcs.default_vpc import with_default_vpc
from trimaran.ec2.kinds.vpcs.vpc_kind import (
    DELETING,
    MAIN_TABLE,
    STAGE,
    Vpcs,
    being_made,
    in_use,
    is_default,
)
from trimaran.ec2.kinds.vpcs.vpc_view import shown_vpc
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import missing
from trimaran.ec2.reconcile import reconcile
from trimaran.errors import Conflict, TrimaranError

Request = Mapping[str, Any]

FILTERS: filters.Table = {
    "cidr": "CidrBlock",
    "cidr-block": "CidrBlock",
    "cidr-block-association.association-id": "CidrBlockAssociationSet.AssociationId",
    "cidr-block-association.cidr-block": "CidrBlockAssociationSet.CidrBlock",
    "cidr-block-association.state": "CidrBlockAssociationSet.CidrBlockState.State",
    "dhcp-options-id": "DhcpOptionsId",
    "dhcpOptionsId": "DhcpOptionsId",
    "instance-tenancy": "InstanceTenancy",
    "ipv6-cidr-block-association.association-id": "Ipv6CidrBlockAssociationSet.AssociationId",
    "ipv6-cidr-block-association.ipv6-cidr-block": "Ipv6CidrBlockAssociationSet.Ipv6CidrBlock",
    "ipv6-cidr-block-association.ipv6-pool": "Ipv6CidrBlockAssociationSet.Ipv6Pool",
    "ipv6-cidr-block-association.state": "Ipv6CidrBlockAssociationSet.Ipv6CidrBlockState.State",
    "is-default": "IsDefault",
    "isDefault": "IsDefault",
    "owner-id": "OwnerId",
    "state": "State",
    "vpc-id": "VpcId",
}


def describe_vpcs(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's VPCs."""
    page = paging.Page(ctx.action, request, ids="VpcIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("VpcIds"), "vpcId", "vpc")
    view = with_default_vpc(
        ctx,
        lambda: reconcile(ctx, Vpcs(), wanted or None),
        None if wanted else lambda view: [pair.item for pair in view.pairs],
    )
    rows = [shown_vpc(ctx, pair.item, view.tags.get(pair.item.id)) for pair in view.pairs]
    shown, token = page.slice(matches.apply(rows), key=lambda row: row["VpcId"])
    return {"Vpcs": shown, "NextToken": token}


def delete_vpc(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a VPC that nothing is in but its main route table and its default group."""
    vpc_id = request.get("VpcId")
    if not vpc_id:
        raise missing("VpcId")
    ids.check_id(vpc_id, "VpcId", "vpc")
    vpc, group = ctx.db.read(lambda s: _look(s, ctx, vpc_id))
    if group and ctx.user.network.ports(security_groups=[group], fields=["id"]):
        raise in_use("vpc", vpc_id)
    ctx.commit_point()
    job_id = ctx.db.write(lambda s: _stage(s, ctx, vpc_id))
    try:
        topology_raze.raze(ctx, ctx.user, vpc_id, vpc.os_id)
    except Conflict as error:
        if topology_raze.still_there(
            ctx, ctx.user, replace(vpc, data={**vpc.data, STAGE: DELETING})
        ):
            ctx.db.write(lambda s: _take_back(s, ctx, vpc_id, job_id))
            raise in_use("vpc", vpc_id) from error
        # The router is gone, and with it the VPC; the group follows its last port.
        ctx.db.write(lambda s: _finish(s, ctx, vpc, ends=""))
        return {}
    except TrimaranError:
        ctx.db.write(lambda s: journal.hasten(s, job_id))
        raise
    ctx.db.write(lambda s: _finish(s, ctx, vpc, ends=job_id))
    return {}


def _look(session: Session, ctx: Context, vpc_id: str) -> tuple[Item, str | None]:
    """The VPC, and the Neutron id of its default group."""
    own = queries.items_by_ids(session, ctx.project_id, [vpc_id, default_group_id(vpc_id)])
    vpc = _deletable(session, ctx, vpc_id, own)
    return vpc, next((item.os_id for item in own if item.kind == "sg"), None)


def _deletable(session: Session, ctx: Context, vpc_id: str, items: Sequence[Item]) -> Item:
    """The VPC, if nothing depends on it; also one whose deletion has begun before."""
    vpc = next((item for item in items if item.id == vpc_id), None)
    if vpc is None or being_made(vpc):
        raise ids.missing_ids([vpc_id])
    own = {vpc.data.get(MAIN_TABLE), default_group_id(vpc_id)}
    kinds = ("subnet", "igw", "vgw", "rtb", "sg", "eni")
    inside = queries.items_of(session, ctx.project_id, kinds)
    if any(item.vpc_id == vpc_id and item.id not in own for item in inside):
        raise in_use("vpc", vpc_id)
    return vpc


def _stage(session: Session, ctx: Context, vpc_id: str) -> str:
    items = queries.locked_items(session, ctx.project_id, [vpc_id])
    vpc = _deletable(session, ctx, vpc_id, items)
    data = {**vpc.data, STAGE: DELETING}
    queries.update_item(session, ctx.project_id, vpc_id, data=data)
    return topology_raze.begin(session, ctx, [vpc_id], _besides(vpc))


def _besides(vpc: Item) -> list[str]:
    table = vpc.data.get(MAIN_TABLE)
    return topology_raze.beside_vpc(vpc, [table] if table else [])


def _take_back(session: Session, ctx: Context, vpc_id: str, job_id: str) -> None:
    topology_raze.restore(session, ctx.project_id, vpc_id)
    journal.end(session, job_id)


def _finish(session: Session, ctx: Context, vpc: Item, *, ends: str) -> None:
    queries.delete_items(session, ctx.project_id, [vpc.id, *_besides(vpc)])
    if is_default(vpc):
        markers.opt_out(session, ctx.project_id)
    if ends:
        journal.end(session, ends)
