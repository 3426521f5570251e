"""ModifySecurityGroupRules (spec ec2.md 9.2): a rule that says something else under its old id.

Neutron cannot change a rule.  The new ones are made first, in one call, so
that Neutron's refusal changes nothing; then they take over the ids, then the
old ones go.  The journal holds what was wanted: whoever finishes it sees from
the rules that are there how far it has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups import security_group_notes as notes
from trimaran.ec2.kinds.security_groups.security_group_authorize import check_new, make_rules
from trimaran.ec2.kinds.security_groups.security_group_kind import Known, rules_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import one_group
from trimaran.ec2.kinds.security_groups.security_group_permission import (
    Rule,
    check_protocol,
    check_text,
    to_cidr,
    to_cidr6,
    to_group,
)
from trimaran.ec2.kinds.security_groups.security_group_request import groups_by_id
from trimaran.ec2.kinds.security_groups.security_group_revoke import delete_rules, rules_by_id
from trimaran.ec2.protocol.errors import invalid_combination, missing, not_found

Request = Mapping[str, Any]

_SOURCES = ("CidrIpv4", "CidrIpv6", "PrefixListId", "ReferencedGroupId")


@dataclass(frozen=True)
class Swap:
    """A rule that takes over from another.

    Attributes:
        id: the EC2 id that goes over.
        old: Neutron's rule so far.
        rule: what it shall say.
    """

    id: str
    old: str
    rule: Rule


def modify_security_group_rules(ctx: Context, request: Request) -> dict[str, Any]:
    """Change rules of a group."""
    updates = request["SecurityGroupRules"]
    found = one_group(ctx, request["GroupId"])
    [pair] = found.pairs
    there = rules_of(pair.body, found.kind.notes)
    wanted = _wanted(ctx, updates, there)
    swaps = [
        Swap(known.id, known.os_id, rule) for known, rule in wanted if known.rule.key != rule.key
    ]
    moved = {swap.old for swap in swaps}
    check_new(
        [swap.rule for swap in swaps],
        [known.rule for known in there if known.os_id not in moved]
        # Neutron has the old ones until the new ones are there.
        + [known.rule for known in there if known.os_id in moved],
    )
    said = [(known, rule) for known, rule in wanted if known.os_id not in moved]
    ctx.commit_point()
    if swaps:
        payload = {
            "project": ctx.project_id,
            "group": pair.item.os_id,
            "swaps": [asdict(swap) for swap in swaps],
        }
        key = f"{pair.item.id} {ctx.request_id}"
        job_id = ctx.db.write(
            lambda s: journal.begin(s, ctx.conf, journal.MODIFY_RULES, key, payload)
        )
        with journal.settled(ctx.db, job_id):
            rows = make_rules(ctx, pair, [swap.rule for swap in swaps])
        made = {swap.id: str(row["id"]) for swap, row in zip(swaps, rows, strict=True)}
        ctx.db.write(lambda s: _take_over(s, ctx, swaps, made))
        with journal.settled(ctx.db, job_id, lambda s: journal.hasten(s, job_id)):
            delete_rules(ctx.user.network.delete_security_group_rule, sorted(moved))
        ctx.db.write(lambda s: journal.end(s, job_id))
    if said:
        ctx.db.write(lambda s: _say(s, ctx, said))
    return {}


def _wanted(
    ctx: Context, updates: Sequence[Mapping[str, Any]], there: Sequence[Known]
) -> list[tuple[Known, Rule]]:
    entries = [(row["SecurityGroupRuleId"], row.get("SecurityGroupRule") or {}) for row in updates]
    groups = [entry["ReferencedGroupId"] for _, entry in entries if entry.get("ReferencedGroupId")]
    by_id = {known.id: known for known in rules_by_id(there, [row[0] for row in entries])}
    if len(by_id) < len(entries):
        raise invalid_combination("The same security group rule must not appear multiple times.")
    os_ids = groups_by_id(ctx, list(dict.fromkeys(groups)))
    return [
        (by_id[rule_id], _rule(by_id[rule_id].rule, entry, os_ids)) for rule_id, entry in entries
    ]


def _rule(old: Rule, entry: Mapping[str, Any], groups: Mapping[str, str]) -> Rule:
    given = [name for name in _SOURCES if entry.get(name)]
    if not given:
        raise missing("SecurityGroupRule.CidrIpv4")
    if len(given) > 1:
        raise invalid_combination(f"Only one of {', '.join(_SOURCES)} may be given.")
    plain = check_protocol(entry.get("IpProtocol"), entry.get("FromPort"), entry.get("ToPort"))
    rule = replace(plain, egress=old.egress)
    text = check_text(entry.get("Description"))
    value = entry[given[0]]
    if given[0] == "CidrIpv4":
        return to_cidr(rule, value, text)
    if given[0] == "CidrIpv6":
        return to_cidr6(rule, value, text)
    if given[0] == "PrefixListId":
        raise not_found("InvalidPrefixListID.NotFound", "prefix list ID", [value])
    return to_group(rule, groups[value], text)


def _take_over(
    session: Session, ctx: Context, swaps: Sequence[Swap], made: Mapping[str, str]
) -> None:
    items = queries.items_by_ids(session, ctx.project_id, list(made))
    known = {item.id: item for item in items}
    for swap in swaps:
        if swap.id in made:
            data = {notes.FROM_PORT: 0} if swap.rule.from_nought else {}
            note = known.get(swap.id)
            notes.write_note(session, ctx.project_id, swap.id, made[swap.id], note, data)


def _say(session: Session, ctx: Context, said: Sequence[tuple[Known, Rule]]) -> None:
    for known, rule in said:
        data = {**(known.note.data if known.note else {}), notes.DESCRIPTION: rule.description}
        notes.write_note(session, ctx.project_id, known.id, known.os_id, known.note, data)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.modify_rules``: finish what was made, forget what was not."""
    swaps = [Swap(row["id"], row["old"], Rule(**row["rule"])) for row in job.payload["swaps"]]
    rows = ctx.admin.network.security_group_rules(security_group_id=job.payload["group"])
    old = {swap.old for swap in swaps}
    there = {
        known.rule.key: known.os_id
        for known in rules_of({"security_group_rules": rows}, {})
        if known.os_id not in old
    }
    made = {swap.id: there[key] for swap in swaps if (key := swap.rule.as_stored().key) in there}
    if not made:
        return
    job.commit(lambda s: _take_over(s, ctx, swaps, made))
    doomed = [swap.old for swap in swaps if swap.id in made]
    delete_rules(ctx.admin.network.delete_security_group_rule, doomed)
