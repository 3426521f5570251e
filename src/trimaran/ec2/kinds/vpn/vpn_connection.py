"""VPN connections: make, describe, delete (spec ec2.md 3.18), journalled.

A connection's item comes first, hidden; then Neutron's policies, named by its
id; then the item is shown and the subnets of its gateway's VPC get what the
routes want.  Until that is done, and from the first step of a delete on, a job
stands by that removes all of it, whichever way the process ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import CloudSession
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_items
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs import route_push
from trimaran.ec2.kinds.vpcs.vpc_kind import DELETING, MAKING, STAGE, named_item
from trimaran.ec2.kinds.vpn import vpn_items, vpn_sync
from trimaran.ec2.kinds.vpn import vpn_items as names
from trimaran.ec2.kinds.vpn.vpn_connection_view import look_around, shown_connection
from trimaran.ec2.kinds.vpn.vpn_policies import (
    check_secret,
    delete_policies,
    make_policies,
    new_secret,
)
from trimaran.ec2.protocol import filters
from trimaran.ec2.protocol.errors import EC2Error, not_found, unsupported
from trimaran.errors import Conflict, NotFound, TrimaranError, Unavailable

Request = Mapping[str, Any]

PREFIX = names.CONNECTION
#: Seconds between two tries to remove what Neutron still needs.
PAUSE = 5.0

FILTERS: filters.Table = {
    "bgp-asn": "BgpAsn",
    "customer-gateway-configuration": "CustomerGatewayConfiguration",
    "customer-gateway-id": "CustomerGatewayId",
    "option.static-routes-only": "Options.StaticRoutesOnly",
    "route.destination-cidr-block": "Routes.DestinationCidrBlock",
    "state": "State",
    "transit-gateway-id": "TransitGatewayId",
    "type": "Type",
    "vpn-connection-id": "VpnConnectionId",
    "vpn-gateway-id": "VpnGatewayId",
}

#: What may be said because it is so: anything else would not be done.
_SO = {
    "StaticRoutesOnly": (True,),
    "EnableAcceleration": (False,),
    "TunnelInsideIpVersion": ("ipv4",),
    "LocalIpv4NetworkCidr": ("0.0.0.0/0",),
    "RemoteIpv4NetworkCidr": ("0.0.0.0/0",),
    "OutsideIpAddressType": ("PublicIpv4",),
    "TunnelBandwidth": ("standard",),
}
_KEY = "PreSharedKey"


def create_vpn_connection(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a connection between a VPN gateway and a customer gateway."""
    vpn_items.check_type(request)
    specified = tag_specifications(request.get("TagSpecifications"), ["vpn-connection"])
    tags = specified.get("vpn-connection", {})
    secret = _checked_options(request.get("Options") or {})
    for name, code in (
        ("TransitGatewayId", "InvalidTransitGatewayID.NotFound"),
        ("VpnConcentratorId", "InvalidVpnConcentratorID.NotFound"),
    ):
        if request.get(name):
            raise not_found(code, "ID", [request[name]])
    customer = named_item(
        ctx, request.get("CustomerGatewayId"), "CustomerGatewayId", names.CUSTOMER
    )
    gateway = named_item(ctx, request.get("VpnGatewayId"), "VpnGatewayId", names.GATEWAY)
    items, known_tags = ctx.db.read(lambda s: vpn_items.read(s, ctx.project_id, PREFIX))
    for item in items.values():
        if item.data.get(names.OF_CUSTOMER) == customer.id:
            _check_same(item, gateway)
            ctx.commit_point()
            shown = shown_connection(item, look_around(ctx), known_tags.get(item.id))
            return {"VpnConnection": shown}
    ctx.commit_point()
    item, job_id = _reserve(ctx, customer, gateway, tags)
    try:
        item = _make(ctx, item, secret or new_secret())
    except Unavailable:
        ctx.db.write(lambda s: _give_up(s, ctx, item, job_id))
        raise
    except TrimaranError:
        ctx.db.write(lambda s: _give_up(s, ctx, item, job_id))
        _raze_soon(ctx, item, job_id)
        raise
    ctx.db.write(lambda s: journal.end(s, job_id))
    return {"VpnConnection": shown_connection(item, look_around(ctx), shown_tags(tags))}


def _check_same(item: Item, gateway: Item) -> None:
    if item.data.get(names.OF_GATEWAY) != gateway.id:
        raise EC2Error(
            "InvalidCustomerGateway.DuplicateIpAddress",
            f"The customer gateway is connected to another VPN gateway by '{item.id}'.",
        )


def _checked_options(options: Mapping[str, Any]) -> str:
    """The pre-shared key that is asked for, or ""."""
    if options.get("StaticRoutesOnly") is not True:
        raise EC2Error("Unsupported", "BGP is not supported; StaticRoutesOnly must be true.")
    secret = ""
    for tunnel in options.get("TunnelOptions") or ():
        for name, value in tunnel.items():
            if name == _KEY and value:
                secret = secret or check_secret(value)
            elif value not in (None, "", []):
                raise unsupported(f"The tunnel option {name} is not supported.")
    for name, value in options.items():
        if name != "TunnelOptions" and value not in (None, "", *_SO.get(name, ())):
            raise unsupported(f"The option {name} cannot have this value.")
    return secret


