"""RevokeSecurityGroupIngress and -Egress (spec ec2.md 3.11): by permission or by rule id.

In a VPC everything that is asked for must be there, or nothing is removed.
Neutron deletes one rule a call; the journal finishes what a dead process left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_authorize import refuse_classic_egress
from trimaran.ec2.kinds.security_groups.security_group_kind import RULE_PREFIX, Known, rules_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import Groups, one_group
from trimaran.ec2.kinds.security_groups.security_group_permission import GROUP, Rule
from trimaran.ec2.kinds.security_groups.security_group_request import asked_rules
from trimaran.ec2.kinds.security_groups.security_group_view import Peers, permissions, shown_rule
from trimaran.ec2.protocol.errors import EC2Error, invalid_combination
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import NotFound

Request = Mapping[str, Any]


def revoke_security_group_ingress(ctx: Context, request: Request) -> dict[str, Any]:
    """Take rules for what comes in away."""
    return _revoke(ctx, request, egress=False)


def revoke_security_group_egress(ctx: Context, request: Request) -> dict[str, Any]:
    """Take rules for what goes out away."""
    return _revoke(ctx, request, egress=True)


def rules_of_one(ctx: Context, request: Request, *, egress: bool) -> tuple[Groups, list[Known]]:
    """The group that a request names, and its rules in one direction.

    Raises:
        EC2Error: that of `one_group` or `refuse_classic_egress`.
    """
    found = one_group(ctx, request.get("GroupId"), request.get("GroupName"))
    [pair] = found.pairs
    if egress:
        refuse_classic_egress(pair)
    rules = rules_of(pair.body, found.kind.notes)
    return found, [known for known in rules if known.rule.egress == egress]


def _revoke(ctx: Context, request: Request, *, egress: bool) -> dict[str, Any]:
    found, there = rules_of_one(ctx, request, egress=egress)
    [pair] = found.pairs
    unknown: list[Rule] = []
    asked: list[Rule] = []
    if request.get("SecurityGroupRuleIds"):
        if request.get("IpPermissions") or request.get("IpProtocol"):
            raise invalid_combination("SecurityGroupRuleId cannot be used with permissions")
        doomed = rules_by_id(there, request["SecurityGroupRuleIds"])
    else:
        asked = asked_rules(ctx, request, pair, egress=egress)
        doomed, unknown = matching(there, asked)
    if unknown and pair.item.vpc_id is not None:
        raise no_such_rule()
    ctx.commit_point()
    _remove(ctx, pair, doomed)
    peers = Peers(ctx, found.view)
    peers.learn(ctx, [rule.target for rule in unknown if rule.way == GROUP])
    return {
        "Return": True,
        "UnknownIpPermissions": permissions(unknown, peers),
        "RevokedSecurityGroupRules": [_revoked(ctx, pair, known, peers) for known in doomed],
    }


def rules_by_id(there: Sequence[Known], rule_ids: Sequence[str]) -> list[Known]:
    """The rules of some ids, each once.

    Raises:
        EC2Error: ``InvalidParameterValue``, ``InvalidSecurityGroupRuleId.NotFound``.
    """
    wanted = ids.check_ids(rule_ids, "securityGroupRuleId", RULE_PREFIX)
    absent = set(wanted) - {known.id for known in there}
    if absent:
        raise ids.missing_ids(absent)
    return [known for known in there if known.id in set(wanted)]


def matching(there: Sequence[Known], asked: Sequence[Rule]) -> tuple[list[Known], list[Rule]]:
    """Which rules are meant, and which of those asked for are not there."""
    by_key: dict[tuple[Any, ...], list[Known]] = {}
    for known in there:
        by_key.setdefault(known.rule.key, []).append(known)
    meant: dict[str, Known] = {}
    unknown = []
    for rule in asked:
        some = next((by_key[key] for key in rule.alike() if key in by_key), None)
        if some is None:
            unknown.append(rule)
        else:
            meant |= {known.os_id: known for known in some}
    return list(meant.values()), unknown


def no_such_rule() -> EC2Error:
    """The error for a permission that a group does not have."""
    return EC2Error(
        "InvalidPermission.NotFound", "The specified rule does not exist in this security group."
    )


def _remove(ctx: Context, pair: Pair, doomed: Sequence[Known]) -> None:
    if not doomed:
        return
    os_ids, rule_ids = [known.os_id for known in doomed], [known.id for known in doomed]
    payload = {"project": ctx.project_id, "rules": os_ids, "ids": rule_ids}
    key = f"{pair.item.id} {ctx.request_id}"
    job_id = ctx.db.write(lambda s: journal.begin(s, ctx.conf, journal.REVOKE, key, payload))
    with journal.settled(ctx.db, job_id):
        delete_rules(ctx.user.network.delete_security_group_rule, os_ids)

    def finish(session: Session) -> None:
        queries.delete_items(session, ctx.project_id, rule_ids)
        journal.end(session, job_id)

    ctx.db.write(finish)


def delete_rules(delete: Callable[[str], None], os_ids: Sequence[str]) -> None:
    """Delete rules of Neutron, several at a time; those that are gone are no error."""

    def one(os_id: str) -> None:
        with contextlib.suppress(NotFound):
            delete(os_id)

    gather(**{os_id: partial(one, os_id) for os_id in os_ids})


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.revoke``."""
    delete_rules(ctx.admin.network.delete_security_group_rule, job.payload["rules"])
    job.commit(lambda s: queries.delete_items(s, ctx.project_id, job.payload["ids"]))


def _revoked(ctx: Context, pair: Pair, known: Known, peers: Peers) -> dict[str, Any]:
    shown = shown_rule(ctx, pair.item.id, known, peers)
    referenced = shown.pop("ReferencedGroupInfo", None)
    for name in ("GroupOwnerId", "SecurityGroupRuleArn", "Tags"):
        del shown[name]
    return shown | ({"ReferencedGroupId": referenced["GroupId"]} if referenced else {})
