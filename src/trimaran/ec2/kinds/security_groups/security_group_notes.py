"""What the database knows of rules: notes (items) and tags, kept in step with Neutron's rules.

See `security_group_kind` for what a note holds.  Tags of a rule without note
are stored under the id that is computed for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_rules as rule_queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_kind import (
    RULE_PREFIX,
    SecurityGroups,
    rule_id,
    rules_of,
)
from trimaran.ec2.reconcile_kind import Pair
from trimaran.ec2.tags_shown import tags_by_item

DESCRIPTION = "description"
FROM_PORT = "from_port"


def write_note(
    session: Session,
    project_id: str,
    rule_id: str,
    os_id: str,
    note: Item | None,
    data: Mapping[str, Any],
) -> None:
    """Say something about a rule.

    Args:
        session: of a writing unit.
        project_id: whose rule it is.
        rule_id: its id.
        os_id: the rule of Neutron behind it, from now on.
        note: what was said so far.
        data: the whole new blob; an empty one for a rule that was never
            modified needs no note.
    """
    if note is not None and note.os_id == os_id:
        queries.update_item(session, project_id, rule_id, data=data)
        return
    if note is not None:
        # Its object changes, which items otherwise never do; tags stay under its id.
        rule_queries.replace_object(session, project_id, rule_id, os_id)
        queries.update_item(session, project_id, rule_id, data=data)
    else:
        new = NewItem(RULE_PREFIX, os_id, project_id, data, id=rule_id)
        queries.add_items(session, [new], ids.mint)


def forget_group(ctx: Context, kind: SecurityGroups, pair: Pair) -> None:
    """Remove the item of a group and everything about its rules."""
    gone = [pair.item.id, *(known.id for known in rules_of(pair.body, kind.notes))]
    ctx.db.write(lambda s: queries.delete_items(s, ctx.project_id, gone))


def forget_vanished(
    ctx: Context, kind: SecurityGroups, tagged: Collection[str], there: Collection[str]
) -> None:
    """Remove notes and tags of rules that Neutron has no more.

    Args:
        ctx: the request.
        kind: with the notes as they were read before the rules were listed.
        tagged: ids of rules with tags, read before the rules were listed.
        there: ids of all rules of the project.
    """
    gone = {note.id for note in kind.notes.values()}.union(tagged).difference(there)
    if gone:
        ctx.db.write(lambda s: queries.delete_items(s, ctx.project_id, gone))


def tags_of_rules(ctx: Context) -> dict[str, list[dict[str, str]]]:
    """The tags of the project's rules by rule id."""
    return tags_by_item(
        ctx.db.read(lambda s: tag_queries.tags_of(s, ctx.project_id, [RULE_PREFIX]))
    )


def rule_ids_of(rows: Collection[Mapping[str, Any]], notes: Mapping[str, Item]) -> list[str]:
    """The ids of rules of Neutron."""
    return [notes[row["id"]].id if row["id"] in notes else rule_id(row["id"]) for row in rows]
