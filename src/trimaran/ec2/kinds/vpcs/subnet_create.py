"""CreateSubnet (spec ec2.md 3.13): a network with one subnet, the VPC's router plugged into it.

The steps are those of CreateVpc: a hidden item and a journal entry, the Neutron
objects under the subnet's id, the item shown; undone by `topology_raze`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import CloudError
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.availability_zone import check_zone, zones
from trimaran.ec2.kinds.item_store import shown_tags, store_items
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs import route_push, topology, topology_raze
from trimaran.ec2.kinds.vpcs.subnet_kind import CIDR, PREFIX, ZONE
from trimaran.ec2.kinds.vpcs.subnet_plug import make_network, plug
from trimaran.ec2.kinds.vpcs.subnet_view import shown_subnet
from trimaran.ec2.kinds.vpcs.vpc_cidr import conflict, outside, subnet_range
from trimaran.ec2.kinds.vpcs.vpc_create import refuse
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR as VPC_CIDR
from trimaran.ec2.kinds.vpcs.vpc_kind import MAKING, STAGE, locked_vpc, one_vpc
from trimaran.ec2.kinds.vpn.vpn_items import GATEWAY as VPN_GATEWAY
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import BadRequest, NotFound, QuotaExceeded, TrimaranError, Unavailable

Request = Mapping[str, Any]
Row = Mapping[str, Any]

#: Zone of subnets where Nova names none.
ANY_ZONE = "nova"
_REFUSED = (
    "Ipv6CidrBlock",
    "OutpostArn",
    "Ipv6Native",
    "Ipv4IpamPoolId",
    "Ipv4NetmaskLength",
    "Ipv6IpamPoolId",
    "Ipv6NetmaskLength",
)


@dataclass(frozen=True)
class Draft:
    """A subnet that is being made.

    Attributes:
        item: its item.
        vpc: the item of its VPC.
        cidr: its range.
        job_id: of the journal's entry that undoes it.
    """

    item: Item
    vpc: Item
    cidr: IPv4Network
    job_id: str


def create_subnet(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a subnet."""
    refuse(request, _REFUSED)
    vpc = one_vpc(ctx, request.get("VpcId"))
    cidr = subnet_range(request.get("CidrBlock"))
    tags = tag_specifications(request.get("TagSpecifications"), ["subnet"]).get("subnet", {})
    _check_range(ctx.db.read(lambda s: _in_vpc(s, ctx, vpc.id)), vpc, cidr)
    zone = zone_of(ctx, request)
    ctx.commit_point()
    item, body = make_subnet(ctx, vpc, cidr, {ZONE: zone}, tags)
    return {"Subnet": shown_subnet(ctx, item, body, tags=shown_tags(tags))}


def zone_of(ctx: Context, request: Request) -> str:
    """The zone that a request names, or the first one.

    Raises:
        EC2Error: ``InvalidAvailabilityZone.NotFound``.
    """
    zone = request.get("AvailabilityZone") or request.get("AvailabilityZoneId")
    if zone:
        check_zone(ctx, zone)
        return str(zone)
    return default_zone(ctx)


def default_zone(ctx: Context) -> str:
    """The zone of what no zone was named for."""
    names = [row["ZoneName"] for row in zones(ctx) if row["State"] == "available"]
    return min(names, default=ANY_ZONE)


def make_subnet(
    ctx: Context,
    vpc: Item,
    cidr: IPv4Network,
    data: Mapping[str, Any],
    tags: Mapping[str, str] | None = None,
) -> tuple[Item, Row]:
    """Make a subnet, behind the commit point.

    Args:
        ctx: the request.
        vpc: where.
        cidr: its range, which lies in the VPC's.
        data: more for its item.
        tags: of it.

    Returns:
        Its item and Neutron's JSON.

    Raises:
        EC2Error: ``InvalidSubnet.Conflict``, ``SubnetLimitExceeded``, ``InvalidVpcID.NotFound``.
    """
    draft = _reserve(ctx, vpc, cidr, data, tags)
    try:
        item, body, following = _make(ctx, draft)
    except TrimaranError as error:
        _undo(ctx, draft)
        raise refusal(error, cidr) from error
    if following is not None:
        topology.follow(ctx, vpc.id, following)
    return item, body


