"""CreateRoute, ReplaceRoute and DeleteRoute (spec ec2.md 3.10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import route_push, topology
from trimaran.ec2.kinds.vpcs.route_push import DESTINATION, GATEWAY, INTERFACE, ROUTES
from trimaran.ec2.kinds.vpcs.route_table import lock, one_table
from trimaran.ec2.kinds.vpcs.vpc_cidr import network
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    not_found,
    unsupported,
)

Request = Mapping[str, Any]
Route = Mapping[str, Any]
#: The routes of a table as they are to be; None when they are already.
Wanted = list[Route] | None

_TARGETS = ("GatewayId", "InstanceId", "NetworkInterfaceId", "VpcPeeringConnectionId")
#: Destinations and targets that there are none of here.
_REFUSED = (
    "DestinationIpv6CidrBlock",
    "DestinationPrefixListId",
    "CarrierGatewayId",
    "CoreNetworkArn",
    "EgressOnlyInternetGatewayId",
    "LocalGatewayId",
    "LocalTarget",
    "NatGatewayId",
    "OdbNetworkArn",
    "TransitGatewayId",
    "VpcEndpointId",
)


def create_route(ctx: Context, request: Request) -> dict[str, Any]:
    """Add a route; the same one again is a success."""
    table, cidr = _asked(ctx, request)

    def change(routes: Sequence[Route], target: Route) -> Wanted:
        there = _at(routes, cidr)
        if there is None:
            return [*routes, target]
        if dict(there) == dict(target):
            return None
        raise EC2Error("RouteAlreadyExists", f"The route identified by {cidr} already exists.")

    _change_to_target(ctx, request, table, cidr, change)
    return {"Return": True}


def replace_route(ctx: Context, request: Request) -> dict[str, Any]:
    """Give a route another target."""
    table, cidr = _asked(ctx, request)

    def change(routes: Sequence[Route], target: Route) -> Wanted:
        there = _at(routes, cidr)
        if there is None:
            raise _no_route(table, cidr)
        return [target if route is there else route for route in routes]

    _change_to_target(ctx, request, table, cidr, change)
    return {}


def delete_route(ctx: Context, request: Request) -> dict[str, Any]:
    """Remove a route."""
    table, cidr = _asked(ctx, request)

    def change(session: Session) -> Wanted:
        routes = _routes(session, ctx, table)
        there = _at(routes, cidr)
        if there is None:
            raise _no_route(table, cidr)
        if _is_local(there):
            raise invalid_value("DestinationCidrBlock", cidr, "The local route cannot be removed.")
        return [route for route in routes if route is not there]

    ctx.db.read(change)
    ctx.commit_point()
    _store(ctx, table, change)
    return {}


def _asked(ctx: Context, request: Request) -> tuple[Item, str]:
    for name in _REFUSED:
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    table = one_table(ctx, request.get("RouteTableId"))
    return table, str(network(request.get("DestinationCidrBlock"), "DestinationCidrBlock"))


def _change_to_target(
    ctx: Context,
    request: Request,
    table: Item,
    cidr: str,
    change: Callable[[Sequence[Route], Route], Wanted],
) -> None:
    given = [name for name in _TARGETS if request.get(name)]
    if not given:
        raise missing("GatewayId")
    if len(given) > 1:
        raise invalid_combination(f"The parameters {' and '.join(given)} exclude each other.")
    if given == ["VpcPeeringConnectionId"]:
        raise EC2Error("InvalidRequest", "Routes to peered VPCs are not supported.")
    parameter, target_id = given[0], str(request[given[0]])

    def apply(session: Session) -> Wanted:
        items = queries.items_of(session, ctx.project_id, ["vpc", "igw", "vgw", "eni", "i"])
        vpc = next((item for item in items if item.id == table.vpc_id), None)
        if vpc is None:
            raise ids.missing_ids([table.id])
        if IPv4Network(cidr).subnet_of(IPv4Network(vpc.data[CIDR])):
            raise invalid_value(
                "DestinationCidrBlock", cidr, "Routes within the VPC cannot be changed."
            )
        target = _target(items, table, parameter, target_id)
        return change(_routes(session, ctx, table), {DESTINATION: cidr, **target})

    wanted = ctx.db.read(apply)
    ctx.commit_point()
    if wanted is not None:
        _store(ctx, table, apply)


def _target(items: Sequence[Item], table: Item, parameter: str, target_id: str) -> dict[str, str]:
    by_id = {item.id: item for item in items if item.dead_for is None}
    if parameter == "GatewayId":
        ids.check_id(target_id, "gatewayId", "igw", "vgw")
        gateway = by_id.get(target_id)
        if ids.kind_of(target_id) == "vgw" and (gateway is None or gateway.vpc_id != table.vpc_id):
            raise not_found("InvalidGatewayID.NotFound", "gateway ID", [target_id])
        _check_here(gateway, target_id, table)
        return {GATEWAY: target_id}
    if parameter == "InstanceId":
        ids.check_id(target_id, "instanceId", "i")
        if target_id not in by_id:
            raise ids.missing_ids([target_id])
        found = [i for i in items if i.kind == "eni" and i.data.get("instance_id") == target_id]
        if not found:
            raise invalid_value("instanceId", target_id, "The instance has no network interface.")
        if len(found) > 1:
            raise EC2Error(
                "InvalidInstanceID",
                f"There are multiple interfaces attached to instance '{target_id}'. "
                "Please specify an interface ID for the operation instead.",
            )
        _check_here(found[0], target_id, table)
        return {INTERFACE: found[0].id}
    ids.check_id(target_id, "networkInterfaceId", "eni")
    _check_here(by_id.get(target_id), target_id, table)
    return {INTERFACE: target_id}


def _check_here(item: Item | None, target_id: str, table: Item) -> None:
    if item is None:
        raise ids.missing_ids([target_id])
    if item.vpc_id != table.vpc_id:
        raise invalid_value(
            "target",
            target_id,
            f"The route table {table.id} and {target_id} belong to different networks.",
        )


def _routes(session: Session, ctx: Context, table: Item) -> list[Route]:
    items = queries.items_by_ids(session, ctx.project_id, [table.id])
    if not items:
        raise ids.missing_ids([table.id])
    return list(items[0].data.get(ROUTES) or ())


def _at(routes: Sequence[Route], cidr: str) -> Route | None:
    return next((route for route in routes if route[DESTINATION] == cidr), None)


def _is_local(route: Route) -> bool:
    return route.get(GATEWAY) is None and not route.get(INTERFACE)


def _no_route(table: Item, cidr: str) -> EC2Error:
    return EC2Error(
        "InvalidRoute.NotFound",
        f"no route with destination-cidr-block {cidr} in route table {table.id}",
    )


def _store(ctx: Context, table: Item, change: Callable[[Session], Wanted]) -> None:
    """Store the routes that ``change`` makes of those that are there, and tell Neutron."""
    vpc_id = table.vpc_id or ""
    before: list[Route] = []
    after: list[Route] = []

    def apply(session: Session) -> None:
        lock(session, ctx, table)
        before[:] = _routes(session, ctx, table)
        wanted = change(session)
        after[:] = before if wanted is None else wanted
        _put(session, ctx, table, after)

    def take_back(session: Session) -> None:
        lock(session, ctx, table)
        if _routes(session, ctx, table) == after:
            _put(session, ctx, table, before)

    topology.change(ctx, vpc_id, apply, lambda: route_push.push_routes(ctx, vpc_id), take_back)


def _put(session: Session, ctx: Context, table: Item, routes: Sequence[Route]) -> None:
    [current] = queries.items_by_ids(session, ctx.project_id, [table.id])
    data = {**current.data, ROUTES: list(routes)}
    queries.update_item(session, ctx.project_id, table.id, data=data)
