"""Security groups: describe, delete, and those that may be used in a VPC (spec ec2.md 3.11)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_default import NAME as DEFAULT
from trimaran.ec2.kinds.security_groups.security_group_default import is_default_group
from trimaran.ec2.kinds.security_groups.security_group_kind import name_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import all_groups, one_group, select
from trimaran.ec2.kinds.security_groups.security_group_notes import forget_group
from trimaran.ec2.kinds.security_groups.security_group_view import Peers, shown_group
from trimaran.ec2.kinds.vpcs.vpc_kind import one_vpc
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import Conflict, NotFound

Request = Mapping[str, Any]


def _permission_filters(prefix: str, member: str) -> dict[str, filters.Accessor]:
    return {
        f"{prefix}.cidr": f"{member}.IpRanges.CidrIp",
        f"{prefix}.ipv6-cidr": f"{member}.Ipv6Ranges.CidrIpv6",
        f"{prefix}.from-port": f"{member}.FromPort",
        f"{prefix}.to-port": f"{member}.ToPort",
        f"{prefix}.protocol": f"{member}.IpProtocol",
        f"{prefix}.group-id": f"{member}.UserIdGroupPairs.GroupId",
        f"{prefix}.group-name": f"{member}.UserIdGroupPairs.GroupName",
        f"{prefix}.user-id": f"{member}.UserIdGroupPairs.UserId",
        f"{prefix}.prefix-list-id": f"{member}.PrefixListIds.PrefixListId",
    }


FILTERS: filters.Table = {
    "description": "Description",
    "group-id": "GroupId",
    "group-name": "GroupName",
    "owner-id": "OwnerId",
    "vpc-id": "VpcId",
    **_permission_filters("ip-permission", "IpPermissions"),
    **_permission_filters("egress.ip-permission", "IpPermissionsEgress"),
}

FOR_VPC_FILTERS: filters.Table = {
    "description": "Description",
    "group-id": "GroupId",
    "group-name": "GroupName",
    "owner-id": "OwnerId",
    "primary-vpc-id": "PrimaryVpcId",
}


def describe_security_groups(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's groups with their rules."""
    page = paging.Page(ctx.action, request, ids="GroupIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    found = select(ctx, request.get("GroupIds") or (), request.get("GroupNames") or ())
    peers = Peers(ctx, found.view)
    shown = (shown_group(found.view, found.kind, pair, peers) for pair in found.pairs)
    rows, token = page.slice(matches.apply(shown), key=lambda row: row["GroupId"])
    return {"SecurityGroups": rows, "NextToken": token}


def get_security_groups_for_vpc(ctx: Context, request: Request) -> dict[str, Any]:
    """The groups that interfaces in a VPC may have: its own."""
    page = paging.Page(ctx.action, request)
    matches = filters.compile_filters(request.get("Filters"), FOR_VPC_FILTERS)
    vpc = one_vpc(ctx, request.get("VpcId"))
    found = all_groups(ctx)
    peers = Peers(ctx, found.view)
    shown = []
    for pair in found.pairs:
        if pair.item.vpc_id == vpc.id:
            row = shown_group(found.view, found.kind, pair, peers)
            names = ("Description", "GroupName", "OwnerId", "GroupId", "Tags")
            wanted = {name: row[name] for name in names if name in row}
            shown.append({**wanted, "PrimaryVpcId": vpc.id})
    rows, token = page.slice(matches.apply(shown), key=lambda row: row["GroupId"])
    return {"SecurityGroupForVpcs": rows, "NextToken": token}


def delete_security_group(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a group that no interface is in and no rule of another group names."""
    found = one_group(ctx, request.get("GroupId"), request.get("GroupName"))
    [pair] = found.pairs
    item = pair.item
    if is_default_group(item) and _vpc_exists(ctx, item):
        raise EC2Error("CannotDelete", f"the specified group: '{item.id}' is a default VPC group")
    if item.vpc_id is None and name_of(item, pair.body) == DEFAULT:
        # Neutron's own of the project, which it would not delete either.
        raise EC2Error("CannotDelete", f"the specified group: '{item.id}' is the default group")
    # Neutron would drop such rules without a word.
    named_by = ctx.user.network.security_group_rules(
        remote_group_id=item.os_id, fields=["id", "security_group_id"]
    )
    if any(row["security_group_id"] != item.os_id for row in named_by):
        raise _in_use(pair)
    ctx.commit_point()
    _delete(pair, ctx.user.network.delete_security_group)
    forget_group(ctx, found.kind, pair)
    return {"Return": True, "GroupId": item.id}


def _vpc_exists(ctx: Context, item: Item) -> bool:
    """Whether a group's VPC is there; the group of one that vanished in Neutron outlives it."""
    wanted = [item.vpc_id] if item.vpc_id else []
    return bool(ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, wanted)))


def _delete(pair: Pair, delete: Callable[[str], None]) -> None:
    try:
        with contextlib.suppress(NotFound):
            delete(pair.item.os_id or "")
    except Conflict as error:
        raise _in_use(pair) from error


def _in_use(pair: Pair) -> EC2Error:
    return EC2Error("DependencyViolation", f"resource {pair.item.id} has a dependent object")
