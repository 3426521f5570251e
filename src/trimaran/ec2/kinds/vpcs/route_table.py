"""Route tables: create, describe, delete, propagation (spec ec2.md 3.10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries import ec2_tokens as token_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.client_token import check_token, fingerprint
from trimaran.ec2.kinds.item_store import shown_tags, store_items
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.volumes.volume_reserve import known_token, same_request
from trimaran.ec2.kinds.vpcs import route_push, topology
from trimaran.ec2.kinds.vpcs.default_vpc import with_default_vpc
from trimaran.ec2.kinds.vpcs.route_push import PROPAGATING, ROUTES
from trimaran.ec2.kinds.vpcs.route_table_view import NEEDED, Viewer
from trimaran.ec2.kinds.vpcs.vpc_create import local_route
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR, in_use, locked_vpc, one_vpc, usable
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, missing
from trimaran.ec2.tags_shown import Tags, tags_by_item

Request = Mapping[str, Any]

PREFIX = "rtb"

FILTERS: filters.Table = {
    "association.gateway-id": "Associations.GatewayId",
    "association.main": "Associations.Main",
    "association.route-table-association-id": "Associations.RouteTableAssociationId",
    "association.route-table-id": "Associations.RouteTableId",
    "association.subnet-id": "Associations.SubnetId",
    "owner-id": "OwnerId",
    "route-table-id": "RouteTableId",
    "route.destination-cidr-block": "Routes.DestinationCidrBlock",
    "route.destination-ipv6-cidr-block": "Routes.DestinationIpv6CidrBlock",
    "route.destination-prefix-list-id": "Routes.DestinationPrefixListId",
    "route.egress-only-internet-gateway-id": "Routes.EgressOnlyInternetGatewayId",
    "route.gateway-id": "Routes.GatewayId",
    "route.instance-id": "Routes.InstanceId",
    "route.nat-gateway-id": "Routes.NatGatewayId",
    "route.network-interface-id": "Routes.NetworkInterfaceId",
    "route.origin": "Routes.Origin",
    "route.state": "Routes.State",
    "route.transit-gateway-id": "Routes.TransitGatewayId",
    "route.vpc-peering-connection-id": "Routes.VpcPeeringConnectionId",
    "vpc-id": "VpcId",
}


def create_route_table(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a route table with nothing but the local route."""
    tags = tag_specifications(request.get("TagSpecifications"), ["route-table"])
    mine = tags.get("route-table", {})
    token, asked = check_token(request), fingerprint(request)
    earlier = known_token(ctx, token, asked)
    if earlier:
        return {"RouteTable": _one_shown(ctx, earlier), "ClientToken": token}
    vpc = one_vpc(ctx, request.get("VpcId"))
    ctx.commit_point()

    def wanted(session: Session) -> list[NewItem]:
        current = locked_vpc(session, ctx.project_id, vpc.id)
        data = {ROUTES: [local_route(IPv4Network(current.data[CIDR]))]}
        return [NewItem(PREFIX, None, ctx.project_id, data, vpc_id=vpc.id, id=ids.mint(PREFIX))]

    def take(session: Session, items: list[Item]) -> None:
        if token:
            taken = token_queries.take_token(
                session, ctx.project_id, ctx.action, token, asked, items[0].id
            )
            if taken.result != items[0].id:
                raise _Earlier(taken)

    try:
        [item], _ = store_items(ctx, wanted, tags=mine, beside=take)
    except _Earlier as error:
        made = _one_shown(ctx, same_request(error.token, asked))
    else:
        made = Viewer(ctx, [item]).shown(item, shown_tags(mine), ())
    return {"RouteTable": made, "ClientToken": token or None}


class _Earlier(Exception):
    """A request with the same client token was first; nothing of this one is stored."""

    def __init__(self, token: token_queries.ClientToken) -> None:
        self.token = token
        super().__init__()


