"""VPN gateways: items; attached, they give a VPC's subnets VPN services (spec ec2.md 3.17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_item
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs import route_push, topology, vpc_gateway
from trimaran.ec2.kinds.vpcs.vpc_kind import locked_vpc, named_item, one_vpc
from trimaran.ec2.kinds.vpn import vpn_items, vpn_sync
from trimaran.ec2.kinds.vpn.vpn_items import CONNECTION, OF_GATEWAY, TYPE
from trimaran.ec2.protocol import filters
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing
from trimaran.errors import NotFound

Request = Mapping[str, Any]

PREFIX = vpn_items.GATEWAY
ASN = "amazon_side_asn"
#: What AWS has unless told otherwise.  Nobody speaks BGP here: the number is only shown.
DEFAULT_ASN = 64512
_ASNS = (range(64512, 65535), range(4200000000, 4294967295))

FILTERS: filters.Table = {
    "amazon-side-asn": "AmazonSideAsn",
    "attachment.state": "VpcAttachments.State",
    "attachment.vpc-id": "VpcAttachments.VpcId",
    "availability-zone": "AvailabilityZone",
    "state": "State",
    "type": "Type",
    "vpn-gateway-id": "VpnGatewayId",
}


def create_vpn_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a VPN gateway that is attached to nothing."""
    vpn_items.check_type(request)
    specified = tag_specifications(request.get("TagSpecifications"), ["vpn-gateway"])
    tags = specified.get("vpn-gateway", {})
    asn = request.get("AmazonSideAsn")
    if asn is not None and not any(asn in some for some in _ASNS):
        raise invalid_value("amazonSideAsn", asn, "It is not a private number.")
    data = {} if asn in (None, DEFAULT_ASN) else {ASN: asn}
    ctx.commit_point()
    item = store_item(
        ctx,
        lambda s: NewItem(PREFIX, None, ctx.project_id, data, id=ids.mint(PREFIX)),
        tags=tags,
    )
    return {"VpnGateway": _shown(item, shown_tags(tags))}


def describe_vpn_gateways(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's VPN gateways."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("VpnGatewayIds"), "vpnGatewayId", PREFIX)
    items, tags = ctx.db.read(lambda s: vpn_items.read(s, ctx.project_id, PREFIX))
    rows = [_shown(item, tags.get(item.id)) for item in vpn_items.choose(items, wanted)]
    rows.sort(key=lambda row: str(row["VpnGatewayId"]))
    return {"VpnGateways": matches.apply(rows)}


def attach_vpn_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Attach a gateway to a VPC: its router gets a way out, its subnets VPN services."""
    gateway = named_item(ctx, request.get("VpnGatewayId"), "VpnGatewayId", PREFIX)
    vpc = one_vpc(ctx, request.get("VpcId"))
    shown = {"VpcAttachment": {"State": "attached", "VpcId": vpc.id}}

    def check(session: Session) -> None:
        items = queries.items_of(session, ctx.project_id, [PREFIX])
        current = next((item for item in items if item.id == gateway.id), None)
        if current is None:
            raise ids.missing_ids([gateway.id])
        if current.vpc_id not in (None, vpc.id):
            raise EC2Error(
                "VpnGatewayAttachmentLimitExceeded",
                f"resource {gateway.id} is already attached to network {current.vpc_id}",
            )
        if any(item.vpc_id == vpc.id and item.id != gateway.id for item in items):
            raise EC2Error("InvalidVpcState", f"VPC {vpc.id} already has an attached VPN gateway")

    ctx.db.read(check)
    if gateway.vpc_id == vpc.id:
        ctx.commit_point()
        return shown
    vpc_gateway.external_network(ctx)
    check_vpnaas(ctx)
    ctx.commit_point()

    def apply(session: Session) -> None:
        locked_vpc(session, ctx.project_id, vpc.id)
        vpn_items.locked(session, ctx.project_id, gateway.id)
        check(session)
        queries.update_item(session, ctx.project_id, gateway.id, vpc_id=vpc.id)

    def tell() -> None:
        vpc_gateway.sync_gateway(ctx, vpc.id)
        vpn_sync.sync_vpn(ctx, vpc.id)
        route_push.push_routes(ctx, vpc.id)

    _change(ctx, vpc.id, gateway.id, apply, tell, back_to=None)
    return shown


def detach_vpn_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Detach a gateway: VPN services go, and the router's way out unless others need it."""
    gateway = named_item(ctx, request.get("VpnGatewayId"), "VpnGatewayId", PREFIX)
    vpc_id = request.get("VpcId")
    if not vpc_id:
        raise missing("VpcId")
    ids.check_id(vpc_id, "vpcId", "vpc")

    def check(session: Session) -> None:
        if vpn_sync.attached_gateway(session, ctx.project_id, gateway.id) != vpc_id:
            raise EC2Error(
                "InvalidVpnGatewayAttachment.NotFound",
                f"The attachment with vpn gateway ID '{gateway.id}' and vpc ID '{vpc_id}' "
                "does not exist",
            )

    ctx.db.read(check)
    ctx.commit_point()

    def apply(session: Session) -> None:
        queries.locked_items(session, ctx.project_id, [vpc_id])
        vpn_items.locked(session, ctx.project_id, gateway.id)
        check(session)
        queries.update_item(session, ctx.project_id, gateway.id, vpc_id=None)

    def tell() -> None:
        vpn_sync.clean_vpn(ctx, vpc_id)
        vpc_gateway.sync_gateway(ctx, vpc_id)
        route_push.push_routes(ctx, vpc_id)

    _change(ctx, vpc_id, gateway.id, apply, tell, back_to=vpc_id)
    return {}


def delete_vpn_gateway(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a gateway that is attached to nothing and has no connections."""
    gateway = named_item(ctx, request.get("VpnGatewayId"), "VpnGatewayId", PREFIX)

    def check(session: Session) -> None:
        if vpn_sync.attached_gateway(session, ctx.project_id, gateway.id):
            raise vpn_items.in_use(gateway.id, "is attached to a VPC")
        connections = queries.items_of(session, ctx.project_id, [CONNECTION])
        if any(item.data.get(OF_GATEWAY) == gateway.id for item in connections):
            raise vpn_items.in_use(gateway.id, "is in use by a VPN connection")

    vpn_items.delete(ctx, gateway, check)
    return {}


def check_vpnaas(ctx: Context) -> None:
    """Refuse what needs VPN as a service where the cloud has none.

    Raises:
        EC2Error: ``UnsupportedOperation``.
    """
    try:
        ctx.user.network.vpn_services(fields=["id"])
    except NotFound as error:
        raise vpn_sync.no_vpn() from error


def _change(
    ctx: Context,
    vpc_id: str,
    gateway_id: str,
    apply: Callable[[Session], None],
    tell: Callable[[], None],
    *,
    back_to: str | None,
) -> None:
    def take_back(session: Session) -> None:
        for item in queries.locked_items(session, ctx.project_id, [gateway_id]):
            if item.vpc_id == (None if back_to else vpc_id):
                queries.update_item(session, ctx.project_id, item.id, vpc_id=back_to)

    topology.change(ctx, vpc_id, apply, tell, take_back)


def _shown(item: Item, tags: Sequence[dict[str, str]] | None) -> dict[str, Any]:
    attached = [{"State": "attached", "VpcId": item.vpc_id}] if item.vpc_id else []
    return {
        "VpnGatewayId": item.id,
        "State": "available",
        "Type": TYPE,
        "VpcAttachments": attached,
        "AmazonSideAsn": item.data.get(ASN, DEFAULT_ASN),
        "Tags": list(tags or ()),
    }
