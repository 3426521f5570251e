"""Internet gateways: items only; attached, they give the VPC's router its way out (spec 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_item
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs import route_push, topology, vpc_gateway
from trimaran.ec2.kinds.vpcs.default_vpc import with_default_vpc
from trimaran.ec2.kinds.vpcs.vpc_kind import being_made, in_use, locked_vpc, one_vpc, usable
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing
from trimaran.ec2.tags_shown import Tags, tags_by_item

Request = Mapping[str, Any]

PREFIX = "igw"

FILTERS: filters.Table = {
    "attachment.state": "Attachments.State",
    "attachment.vpc-id": "Attachments.VpcId",
    "internet-gateway-id": "InternetGatewayId",
    "owner-id": "OwnerId",
}


def create_internet_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Make an internet gateway that is attached to nothing."""
    specified = tag_specifications(request.get("TagSpecifications"), ["internet-gateway"])
    tags = specified.get("internet-gateway", {})
    ctx.commit_point()
    item = store_item(
        ctx, lambda s: NewItem(PREFIX, None, ctx.project_id, id=ids.mint(PREFIX)), tags=tags
    )
    return {"InternetGateway": _shown(ctx, item, shown_tags(tags))}


def describe_internet_gateways(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's internet gateways."""
    page = paging.Page(ctx.action, request, ids="InternetGatewayIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("InternetGatewayIds"), "internetGatewayId", PREFIX)
    items, tags = with_default_vpc(
        ctx, lambda: ctx.db.read(lambda s: _read(s, ctx.project_id)), lambda seen: seen[0]
    )
    by_id = {item.id: item for item in items if item.kind == PREFIX}
    if absent := set(wanted) - set(by_id):
        raise ids.missing_ids(absent)
    rows = [_shown(ctx, by_id[each], tags.get(each)) for each in wanted or by_id]
    shown, token = page.slice(matches.apply(rows), key=lambda row: row["InternetGatewayId"])
    return {"InternetGateways": shown, "NextToken": token}


def attach_internet_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Attach a gateway to a VPC: the router gets its way out, routes to the gateway work."""
    gateway = one_gateway(ctx, request.get("InternetGatewayId"))
    vpc = one_vpc(ctx, request.get("VpcId"))

    def check(session: Session) -> None:
        items = queries.items_of(session, ctx.project_id, [PREFIX])
        current = usable(items, gateway.id)
        if current.vpc_id:
            raise EC2Error(
                "Resource.AlreadyAssociated",
                f"resource {gateway.id} is already attached to network {current.vpc_id}",
            )
        if any(item.vpc_id == vpc.id for item in items):
            raise invalid_value("vpcId", vpc.id, "The VPC has an internet gateway already.")

    ctx.db.read(check)
    vpc_gateway.external_network(ctx)
    ctx.commit_point()

    def apply(session: Session) -> None:
        locked_vpc(session, ctx.project_id, vpc.id)
        queries.locked_items(session, ctx.project_id, [gateway.id])
        check(session)
        queries.update_item(session, ctx.project_id, gateway.id, vpc_id=vpc.id)

    _change(ctx, vpc.id, gateway.id, apply, back_to=None)
    return {}


def detach_internet_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Detach a gateway from its VPC; routes to it become black holes."""
    gateway = one_gateway(ctx, request.get("InternetGatewayId"))
    vpc_id = request.get("VpcId")
    if not vpc_id:
        raise missing("VpcId")
    ids.check_id(vpc_id, "VpcId", "vpc")

    def check(session: Session) -> None:
        items = queries.items_by_ids(session, ctx.project_id, [gateway.id])
        if usable(items, gateway.id).vpc_id != vpc_id:
            raise EC2Error(
                "Gateway.NotAttached", f"resource {gateway.id} is not attached to network {vpc_id}"
            )
        _check_unmapped(session, ctx, vpc_id)

    ctx.db.read(check)
    ctx.commit_point()

    def apply(session: Session) -> None:
        queries.locked_items(session, ctx.project_id, [vpc_id])
        queries.locked_items(session, ctx.project_id, [gateway.id])
        check(session)
        queries.update_item(session, ctx.project_id, gateway.id, vpc_id=None)

    _change(ctx, vpc_id, gateway.id, apply, back_to=vpc_id)
    return {}


def delete_internet_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a gateway that is attached to nothing."""
    gateway = one_gateway(ctx, request.get("InternetGatewayId"))
    if gateway.vpc_id:
        raise in_use("internetGateway", gateway.id)
    ctx.commit_point()

    def delete(session: Session) -> None:
        items = queries.locked_items(session, ctx.project_id, [gateway.id])
        if any(item.vpc_id for item in items):
            raise in_use("internetGateway", gateway.id)
        queries.delete_items(session, ctx.project_id, [gateway.id])

    ctx.db.write(delete)
    return {}


def one_gateway(ctx: Context, gateway_id: str | None) -> Item:
    """The internet gateway that a request names.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``,
            ``InvalidInternetGatewayID.NotFound``.
    """
    if not gateway_id:
        raise missing("InternetGatewayId")
    ids.check_id(gateway_id, "internetGatewayId", PREFIX)
    items, _ = ctx.db.read(lambda s: _read(s, ctx.project_id))
    return usable(items, gateway_id)


def _read(session: Session, project_id: str) -> tuple[list[Item], Tags]:
    """Gateways, with VPCs, and their tags; that of a VPC that is not there yet is not, either."""
    items = queries.items_of(session, project_id, [PREFIX, "vpc"])
    coming = {item.id for item in items if item.kind == "vpc" and being_made(item)}
    tags = tags_by_item(tag_queries.tags_of(session, project_id, [PREFIX]))
    return [i for i in items if i.kind != PREFIX or i.vpc_id not in coming], tags


def _check_unmapped(session: Session, ctx: Context, vpc_id: str) -> None:
    """Addresses that reach their interfaces through the gateway keep it (F44)."""
    items = queries.items_of(session, ctx.project_id, ["eni", "eipalloc"])
    inside = {item.id for item in items if item.kind == "eni" and item.vpc_id == vpc_id}
    if any(item.data.get("network_interface_id") in inside for item in items):
        raise vpc_gateway.mapped(vpc_id)


def _change(
    ctx: Context,
    vpc_id: str,
    gateway_id: str,
    apply: Callable[[Session], None],
    *,
    back_to: str | None,
) -> None:
    def tell() -> None:
        vpc_gateway.sync_gateway(ctx, vpc_id)
        route_push.push_routes(ctx, vpc_id)

    def take_back(session: Session) -> None:
        for item in queries.locked_items(session, ctx.project_id, [gateway_id]):
            if item.vpc_id == (None if back_to else vpc_id):
                queries.update_item(session, ctx.project_id, item.id, vpc_id=back_to)

    topology.change(ctx, vpc_id, apply, tell, take_back)


def _shown(
    ctx: Context, item: Item, tags: Sequence[dict[str, str]] | None = None
) -> dict[str, Any]:
    attached = [{"VpcId": item.vpc_id, "State": "available"}] if item.vpc_id else []
    return {
        "InternetGatewayId": item.id,
        "OwnerId": ctx.project_id,
        "Attachments": attached,
        "Tags": list(tags or ()),
    }