def describe_route_tables(ctx: Context, request: Request) -> dict[str, Any]:
    """The route tables of the project's VPCs."""
    page = paging.Page(ctx.action, request, ids="RouteTableIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("RouteTableIds"), "routeTableId", PREFIX)
    items, tags = with_default_vpc(ctx, lambda: _read(ctx), lambda seen: seen[0])
    rows = matches.apply(_all_shown(ctx, items, tags, wanted))
    shown, token = page.slice(rows, key=lambda row: row["RouteTableId"])
    return {"RouteTables": shown, "NextToken": token}


def delete_route_table(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a route table that is neither main nor associated."""
    table = one_table(ctx, request.get("RouteTableId"))

    def check(session: Session) -> None:
        items = queries.items_of(session, ctx.project_id, ["vpc", "subnet", PREFIX])
        current = usable(items, table.id)
        if Viewer(ctx, items).associations(current):
            raise in_use("routeTable", table.id)

    ctx.db.read(check)
    ctx.commit_point()

    def delete(session: Session) -> None:
        lock(session, ctx, table)
        check(session)
        queries.delete_items(session, ctx.project_id, [table.id])

    ctx.db.write(delete)
    return {}


def enable_vgw_route_propagation(ctx: Context, request: Request) -> dict[str, Any]:
    """Let the routes of a VPN gateway into a table."""
    return _propagate(ctx, request, on=True)


def disable_vgw_route_propagation(ctx: Context, request: Request) -> dict[str, Any]:
    """Keep the routes of a VPN gateway out of a table."""
    return _propagate(ctx, request, on=False)


def _propagate(ctx: Context, request: Request, *, on: bool) -> dict[str, Any]:
    table = one_table(ctx, request.get("RouteTableId"))
    gateway_id = request.get("GatewayId")
    if not gateway_id:
        raise missing("GatewayId")
    ids.check_id(gateway_id, "gatewayId", "vgw")

    def check(session: Session) -> list[str]:
        items = queries.items_of(session, ctx.project_id, ["vgw", PREFIX])
        known = list(usable(items, table.id).data.get(PROPAGATING) or ())
        if not on:
            return known
        gateway = next((item for item in items if item.id == gateway_id), None)
        if gateway is None:
            raise ids.missing_ids([gateway_id])
        if gateway.vpc_id != table.vpc_id:
            raise EC2Error(
                "Gateway.NotAttached",
                f"resource {gateway_id} is not attached to network {table.vpc_id}",
            )
        return known

    known = ctx.db.read(check)
    ctx.commit_point()
    if (gateway_id in known) == on:
        return {}

    def put(session: Session, present: bool) -> None:
        for current in lock(session, ctx, table):
            others = [g for g in current.data.get(PROPAGATING) or () if g != gateway_id]
            data = {**current.data, PROPAGATING: [*others, gateway_id] if present else others}
            queries.update_item(session, ctx.project_id, table.id, data=data)

    def apply(session: Session) -> None:
        check(session)
        put(session, on)

    vpc_id = table.vpc_id or ""
    topology.change(
        ctx,
        vpc_id,
        apply,
        lambda: route_push.push_routes(ctx, vpc_id),
        lambda s: put(s, not on),
    )
    return {}


def one_table(ctx: Context, table_id: str | None) -> Item:
    """The route table that a request names.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, ``InvalidRouteTableID.NotFound``.
    """
    if not table_id:
        raise missing("RouteTableId")
    ids.check_id(table_id, "routeTableId", PREFIX)
    items = ctx.db.read(lambda s: queries.items_of(s, ctx.project_id, ["vpc", PREFIX]))
    table = Viewer(ctx, items).tables.get(table_id)
    if table is None:
        raise ids.missing_ids([table_id])
    return table


def lock(session: Session, ctx: Context, table: Item) -> list[Item]:
    """The table as it is, kept from others until the transaction ends; [] when it is gone."""
    queries.locked_items(session, ctx.project_id, [table.vpc_id or ""])
    return queries.locked_items(session, ctx.project_id, [table.id])


def _one_shown(ctx: Context, table_id: str) -> dict[str, Any]:
    [made] = _all_shown(ctx, *_read(ctx), [table_id])
    return made


def _read(ctx: Context) -> tuple[list[Item], Tags]:
    def read(session: Session) -> tuple[list[Item], list[tag_queries.Tag]]:
        items = queries.items_of(session, ctx.project_id, [*NEEDED, "i"])
        return items, tag_queries.tags_of(session, ctx.project_id, [PREFIX])

    items, rows = ctx.db.read(read)
    return items, tags_by_item(rows)


def _all_shown(
    ctx: Context, items: Sequence[Item], tags: Tags, wanted: Iterable[str]
) -> list[dict[str, Any]]:
    viewer = Viewer(ctx, items)
    chosen = list(wanted) or list(viewer.tables)
    if absent := set(chosen) - set(viewer.tables):
        raise ids.missing_ids(absent)
    tables = [viewer.tables[table_id] for table_id in chosen]
    stopped = _stopped(ctx, items, viewer.targets(tables))
    return [viewer.shown(table, tags.get(table.id), stopped) for table in tables]


def _stopped(ctx: Context, items: Iterable[Item], instance_ids: set[str]) -> set[str]:
    """The instances among those named that take no packets; one call for all of them (F23)."""
    if not instance_ids:
        return set()
    running = {row["id"] for row in ctx.user.compute.servers() if row["status"] == "ACTIVE"}
    return instance_ids - {item.id for item in items if item.os_id in running}