def refusal(error: TrimaranError, cidr: IPv4Network) -> TrimaranError:
    """Neutron's refusal of a subnet as EC2 says it."""
    if isinstance(error, QuotaExceeded):
        return EC2Error("SubnetLimitExceeded", "The maximum number of subnets has been reached.")
    if isinstance(error, CloudError) and isinstance(error, BadRequest):
        said = error.remote_message.lower()
        if "overlap" in said:
            return conflict(cidr)
        if "cidr" in said:
            return outside(cidr)
    return error


def _reserve(
    ctx: Context,
    vpc: Item,
    cidr: IPv4Network,
    data: Mapping[str, Any],
    tags: Mapping[str, str] | None,
) -> Draft:
    def wanted(session: Session) -> list[NewItem]:
        current = locked_vpc(session, ctx.project_id, vpc.id)
        _check_range(_in_vpc(session, ctx, vpc.id), current, cidr)
        subnet_id = ids.mint(PREFIX)
        blob = {**data, CIDR: str(cidr), STAGE: MAKING}
        return [NewItem(PREFIX, None, ctx.project_id, blob, vpc_id=vpc.id, id=subnet_id)]

    def record(session: Session, items: list[Item]) -> str:
        return topology_raze.begin(session, ctx, [items[0].id], [])

    [item], job_id = store_items(ctx, wanted, tags=tags, beside=record)
    return Draft(item, vpc, cidr, job_id)


def _make(ctx: Context, draft: Draft) -> tuple[Item, Row, str | None]:
    """The item, Neutron's JSON, and the journal's entry of what is to follow."""
    known = ctx.db.read(lambda s: route_push.read_topology(s, ctx.project_id, draft.vpc.id))
    if known is None or not draft.vpc.os_id:
        raise ids.missing_ids([draft.vpc.id])
    name = draft.item.id
    routes = known.host_routes(known.vpc[1], {"cidr": str(draft.cidr)})
    body = make_network(ctx.user, name, draft.cidr, routes)
    try:
        plug(ctx.user, draft.vpc.os_id, body, name)
    except NotFound as error:
        raise ids.missing_ids([draft.vpc.id]) from error
    following = ctx.db.write(lambda s: _finish(s, ctx, draft, body["id"], known))
    data = {name: value for name, value in draft.item.data.items() if name != STAGE}
    return replace(draft.item, data=data, os_id=body["id"]), body, following


def finish_subnet(session: Session, ctx: Context, item: Item, os_id: str) -> None:
    """The subnet is there; within the last transaction.

    Raises:
        Unavailable: somebody took this process for dead and undid its work.
    """
    data = {name: value for name, value in item.data.items() if name != STAGE}
    if not queries.update_item(
        session, ctx.project_id, item.id, version=item.version, data=data, os_id=os_id
    ):
        raise Unavailable(service="work")


def _finish(
    session: Session, ctx: Context, draft: Draft, os_id: str, known: route_push.Topology
) -> str | None:
    locked_vpc(session, ctx.project_id, draft.vpc.id)
    current = route_push.read_topology(session, ctx.project_id, draft.vpc.id)
    finish_subnet(session, ctx, draft.item, os_id)
    journal.end(session, draft.job_id)
    has_vpn = any(ids.kind_of(gateway) == VPN_GATEWAY for gateway in known.gateways)
    # A route may have been changed while the subnet was not there yet to be told.
    if current == known and not has_vpn:
        return None
    return topology.begin(session, ctx, draft.vpc.id)


def _undo(ctx: Context, draft: Draft) -> None:
    try:
        topology_raze.raze(ctx, ctx.user, draft.item.id)
        ctx.db.write(lambda s: _forget(s, ctx, draft))
    except TrimaranError:
        ctx.db.write(lambda s: journal.hasten(s, draft.job_id))


def _forget(session: Session, ctx: Context, draft: Draft) -> None:
    queries.delete_items(session, ctx.project_id, [draft.item.id])
    journal.end(session, draft.job_id)


def _in_vpc(session: Session, ctx: Context, vpc_id: str) -> list[Item]:
    items = queries.items_of(session, ctx.project_id, [PREFIX])
    return [item for item in items if item.vpc_id == vpc_id]


def _check_range(subnets: list[Item], vpc: Item, cidr: IPv4Network) -> None:
    """Ranges of subnets that upstream made are not in their items; Neutron knows them."""
    if not cidr.subnet_of(IPv4Network(vpc.data[VPC_CIDR])):
        raise outside(cidr)
    ranges = [item.data[CIDR] for item in subnets if CIDR in item.data]
    if any(cidr.overlaps(IPv4Network(text)) for text in ranges):
        raise conflict(cidr)
