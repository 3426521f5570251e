"""Which security groups an interface is to have: those of its VPC, or the VPC's default (F41)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces.network_interface_kind import group_rows
from trimaran.ec2.kinds.interfaces.network_interface_view import shown_name
from trimaran.ec2.kinds.security_groups.security_group_default import (
    PREFIX,
    default_group_id,
    repair_default_groups,
)
from trimaran.ec2.kinds.vpcs.vpc_kind import being_made, one_vpc
from trimaran.ec2.protocol.errors import not_found


def groups_in_vpc(ctx: Context, wanted: Sequence[str] | None, vpc_id: str) -> list[Item]:
    """The groups that a request names by ids; without any, the VPC's default group.

    Raises:
        EC2Error: ``InvalidParameterValue``; ``InvalidGroup.NotFound`` also for a
            group of another VPC.
    """
    group_ids = ids.check_ids(wanted, "securityGroupId", PREFIX)
    if not group_ids:
        return [_default_group(ctx, vpc_id)]
    found = _items(ctx, group_ids)
    there = {item.id: item for item in found if item.vpc_id == vpc_id and _is_usable(item)}
    absent = [group_id for group_id in group_ids if group_id not in there]
    if absent:
        raise ids.missing_ids(absent)
    return [there[group_id] for group_id in group_ids]


def groups_by_name(ctx: Context, names: Sequence[str], vpc_id: str) -> list[str]:
    """The ids of a VPC's groups of these names (EC2's ``SecurityGroup.N``).

    Raises:
        EC2Error: ``InvalidGroup.NotFound``.
    """

    def read(session: Session) -> list[Item]:
        return queries.items_of(session, ctx.project_id, [PREFIX])

    mine = {i.os_id: i.id for i in ctx.db.read(read) if i.vpc_id == vpc_id and _is_usable(i)}
    named = {
        shown_name(row["name"]): mine[row["id"]] for row in group_rows(ctx) if row["id"] in mine
    }
    absent = [name for name in names if name not in named]
    if absent:
        raise not_found("InvalidGroup.NotFound", "security group", absent)
    return [named[name] for name in names]


def shown_groups(ctx: Context, groups: Sequence[Item]) -> list[dict[str, str]]:
    """Groups as boto3 shows them."""
    names = {row["id"]: row["name"] for row in group_rows(ctx)}
    return [
        {"GroupName": shown_name(names.get(item.os_id or "", "")), "GroupId": item.id}
        for item in groups
    ]


def neutron_ids(groups: Sequence[Item]) -> list[str]:
    """For the body of a port."""
    return [item.os_id for item in groups if item.os_id]


def _is_usable(item: Item) -> bool:
    return bool(item.os_id) and item.dead_for is None and not being_made(item)


def _items(ctx: Context, item_ids: Sequence[str]) -> list[Item]:
    return ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, item_ids))


def _default_group(ctx: Context, vpc_id: str) -> Item:
    wanted = [default_group_id(vpc_id)]
    found = _items(ctx, wanted)
    there = {row["id"] for row in group_rows(ctx)} if found else set()
    if not found or found[0].os_id not in there:
        repair_default_groups(ctx, [one_vpc(ctx, vpc_id)])
        ctx.forget("security group names")
        found = _items(ctx, wanted)
    if not found:
        raise ids.missing_ids(wanted)
    return found[0]
