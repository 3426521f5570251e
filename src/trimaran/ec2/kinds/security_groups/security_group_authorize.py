"""AuthorizeSecurityGroupIngress and -Egress (spec ec2.md 3.11): all rules of a request or none.

Neutron makes a list of rules in one call and, when it refuses one, none of
them, so there is nothing to undo (F38).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags
from trimaran.ec2.kinds.security_groups import security_group_notes as notes
from trimaran.ec2.kinds.security_groups.security_group_kind import Known, rule_id, rules_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import Groups, one_group
from trimaran.ec2.kinds.security_groups.security_group_permission import GROUP, Rule
from trimaran.ec2.kinds.security_groups.security_group_request import asked_rules
from trimaran.ec2.kinds.security_groups.security_group_view import Peers, shown_rule
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol.errors import EC2Error, invalid_value
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, NotFound, QuotaExceeded, Unavailable

Request = Mapping[str, Any]

#: AWS's largest quota.  Neutron's own is the project's, and smaller.
MOST_RULES = 1000
#: Rules for which Neutron is given once more the time of any other call.
RULES_IN_TIME = 50


def authorize_security_group_ingress(ctx: Context, request: Request) -> dict[str, Any]:
    """Let something in."""
    return _authorize(ctx, request, egress=False)


def authorize_security_group_egress(ctx: Context, request: Request) -> dict[str, Any]:
    """Let something out."""
    return _authorize(ctx, request, egress=True)


def refuse_classic_egress(group: Pair) -> None:
    """Groups without VPC have rules for what comes in only.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    if group.item.vpc_id is None:
        raise invalid_value(
            "GroupId", group.item.id, "Only groups in a VPC have rules for outgoing traffic."
        )


def _authorize(ctx: Context, request: Request, *, egress: bool) -> dict[str, Any]:
    tags = tag_specifications(request.get("TagSpecifications"), ["security-group-rule"])
    given = tags.get("security-group-rule", {})
    found = one_group(ctx, request.get("GroupId"), request.get("GroupName"))
    [pair] = found.pairs
    if egress:
        refuse_classic_egress(pair)
    rules = asked_rules(ctx, request, pair, egress=egress)
    check_new(rules, [known.rule for known in rules_of(pair.body, found.kind.notes)])
    ctx.commit_point()
    rows = make_rules(ctx, pair, rules)
    made = [
        Known(rule_id(row["id"]), row["id"], rule) for row, rule in zip(rows, rules, strict=True)
    ]
    _note(ctx, made, given)
    shown = {row.id: shown_tags(given) for row in made}
    peers = _peers(ctx, found, rules)
    return {
        "Return": True,
        "SecurityGroupRules": [shown_rule(ctx, pair.item.id, row, peers, shown) for row in made],
    }


def check_new(rules: Sequence[Rule], there: Sequence[Rule]) -> None:
    """Refuse rules that are there already, or twice among the new ones.

    Raises:
        EC2Error: ``InvalidPermission.Duplicate``, ``RulesPerSecurityGroupLimitExceeded``.
    """
    known = {rule.as_stored().key for rule in there}
    for rule in rules:
        key = rule.as_stored().key
        if key in known:
            raise _duplicate(rule)
        known.add(key)
    if len(known) > MOST_RULES:
        raise _too_many()


def make_rules(ctx: Context, group: Pair, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Make rules of a group in Neutron, all of them or none.

    Returns:
        Neutron's JSON of each, in order.

    Raises:
        EC2Error: ``RulesPerSecurityGroupLimitExceeded``, ``InvalidPermission.Duplicate``,
            ``InvalidGroup.NotFound``, ``InvalidParameterValue``.
        Unavailable: no answer; the rules may be there all the same.
    """
    os_id = group.item.os_id or ""
    bodies = [rule.body(os_id, ctx.project_id) for rule in rules]
    try:
        return ctx.user.network.create_security_group_rules(bodies, timeout=_timeout(ctx, rules))
    except QuotaExceeded as error:
        raise _too_many() from error
    except Conflict as error:
        raise _duplicate(rules[0] if len(rules) == 1 else None) from error
    except NotFound as error:
        raise ids.missing_ids([group.item.id]) from error
    except BadRequest as error:
        raise EC2Error(
            "InvalidParameterValue", "The network service does not accept these rules."
        ) from error
    except Unavailable:
        made = _look_for(ctx, os_id, rules)
        if made is None:
            raise
        return made


def _timeout(ctx: Context, rules: Sequence[Rule]) -> tuple[float, float]:
    own = ctx.conf.trimaran
    return own.connect_timeout, own.read_timeout * (1 + len(rules) / RULES_IN_TIME)


def _look_for(ctx: Context, group_os_id: str, rules: Sequence[Rule]) -> list[dict[str, Any]] | None:
    """No answer is no refusal: the rules, if all of them are there."""
    rows = ctx.user.network.security_group_rules(security_group_id=group_os_id)
    known = {row.rule.key: row.os_id for row in rules_of({"security_group_rules": rows}, {})}
    by_id = {row["id"]: row for row in rows}
    stored = [rule.as_stored().key for rule in rules]
    if any(key not in known for key in stored):
        return None
    return [by_id[known[key]] for key in stored]


def _note(ctx: Context, made: Sequence[Known], tags: Mapping[str, str]) -> None:
    odd = [row for row in made if row.rule.from_nought]
    if not odd and not tags:
        return

    def write(session: Session) -> None:
        for row in odd:
            data = {notes.FROM_PORT: 0}
            notes.write_note(session, ctx.project_id, row.id, row.os_id, None, data)
        rows = [Tag(row.id, key, value) for row in made for key, value in tags.items()]
        tag_queries.set_tags(session, ctx.project_id, rows)

    ctx.db.write(write)


def _peers(ctx: Context, found: Groups, rules: Sequence[Rule]) -> Peers:
    peers = Peers(ctx, found.view)
    peers.learn(ctx, [rule.target for rule in rules if rule.way == GROUP])
    return peers


def _duplicate(rule: Rule | None) -> EC2Error:
    which = "a specified rule"
    if rule is not None:
        peer = "a security group" if rule.way == GROUP else rule.target
        ports = "" if rule.first is None else f", from port: {rule.first}, to port: {rule.last}"
        way = "egress" if rule.egress else "ingress"
        which = f'the specified rule "peer: {peer}, {rule.protocol}{ports}, {way}"'
    return EC2Error("InvalidPermission.Duplicate", f"{which} already exists")


def _too_many() -> EC2Error:
    return EC2Error(
        "RulesPerSecurityGroupLimitExceeded",
        "The maximum number of rules per security group has been reached.",
    )
