"""The rules that a request speaks of: every CIDR and every group of every permission (F34).

AWS has two ways to say it, a list of permissions and the flat parameters of
old; groups are named by id or, among the groups of the same VPC, by name, and
may belong to another project that shares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_kind import PREFIX, name_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import all_groups
from trimaran.ec2.kinds.security_groups.security_group_permission import (
    EVERY,
    Rule,
    check_protocol,
    to_cidr,
    to_cidr6,
    to_group,
)
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    missing,
    not_found,
)
from trimaran.ec2.reconcile_kind import Pair

Request = Mapping[str, Any]

_FLAT = (
    "CidrIp",
    "FromPort",
    "ToPort",
    "IpProtocol",
    "SourceSecurityGroupName",
    "SourceSecurityGroupOwnerId",
)


def asked_rules(ctx: Context, request: Request, group: Pair, *, egress: bool) -> list[Rule]:
    """The rules of an Authorize or Revoke request, in its order.

    Raises:
        EC2Error: ``MissingParameter`` where there is none, or no source;
            ``InvalidParameterCombination``, ``InvalidParameterValue``,
            ``InvalidGroup.NotFound``, ``InvalidPrefixListID.NotFound``.
    """
    permissions = asked_permissions(request)
    named = [pair for entry in permissions for pair in entry.get("UserIdGroupPairs") or ()]
    os_ids = _Sources(ctx, group, named)
    rules: list[Rule] = []
    for entry in permissions:
        rules += _rules_of(entry, os_ids, egress=egress)
    return rules


def asked_permissions(request: Request) -> list[Mapping[str, Any]]:
    """The permissions of a request, whichever way it says them; never none.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterCombination``.
    """
    flat = [name for name in _FLAT if request.get(name) not in (None, "")]
    permissions = list(request.get("IpPermissions") or ())
    if permissions and flat:
        raise invalid_combination(f"The parameter {flat[0]} cannot be used with IpPermissions")
    if flat:
        permissions = [_flat_permission(request)]
    if not permissions:
        raise missing("IpPermissions")
    return permissions


def _flat_permission(request: Request) -> dict[str, Any]:
    made = {name: request.get(name) for name in ("IpProtocol", "FromPort", "ToPort")}
    if request.get("CidrIp"):
        made["IpRanges"] = [{"CidrIp": request["CidrIp"]}]
    if request.get("SourceSecurityGroupName"):
        # Without a protocol it means everything from that group.
        made["IpProtocol"] = made["IpProtocol"] or EVERY
        made["UserIdGroupPairs"] = [
            {
                "GroupName": request["SourceSecurityGroupName"],
                "UserId": request.get("SourceSecurityGroupOwnerId"),
            }
        ]
    return made


def _rules_of(entry: Mapping[str, Any], sources: _Sources, *, egress: bool) -> Iterable[Rule]:
    plain = check_protocol(entry.get("IpProtocol"), entry.get("FromPort"), entry.get("ToPort"))
    rule = Rule(egress, plain.protocol, plain.first, plain.last, plain.way, plain.target)
    lists = entry.get("PrefixListIds") or ()
    if lists:
        named = [row.get("PrefixListId") or "" for row in lists]
        raise not_found("InvalidPrefixListID.NotFound", "prefix list ID", named)
    made = [
        to_cidr(rule, row.get("CidrIp"), row.get("Description"))
        for row in entry.get("IpRanges") or ()
    ]
    made += [
        to_cidr6(rule, row.get("CidrIpv6"), row.get("Description"))
        for row in entry.get("Ipv6Ranges") or ()
    ]
    made += [
        to_group(rule, sources.os_id(row), row.get("Description"))
        for row in entry.get("UserIdGroupPairs") or ()
    ]
    if not made:
        raise EC2Error(
            "MissingParameter",
            "A permission must have at least one IP range, IPv6 range or security group.",
        )
    return made


class _Sources:
    """The groups that permissions name, looked up together."""

    def __init__(self, ctx: Context, group: Pair, named: Sequence[Mapping[str, Any]]) -> None:
        wanted = [row["GroupId"] for row in named if row.get("GroupId")]
        self._ctx = ctx
        self._by_id = groups_by_id(ctx, ids.check_ids(wanted, "groupId", PREFIX))
        self._by_name: dict[str, str] = {}
        if any(not row.get("GroupId") for row in named):
            self._by_name = {
                name_of(pair.item, pair.body): pair.item.os_id or ""
                for pair in all_groups(ctx).pairs
                if pair.item.vpc_id == group.item.vpc_id
            }

    def os_id(self, row: Mapping[str, Any]) -> str:
        """The Neutron id of the group that a pair of user and group names."""
        if row.get("GroupId"):
            return self._by_id[row["GroupId"]]
        name, owner = row.get("GroupName"), row.get("UserId")
        if not name:
            raise missing("GroupId")
        if name not in self._by_name or owner not in (None, "", self._ctx.project_id):
            raise not_found("InvalidGroup.NotFound", "security group", [name])
        return self._by_name[name]


def groups_by_id(ctx: Context, group_ids: Sequence[str]) -> dict[str, str]:
    """Neutron ids of groups by id: own ones, and those that others share with the project.

    Raises:
        EC2Error: ``InvalidGroup.NotFound``.
    """
    if not group_ids:
        return {}
    items = ctx.db.read(lambda s: queries.mapped_by_ids(s, group_ids))
    known = {item.id: item for item in items if item.os_id and item.kind == PREFIX}
    others = [item.os_id for item in known.values() if item.project_id != ctx.project_id]
    if others:
        seen = {row["id"] for row in ctx.user.network.security_groups(id=others, fields=["id"])}
        known = {
            item_id: item
            for item_id, item in known.items()
            if item.project_id == ctx.project_id or item.os_id in seen
        }
    absent = [group_id for group_id in group_ids if group_id not in known]
    if absent:
        raise ids.missing_ids(absent)
    return {group_id: known[group_id].os_id or "" for group_id in group_ids}
