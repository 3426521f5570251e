"""Security groups as the reconciliation engine sees them: what Neutron lists of the project.

A group's rules come with it, so one listing answers for both.  An item's blob
holds, while the group is being made, ``stage``, and always ``name``, the name
that it was made with, by which two that are made at once are told apart.

Rules need no item: their ids are computed from Neutron's.  One that has been
modified, or about which EC2 says what Neutron cannot hold, has an item of the
kind ``sgr`` with the rule behind it as ``os_id`` and in its blob ``description``
(Neutron cannot change a rule's) and ``from_port`` 0 (Neutron has no port 0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups import security_group_default as default
from trimaran.ec2.kinds.security_groups.security_group_permission import Rule, of_neutron
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE, being_made
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Reference, Selection, Thunks

PREFIX = default.PREFIX
RULE_PREFIX = "sgr"
NAME = "name"

#: Hex digits of a rule's id, as AWS has them.
_RULE_DIGITS = 17
_FIELDS = ["id", "name", "description", "project_id", "security_group_rules"]


class SecurityGroups(Kind):
    """The security groups of the caller's project.

    Attributes:
        vpcs: the project's VPCs, when all groups were asked for.
        notes: items of rules by Neutron id.
    """

    prefixes = (PREFIX,)

    def __init__(self) -> None:
        self.vpcs: list[Item] = []
        self.notes: dict[str, Item] = {}
        self._strange: Callable[[Mapping[str, Any]], bool] = lambda row: False
        self._taken: set[str] = set()

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        kinds = [RULE_PREFIX] if wanted is not None else [PREFIX, RULE_PREFIX, "vpc"]
        rows = queries.items_of(session, ctx.project_id, kinds)
        self.notes = {row.os_id: row for row in rows if row.kind == RULE_PREFIX and row.os_id}
        if wanted is not None:
            return queries.items_by_ids(session, ctx.project_id, wanted)
        self.vpcs = [row for row in rows if row.kind == "vpc" and not being_made(row)]
        groups = [row for row in rows if row.kind == PREFIX]
        self._taken = {row.id for row in groups}
        known = {row.os_id for row in groups}
        shown = {row.id for row in self.vpcs if STAGE not in row.data}
        self._strange = lambda row: row["id"] not in known and _is_strange(row, shown, self._taken)
        return groups

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        listing = partial(
            ctx.user.network.security_groups, project_id=ctx.project_id, fields=_FIELDS
        )
        if selection is None:
            return {"groups": listing}
        thunks = {}
        if selection.os_ids:
            thunks["groups"] = partial(listing, id=list(selection.os_ids))
        if selection.waiting:
            names = [item.id for item in selection.waiting]
            thunks["waiting"] = partial(listing, name=names)
        return thunks

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        rows = {row["id"]: row for listing in listed.values() for row in listing}
        return [
            Found(PREFIX, row["id"], row, hint=hint(row.get("name")))
            for row in rows.values()
            if row.get("project_id", ctx.project_id) == ctx.project_id and not self._strange(row)
        ]

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        """A group that nobody made through us is one without VPC, unless it is a default group."""
        name = str(found.body.get("name") or "")
        if any(vpc.id == name for vpc in self.vpcs):
            return default.default_group_item(ctx, name, found.os_id)
        return NewItem(PREFIX, found.os_id, ctx.project_id)

    def fate(self, ctx: Context, item: Item) -> Fate:
        # What is being made is the journal's affair.
        return Fate.KEEP if being_made(item) else Fate.DELETE

    def hidden(self, item: Item) -> bool:
        return being_made(item)

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        for thing in found:
            for row in thing.body.get("security_group_rules") or ():
                if row.get("remote_group_id"):
                    # Perhaps another project's: it gets a mapping, and its owner adopts that.
                    yield Reference(PREFIX, row["remote_group_id"], own=False)


def _is_strange(row: Mapping[str, Any], vpcs: Collection[str], taken: Collection[str]) -> bool:
    """Whether a group that has no item is in the making (or what is left of that).

    Such a one bears the name of the item that it is made for, or of its VPC:
    its item comes from whoever makes it, and no other one may.
    """
    name = str(row.get("name") or "")
    if ids.is_id(name, [PREFIX]):
        return name not in taken
    if ids.is_id(name, ["vpc"]):
        return name not in vpcs or default.default_group_id(name) in taken
    return False


def hint(name: Any) -> str:
    """The id that a group was made for: its name until it gets its own."""
    return name if isinstance(name, str) and ids.is_id(name, [PREFIX]) else ""


def name_of(item: Item, body: Mapping[str, Any]) -> str:
    """How a group is called on the wire."""
    if default.is_default_group(item):
        return default.NAME
    name = str(body.get("name") or "")
    # A group whose making was cut short still bears its id.
    return str(item.data.get(NAME) or name) if name == item.id else name


def rule_id(os_id: str) -> str:
    """The id of a rule that has no item."""
    return f"{RULE_PREFIX}-{os_id.replace('-', '')[:_RULE_DIGITS].lower()}"


@dataclass(frozen=True, slots=True)
class Known:
    """A rule of a group, with all that is known of it.

    Attributes:
        id: its EC2 id.
        os_id: Neutron's.
        rule: what it says.
        note: its item, if it has one.
    """

    id: str
    os_id: str
    rule: Rule
    note: Item | None = field(default=None, compare=False)


def rules_of(body: Mapping[str, Any], notes: Mapping[str, Item]) -> list[Known]:
    """The rules of a group that EC2 has words for, oldest first.

    Args:
        body: the group's JSON.
        notes: items of rules by Neutron id.
    """
    rows = body.get("security_group_rules") or ()
    known = []
    for row in sorted(rows, key=lambda row: (str(row.get("created_at") or ""), row["id"])):
        note = notes.get(row["id"])
        rule = of_neutron(row, note.data if note else None)
        if rule is not None:
            known.append(Known(note.id if note else rule_id(row["id"]), row["id"], rule, note))
    return known