def _reserve(
    ctx: Context, customer: Item, gateway: Item, tags: Mapping[str, str]
) -> tuple[Item, str]:
    data = {
        STAGE: MAKING,
        names.OF_CUSTOMER: customer.id,
        names.OF_GATEWAY: gateway.id,
        names.RANGES: [],
    }

    def wanted(session: Session) -> list[NewItem]:
        vpn_items.locked(session, ctx.project_id, gateway.id)
        vpn_items.locked(session, ctx.project_id, customer.id)
        for item in queries.items_of(session, ctx.project_id, [PREFIX]):
            if item.data.get(names.OF_CUSTOMER) == customer.id:
                raise EC2Error(
                    "InvalidCustomerGateway.DuplicateIpAddress",
                    f"Another connection of '{customer.id}' is being made or deleted.",
                )
        return [NewItem(PREFIX, None, ctx.project_id, data, id=ids.mint(PREFIX))]

    def beside(session: Session, items: list[Item]) -> str:
        payload = {"project": ctx.project_id, "connection": items[0].id}
        return journal.begin(session, ctx.conf, journal.VPN, items[0].id, payload)

    [item], job_id = store_items(ctx, wanted, tags=tags, beside=beside)
    return item, job_id


def _make(ctx: Context, item: Item, secret: str) -> Item:
    ike, ipsec = make_policies(ctx, item.id, secret)
    data = {name: value for name, value in item.data.items() if name != STAGE}
    data |= {names.IKE: ike["id"], names.IPSEC: ipsec["id"]}

    def show(session: Session) -> str | None:
        if not queries.update_item(session, ctx.project_id, item.id, data=data):
            raise Unavailable(service="network")  # the journal took us for dead
        return vpn_sync.attached_gateway(session, ctx.project_id, data[names.OF_GATEWAY])

    vpc_id = ctx.db.write(show)
    if vpc_id:
        vpn_sync.sync_vpn(ctx, vpc_id)
    return replace(item, data=data)


def describe_vpn_connections(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's VPN connections."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("VpnConnectionIds"), "vpnConnectionId", PREFIX)
    items, tags = ctx.db.read(lambda s: vpn_items.read(s, ctx.project_id, PREFIX))
    chosen = vpn_items.choose(items, wanted)
    if not chosen:
        return {"VpnConnections": []}
    around = look_around(ctx)
    rows = [shown_connection(item, around, tags.get(item.id)) for item in chosen]
    rows.sort(key=lambda row: str(row["VpnConnectionId"]))
    return {"VpnConnections": matches.apply(rows)}


def delete_vpn_connection(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a connection with all that Neutron has for it."""
    item = named_item(ctx, request.get("VpnConnectionId"), "VpnConnectionId", PREFIX)
    ctx.commit_point()

    def begin(session: Session) -> str:
        current = vpn_items.locked(session, ctx.project_id, item.id)
        _stage(session, ctx, current, DELETING)
        payload = {"project": ctx.project_id, "connection": item.id}
        return journal.begin(session, ctx.conf, journal.VPN, item.id, payload)

    job_id = ctx.db.write(begin)
    try:
        _raze(ctx, ctx.user, item)
    except TrimaranError:
        ctx.db.write(lambda s: journal.hasten(s, job_id))
        raise
    ctx.db.write(lambda s: _forget(s, ctx, item, job_id))
    return {}


def _stage(session: Session, ctx: Context, item: Item, stage: str) -> None:
    # Without ranges and gateway's sight no subnet wants it any more.
    data = {**item.data, STAGE: stage, names.RANGES: []}
    queries.update_item(session, ctx.project_id, item.id, data=data)


def _give_up(session: Session, ctx: Context, item: Item, job_id: str) -> None:
    for current in queries.locked_items(session, ctx.project_id, [item.id]):
        _stage(session, ctx, current, MAKING)
    journal.hasten(session, job_id)


def _raze_soon(ctx: Context, item: Item, job_id: str) -> None:
    """Remove a refused connection at once if that works; the journal does it otherwise."""
    with contextlib.suppress(TrimaranError):
        _raze(ctx, ctx.user, item)
        ctx.db.write(lambda s: _forget(s, ctx, item, job_id))


def _forget(session: Session, ctx: Context, item: Item, job_id: str) -> None:
    queries.delete_items(session, ctx.project_id, [item.id])
    journal.end(session, job_id)


def _raze(ctx: Context, cloud: CloudSession, item: Item) -> None:
    """Remove what Neutron has for a connection that is staged."""
    gateway = item.data.get(names.OF_GATEWAY) or ""
    vpc_id = ctx.db.read(lambda s: vpn_sync.attached_gateway(s, ctx.project_id, gateway))
    if vpc_id:
        vpn_sync.clean_vpn(ctx, vpc_id, cloud)
        route_push.push_routes(ctx, vpc_id, cloud)
    delete_policies(ctx, cloud, item.id)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.vpn``: remove a connection that is half there."""
    item_id = job.payload["connection"]
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [item_id]))
    if not items:
        with contextlib.suppress(NotFound):
            delete_policies(ctx, ctx.admin, item_id)
        return
    item = items[0]
    if STAGE not in item.data:
        # Its routes came last: they are made to agree once more.
        vpc_id = ctx.db.read(
            lambda s: vpn_sync.attached_gateway(s, ctx.project_id, item.data[names.OF_GATEWAY])
        )
        if vpc_id:
            vpn_sync.sync_vpn(ctx, vpc_id, ctx.admin)
        return
    try:
        _raze(ctx, ctx.admin, item)
    except Conflict as error:
        raise work.Retry(PAUSE, f"Neutron to let {item_id} go") from error
    job.commit(lambda s: queries.delete_items(s, ctx.project_id, [item_id]))
