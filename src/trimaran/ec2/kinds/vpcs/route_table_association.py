"""Which route table a subnet uses: its own, or the VPC's main one (spec ec2.md 3.10).

An association has no item: it is ``route_table_id`` in the subnet's, or for the
main table in the VPC's, whose number its id bears.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import route_push, topology
from trimaran.ec2.kinds.vpcs.route_table import one_table
from trimaran.ec2.kinds.vpcs.route_table_view import ASSOCIATED
from trimaran.ec2.kinds.vpcs.subnet_kind import ROUTE_TABLE, one_subnet
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE, locked_vpc, usable
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, not_found, unsupported

Request = Mapping[str, Any]


def associate_route_table(ctx: Context, request: Request) -> dict[str, Any]:
    """Give a subnet a table of its own."""
    if request.get("GatewayId") or request.get("PublicIpv4Pool"):
        raise unsupported("Only subnets can be associated with route tables.")
    table = one_table(ctx, request.get("RouteTableId"))
    subnet = one_subnet(ctx, request.get("SubnetId")).item
    if subnet.vpc_id != table.vpc_id:
        raise _elsewhere(table, subnet.id)

    def check(current: Item) -> None:
        if current.data.get(ROUTE_TABLE):
            raise EC2Error(
                "Resource.AlreadyAssociated",
                f"the specified association for route table {table.id} conflicts with an existing "
                "association",
            )

    check(subnet)
    ctx.commit_point()
    _change(ctx, subnet, table, check)
    return {
        "AssociationId": ids.derive(subnet.id, "rtbassoc"),
        "AssociationState": dict(ASSOCIATED),
    }


def disassociate_route_table(ctx: Context, request: Request) -> dict[str, Any]:
    """Let a subnet use the main table again."""
    holder = _holder(ctx, request.get("AssociationId"))
    if holder.kind == "vpc":
        raise invalid_value(
            "associationId",
            request["AssociationId"],
            "Cannot disassociate the main route table association.",
        )
    ctx.commit_point()
    _change(ctx, holder, None, lambda current: _must_be_set(current, request))
    return {}


def replace_route_table_association(ctx: Context, request: Request) -> dict[str, Any]:
    """Give a subnet, or all without a table of their own, another table."""
    table = one_table(ctx, request.get("RouteTableId"))
    holder = _holder(ctx, request.get("AssociationId"))
    if _vpc_of(holder) != table.vpc_id:
        raise _elsewhere(table, holder.id)
    ctx.commit_point()
    _change(ctx, holder, table, lambda current: None)
    return {
        "NewAssociationId": request["AssociationId"],
        "AssociationState": dict(ASSOCIATED),
    }


def _holder(ctx: Context, association_id: str | None) -> Item:
    """The subnet or VPC whose item an association is in."""
    if not association_id:
        raise missing("AssociationId")
    ids.check_id(association_id, "associationId", "rtbassoc")
    possible = [ids.derive(association_id, kind) for kind in ("vpc", "subnet")]
    for item in ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, possible)):
        if STAGE not in item.data and item.data.get(ROUTE_TABLE):
            return item
    raise _no_association(association_id)


def _vpc_of(holder: Item) -> str:
    return holder.id if holder.kind == "vpc" else holder.vpc_id or ""


def _must_be_set(current: Item, request: Request) -> None:
    if not current.data.get(ROUTE_TABLE):
        raise _no_association(request["AssociationId"])


def _change(ctx: Context, holder: Item, table: Item | None, check: Callable[[Item], None]) -> None:
    vpc_id = _vpc_of(holder)
    before: list[str | None] = []

    def put(session: Session, value: str | None) -> None:
        [current] = queries.items_by_ids(session, ctx.project_id, [holder.id])
        data = {key: kept for key, kept in current.data.items() if key != ROUTE_TABLE}
        if value:
            data[ROUTE_TABLE] = value
        queries.update_item(session, ctx.project_id, holder.id, data=data)

    def apply(session: Session) -> None:
        locked_vpc(session, ctx.project_id, vpc_id)
        chosen = [holder.id, *([table.id] if table else [])]
        items = queries.locked_items(session, ctx.project_id, chosen)
        current = usable(items, holder.id)
        if table is not None:
            usable(items, table.id)
        check(current)
        before[:] = [current.data.get(ROUTE_TABLE)]
        put(session, table.id if table else None)

    def take_back(session: Session) -> None:
        for current in queries.locked_items(session, ctx.project_id, [holder.id]):
            if current.data.get(ROUTE_TABLE) == (table.id if table else None):
                put(session, before[0])

    topology.change(ctx, vpc_id, apply, lambda: route_push.push_routes(ctx, vpc_id), take_back)


def _elsewhere(table: Item, other: str) -> EC2Error:
    return invalid_value(
        "routeTableId", table.id, f"{table.id} and {other} belong to different networks."
    )


def _no_association(association_id: str) -> EC2Error:
    return not_found("InvalidAssociationID.NotFound", "association ID", [association_id])
