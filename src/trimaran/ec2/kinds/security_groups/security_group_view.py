"""How security groups and their rules look on the wire (spec ec2.md 3.11 and appendix B).

Rules with the same protocol and ports are one permission, as AWS shows them;
one by one, with ids, they are what DescribeSecurityGroupRules lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups import security_group_permission as permission
from trimaran.ec2.kinds.security_groups.security_group_kind import (
    Known,
    SecurityGroups,
    name_of,
    rules_of,
)
from trimaran.ec2.kinds.security_groups.security_group_permission import Rule
from trimaran.ec2.reconcile_kind import Pair, View

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """A group that rules name: what is known of it."""

    id: str
    owner: str | None
    name: str | None = None
    vpc_id: str | None = None


class Peers:
    """The groups that rules name, by Neutron id.

    Args:
        ctx: the request.
        view: its groups are known with their names; of others the database
            knows ids and owners, asked in one query when there are any.
    """

    def __init__(self, ctx: Context, view: View) -> None:
        self._peers = {
            pair.found.os_id: Peer(
                pair.item.id, ctx.project_id, name_of(pair.item, pair.body), pair.item.vpc_id
            )
            for pair in view.pairs
            if pair.found is not None
        }
        self.learn(ctx, view.ids)

    def learn(self, ctx: Context, os_ids: Iterable[str]) -> None:
        """Ask the database for groups that are not known yet."""
        others = [os_id for os_id in os_ids if os_id not in self._peers]
        if others:
            items = ctx.db.read(lambda s: queries.by_os_ids(s, others))
            for os_id, item in items.items():
                self._peers[os_id] = Peer(item.id, item.project_id, vpc_id=item.vpc_id)

    def of(self, os_id: str) -> Peer | None:
        """What is known of a group."""
        return self._peers.get(os_id)


def shown_group(view: View, kind: SecurityGroups, pair: Pair, peers: Peers) -> Row:
    """A group as boto3 shows it."""
    item = pair.item
    rules = [known.rule for known in rules_of(pair.body, kind.notes)]
    made = {
        "GroupId": item.id,
        "GroupName": name_of(item, pair.body),
        "Description": pair.body.get("description") or "",
        "OwnerId": view.ctx.project_id,
        "VpcId": item.vpc_id,
        "SecurityGroupArn": arn(view.ctx, "security-group", item.id),
        "IpPermissions": permissions([rule for rule in rules if not rule.egress], peers),
        "IpPermissionsEgress": permissions([rule for rule in rules if rule.egress], peers),
        "Tags": view.tags.get(item.id),
    }
    return {name: value for name, value in made.items() if value is not None}


def permissions(rules: Iterable[Rule], peers: Peers) -> list[Row]:
    """Rules of one direction as permissions, in an order that does not change."""
    grouped: dict[tuple[str, int, int], list[Rule]] = {}
    for rule in rules:
        grouped.setdefault(rule.permission, []).append(rule)
    return [_permission(grouped[key], peers) for key in sorted(grouped)]


def _permission(rules: list[Rule], peers: Peers) -> Row:
    shown: Row = {
        "IpProtocol": rules[0].protocol,
        "UserIdGroupPairs": [],
        "IpRanges": [],
        "Ipv6Ranges": [],
        "PrefixListIds": [],
    }
    if rules[0].first is not None:
        shown |= {"FromPort": rules[0].first, "ToPort": rules[0].last}
    there: set[str] = set()
    for rule in sorted(rules, key=lambda rule: (rule.way, rule.target)):
        # One group as source of IPv4 and of IPv6: two rules of Neutron, one of EC2.
        if rule.target in there:
            continue
        there.add(rule.target)
        text = {"Description": rule.description} if rule.description else {}
        if rule.way == permission.V4:
            shown["IpRanges"].append({"CidrIp": rule.target, **text})
        elif rule.way == permission.V6:
            shown["Ipv6Ranges"].append({"CidrIpv6": rule.target, **text})
        elif peer := peers.of(rule.target):
            shown["UserIdGroupPairs"].append(_pair(peer) | text)
    return shown


def _pair(peer: Peer) -> Row:
    made = {
        "GroupId": peer.id,
        "GroupName": peer.name,
        "UserId": peer.owner,
    }
    return {name: value for name, value in made.items() if value is not None}


def shown_rule(
    ctx: Context,
    group_id: str,
    known: Known,
    peers: Peers,
    tags: Mapping[str, list[dict[str, str]]] | None = None,
) -> Row:
    """A rule with its id as boto3 shows it.

    Args:
        ctx: the request.
        group_id: its group.
        known: the rule.
        peers: the groups that rules name.
        tags: tags by rule id.
    """
    rule = known.rule
    # AWS shows -1 here where a permission has no ports at all.
    shown: Row = {
        "SecurityGroupRuleId": known.id,
        "GroupId": group_id,
        "GroupOwnerId": ctx.project_id,
        "IsEgress": rule.egress,
        "IpProtocol": rule.protocol,
        "FromPort": -1 if rule.first is None else rule.first,
        "ToPort": -1 if rule.last is None else rule.last,
        "SecurityGroupRuleArn": arn(ctx, "security-group-rule", known.id),
        "Tags": (tags or {}).get(known.id, []),
    }
    if rule.description:
        shown["Description"] = rule.description
    if rule.way == permission.V4:
        shown["CidrIpv4"] = rule.target
    elif rule.way == permission.V6:
        shown["CidrIpv6"] = rule.target
    elif peer := peers.of(rule.target):
        named = {"GroupId": peer.id, "UserId": peer.owner, "VpcId": peer.vpc_id}
        shown["ReferencedGroupInfo"] = {
            name: value for name, value in named.items() if value is not None
        }
    return shown


def arn(ctx: Context, resource: str, item_id: str) -> str:
    """The Amazon resource name of something of the project."""
    return f"arn:aws:ec2:{ctx.region}:{ctx.project_id}:{resource}/{item_id}"
