"""VPCs as the reconciliation engine sees them: an item each, with a Neutron router behind it.

The item's blob has upstream's ``cidr_block``, ``is_default``, ``route_table_id``
(the main table) and ``dhcp_options_id``, and of ours:

``stage``
    ``making`` until everything of the VPC is there, ``deleting`` once it goes;
    the journal undoes or finishes it when its process dies (`topology_raze`);
``attributes``
    what ModifyVpcAttribute changed (`vpc_attribute`).

A VPC's row is also its lock: whoever changes what belongs to a VPC takes the
row first (`locked_vpc`), so that a VPC is not deleted under what is added to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.protocol.errors import EC2Error, missing
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Selection, Thunks

PREFIX = "vpc"
CIDR = "cidr_block"
IS_DEFAULT = "is_default"
MAIN_TABLE = "route_table_id"
DHCP_OPTIONS = "dhcp_options_id"
ATTRIBUTES = "attributes"

STAGE = "stage"
MAKING = "making"
DELETING = "deleting"

_FIELDS = ["id", "name", "project_id", "external_gateway_info"]


class Built(Kind):
    """A kind that is made here only: an object that no item has is the project's own affair."""

    #: the listing that finds the objects
    listing: ClassVar[str]

    def __init__(self) -> None:
        self._known: set[str] = set()

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        return self.knowing(super().load(session, ctx, wanted))

    def knowing(self, items: list[Item]) -> list[Item]:
        """The items, which say what the objects of this kind are."""
        self._known = {item.os_id for item in items if item.os_id}
        return items

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        [prefix] = self.prefixes
        return [
            Found(prefix, row["id"], row)
            for row in listed.get(self.listing, ())
            if row["id"] in self._known
        ]

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        return NewItem(found.kind, found.os_id, ctx.project_id)

    def fate(self, ctx: Context, item: Item) -> Fate:
        return Fate.KEEP if item.os_id is None else Fate.DELETE

    def hidden(self, item: Item) -> bool:
        return being_made(item)


class Vpcs(Built):
    """The VPCs of the caller's project."""

    prefixes = (PREFIX,)
    listing = "routers"

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        query: dict[str, Any] = {"project_id": ctx.project_id, "fields": _FIELDS}
        if selection is not None:
            query["id"] = list(selection.os_ids)
        elif not self._known:
            return {}
        return {"routers": lambda: ctx.user.network.routers(**query)}

    def removed(self, session: Session, ctx: Context, items: Sequence[Item]) -> None:
        """A VPC whose router was deleted in Neutron takes with it what lives here only."""
        gone = {item.id for item in items}
        inside = [
            item
            for item in queries.items_of(session, ctx.project_id, ["rtb", "igw", "vgw"])
            if item.vpc_id in gone
        ]
        tables = [item.id for item in inside if item.kind == "rtb"]
        queries.delete_items(session, ctx.project_id, tables)
        for item in inside:
            if item.kind != "rtb":
                queries.update_item(session, ctx.project_id, item.id, vpc_id=None)


def being_made(item: Item) -> bool:
    """Whether an item is not there yet for its users."""
    return item.data.get(STAGE) == MAKING


def is_default(item: Item) -> bool:
    """Whether an item is its project's default VPC."""
    return item.kind == PREFIX and bool(item.data.get(IS_DEFAULT))


def one_vpc(ctx: Context, vpc_id: str | None, parameter: str = "VpcId") -> Item:
    """The VPC that a request names, as the database knows it.

    Args:
        ctx: the request.
        vpc_id: what the caller sent.
        parameter: its wire name.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, ``InvalidVpcID.NotFound``.
    """
    if not vpc_id:
        raise missing(parameter)
    ids.check_id(vpc_id, parameter, PREFIX)
    return usable(ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [vpc_id])), vpc_id)


def named_item(ctx: Context, item_id: str | None, parameter: str, prefix: str) -> Item:
    """The item that a request names, of a kind that lives in the database only.

    Args:
        ctx: the request.
        item_id: what the caller sent.
        parameter: its wire name.
        prefix: the kind.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, the kind's ``NotFound``.
    """
    if not item_id:
        raise missing(parameter)
    ids.check_id(item_id, parameter[:1].lower() + parameter[1:], prefix)
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [item_id]))
    return usable(items, item_id)


def usable(items: Sequence[Item], item_id: str) -> Item:
    """The item of an id, unless it does not exist, or not yet, or not any more.

    Raises:
        EC2Error: the kind's ``NotFound``.
    """
    for item in items:
        if item.id == item_id and item.dead_for is None and STAGE not in item.data:
            return item
    raise ids.missing_ids([item_id])


def locked_vpc(session: Session, project_id: str, vpc_id: str) -> Item:
    """The VPC, kept from everybody else's changes until this transaction ends.

    The first statement of every transaction that adds to a VPC or takes from it.

    Raises:
        EC2Error: ``InvalidVpcID.NotFound`` when it is gone, or going.
    """
    return usable(queries.locked_items(session, project_id, [vpc_id]), vpc_id)


def vpc_items(session: Session, project_id: str) -> list[Item]:
    """The project's VPCs, but for those that are not there yet."""
    items = queries.items_of(session, project_id, [PREFIX])
    return [item for item in items if item.dead_for is None and not being_made(item)]


def default_vpc_of(items: Sequence[Item]) -> Item | None:
    """The default VPC among a project's."""
    return next((item for item in items if is_default(item) and STAGE not in item.data), None)


def in_use(thing: str, item_id: str) -> EC2Error:
    """The error for what others still depend on."""
    return EC2Error(
        "DependencyViolation", f"The {thing} '{item_id}' has dependencies and cannot be deleted."
    )
