"""Rules by their ids: describe them, and change what is said about them (spec ec2.md 3.11, 9.2).

A rule's id is computed from Neutron's (see `security_group_kind`), so nothing
has to be stored to show one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups import security_group_notes as notes
from trimaran.ec2.kinds.security_groups.security_group_kind import RULE_PREFIX, Known, rules_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import all_groups
from trimaran.ec2.kinds.security_groups.security_group_permission import check_text
from trimaran.ec2.kinds.security_groups.security_group_request import asked_rules
from trimaran.ec2.kinds.security_groups.security_group_revoke import (
    matching,
    no_such_rule,
    rules_by_id,
    rules_of_one,
)
from trimaran.ec2.kinds.security_groups.security_group_view import Peers, shown_rule
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import invalid_combination, missing

Request = Mapping[str, Any]

FILTERS: filters.Table = {
    "group-id": "GroupId",
    "security-group-rule-id": "SecurityGroupRuleId",
}


def describe_security_group_rules(ctx: Context, request: Request) -> dict[str, Any]:
    """The rules of all groups of the project, or of some ids."""
    page = paging.Page(ctx.action, request, ids="SecurityGroupRuleIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    asked = request.get("SecurityGroupRuleIds")
    wanted = ids.check_ids(asked, "securityGroupRuleId", RULE_PREFIX)
    tags = notes.tags_of_rules(ctx)
    found = all_groups(ctx)
    peers = Peers(ctx, found.view)
    shown: dict[str, dict[str, Any]] = {}
    for pair in found.pairs:
        for known in rules_of(pair.body, found.kind.notes):
            shown[known.id] = shown_rule(ctx, pair.item.id, known, peers, tags)
    rows = [row for pair in found.pairs for row in pair.body.get("security_group_rules") or ()]
    notes.forget_vanished(ctx, found.kind, tags, notes.rule_ids_of(rows, found.kind.notes))
    absent = [rule_id for rule_id in wanted if rule_id not in shown]
    if absent:
        raise ids.missing_ids(absent)
    chosen = [shown[rule_id] for rule_id in wanted] if wanted else list(shown.values())
    page_rows, token = page.slice(
        matches.apply(chosen), key=lambda row: str(row["SecurityGroupRuleId"])
    )
    return {"SecurityGroupRules": page_rows, "NextToken": token}


def missing_rules(ctx: Context, rule_ids: Sequence[str]) -> list[str]:
    """Which of some rules do not exist."""
    found = all_groups(ctx)
    there = {known.id for pair in found.pairs for known in rules_of(pair.body, found.kind.notes)}
    return [rule_id for rule_id in rule_ids if rule_id not in there]


def update_security_group_rule_descriptions_ingress(
    ctx: Context, request: Request
) -> dict[str, Any]:
    """Say something else about rules for what comes in."""
    return _update_descriptions(ctx, request, egress=False)


def update_security_group_rule_descriptions_egress(
    ctx: Context, request: Request
) -> dict[str, Any]:
    """Say something else about rules for what goes out."""
    return _update_descriptions(ctx, request, egress=True)


def _update_descriptions(ctx: Context, request: Request, *, egress: bool) -> dict[str, Any]:
    found, there = rules_of_one(ctx, request, egress=egress)
    [pair] = found.pairs
    by_id = request.get("SecurityGroupRuleDescriptions") or ()
    if by_id and request.get("IpPermissions"):
        raise invalid_combination("SecurityGroupRuleDescription cannot be used with IpPermissions")
    texts: dict[str, tuple[Known, str]] = {}
    if by_id:
        for row in by_id:
            if not row.get("SecurityGroupRuleId"):
                raise missing("SecurityGroupRuleDescription.SecurityGroupRuleId")
            text = check_text(row.get("Description"))
            [known] = rules_by_id(there, [row["SecurityGroupRuleId"]])
            texts[known.os_id] = (known, text)
    else:
        for rule in asked_rules(ctx, request, pair, egress=egress):
            meant, unknown = matching(there, [rule])
            if unknown:
                raise no_such_rule()
            texts |= {known.os_id: (known, rule.description) for known in meant}
    ctx.commit_point()

    def write(session: Session) -> None:
        for known, text in texts.values():
            data = {**(known.note.data if known.note else {}), notes.DESCRIPTION: text}
            notes.write_note(session, ctx.project_id, known.id, known.os_id, known.note, data)

    ctx.db.write(write)
    return {}
