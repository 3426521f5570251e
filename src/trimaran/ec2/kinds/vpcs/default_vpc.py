"""The default VPC of a project: made when somebody first looks, once, by one process.

All processes of all hosts agree by a lease and by the items: who has the lease
looks again, removes what a dead one left, and makes the whole VPC (router with
its way out, default group, internet gateway, subnet, default route), shown in
one transaction when all of it is there.  A failure is remembered, so that not
every describe tries again; a default VPC that was deleted stays away until
CreateDefaultVpc (spec ec2.md 5.4, F26, F27).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Network
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_default_vpc as markers
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_default import make_default_group
from trimaran.ec2.kinds.vpcs import route_push, topology_raze
from trimaran.ec2.kinds.vpcs.route_push import DESTINATION, GATEWAY, ROUTES
from trimaran.ec2.kinds.vpcs.subnet_create import default_zone, finish_subnet
from trimaran.ec2.kinds.vpcs.subnet_kind import CIDR, DEFAULT_FOR_ZONE, MAP_PUBLIC, ZONE
from trimaran.ec2.kinds.vpcs.subnet_plug import make_network, plug
from trimaran.ec2.kinds.vpcs.vpc_create import Draft, finish_vpc, reserve_vpc, with_undo
from trimaran.ec2.kinds.vpcs.vpc_gateway import external_network
from trimaran.ec2.kinds.vpcs.vpc_kind import (
    MAKING,
    STAGE,
    default_vpc_of,
    is_default,
    vpc_items,
)
from trimaran.errors import TrimaranError, Unavailable

LOG = logging.getLogger(__name__)

T = TypeVar("T")

VPC_RANGE = IPv4Network("172.31.0.0/16")
#: Prefix length of default subnets.
SUBNET_PREFIX = 20
SUBNET_RANGE = IPv4Network("172.31.0.0/20")

#: Seconds that a lease outlives its holder's last sign, and that others wait for a holder.
LEASE = 10.0
WAIT = 60.0
#: Seconds after a first failure, doubled by each further one, up to the longest.
PAUSE = 30.0
LONGEST_PAUSE = 3600.0


def ensure_default_vpc(ctx: Context) -> Item | None:
    """The project's default VPC, made if it is due.

    Never for callers who may not make one, nor for the service itself; a dry
    run makes nothing.  A failure is logged: whoever can do without, does.

    Returns:
        Its item; None when there is none (EC2-Classic, not wanted, failed).
    """
    return ctx.once("default vpc", lambda: _ensure(ctx))


def with_default_vpc(
    ctx: Context, look: Callable[[], T], items: Callable[[T], Iterable[Item]] | None
) -> T:
    """What a describe sees of a project that has its default VPC, if it is to have one.

    Args:
        ctx: the request.
        look: the describe's own look, which is made again when the first one was too early.
        items: of what was seen: items among which a default VPC would be; None when
            the look is at some ids only.
    """
    if items is None:
        ensure_default_vpc(ctx)
        return look()
    seen = look()
    if default_vpc_of(list(items(seen))) is not None or ensure_default_vpc(ctx) is None:
        return seen
    return look()


def _ensure(ctx: Context) -> Item | None:
    found, held_off = ctx.db.read(lambda s: _look(s, ctx.project_id))
    if found is not None or held_off or not _may_make(ctx):
        return found
    try:
        with work.hold(ctx.db, lease_name(ctx), LEASE, timeout=WAIT):
            found, held_off = ctx.db.read(lambda s: _look(s, ctx.project_id))
            if found is not None or held_off:
                return found
            return make_default_vpc(ctx)
    except TrimaranError as error:
        LOG.warning("%s: the default VPC could not be made: %s", ctx.request_id, error.message)
        return None


def lease_name(ctx: Context) -> str:
    """The lease of who makes the project's default VPC."""
    return f"ec2.default-vpc.{ctx.project_id}"


def _look(session: Session, project_id: str) -> tuple[Item | None, bool]:
    found = default_vpc_of(vpc_items(session, project_id))
    return found, found is None and markers.is_held_off(session, project_id)


def _may_make(ctx: Context) -> bool:
    if not ctx.conf.disable_ec2_classic or ctx.dry_run or not ctx.user_id:
        return False
    return ctx.enforcer.allowed("ec2:CreateDefaultVpc", ctx.policy_context)


def make_default_vpc(ctx: Context) -> Item:
    """Make the default VPC, under the lease.

    Raises:
        TrimaranError: nothing is left of it, and the failure is remembered.
    """
    try:
        _remove_leftovers(ctx)
        return _make(ctx)
    except TrimaranError:
        ctx.db.write(lambda s: markers.note_failure(s, ctx.project_id, PAUSE, LONGEST_PAUSE))
        raise


def _remove_leftovers(ctx: Context) -> None:
    """What a process left that had the lease and died; its journal entry finds nothing then."""
    items = ctx.db.read(
        lambda s: queries.items_of(s, ctx.project_id, ["vpc", "subnet", "rtb", "igw"])
    )
    for vpc in [item for item in items if is_default(item) and STAGE in item.data]:
        inside = [item for item in items if item.vpc_id == vpc.id]
        for item in [*(each for each in inside if each.kind == "subnet"), vpc]:
            topology_raze.raze(ctx, ctx.user, item.id, item.os_id)
        gone = [vpc.id, *(item.id for item in inside), *topology_raze.beside_vpc(vpc)]
        ctx.db.write(partial(queries.delete_items, project_id=ctx.project_id, item_ids=gone))


def _make(ctx: Context) -> Item:
    seen: dict[str, Any] = gather(
        network=lambda: external_network(ctx)["id"], zone=lambda: default_zone(ctx)
    )

    def beside(vpc_id: str, table: dict[str, Any]) -> list[NewItem]:
        gateway = ids.mint("igw")
        table[ROUTES].append({DESTINATION: route_push.ANYWHERE, GATEWAY: gateway})
        data = {
            CIDR: str(SUBNET_RANGE),
            ZONE: seen["zone"],
            DEFAULT_FOR_ZONE: True,
            MAP_PUBLIC: True,
            STAGE: MAKING,
        }
        subnet = ids.mint("subnet")
        return [
            NewItem("igw", None, ctx.project_id, vpc_id=vpc_id, id=gateway),
            NewItem("subnet", None, ctx.project_id, data, vpc_id=vpc_id, id=subnet),
        ]

    draft = reserve_vpc(ctx, VPC_RANGE, is_default=True, beside=beside)
    return with_undo(ctx, draft, lambda: _build(ctx, draft, seen["network"]))


def _build(ctx: Context, draft: Draft, outside: str) -> Item:
    topology = ctx.db.read(lambda s: route_push.read_topology(s, ctx.project_id, draft.vpc.id))
    if topology is None:
        raise Unavailable(service="work")
    subnet = next(item for item in draft.others if item.kind == "subnet")
    routes = topology.host_routes(topology.vpc[1], {"cidr": str(SUBNET_RANGE)})
    router = {"name": draft.vpc.id, "external_gateway_info": {"network_id": outside}}
    made: dict[str, Any] = gather(
        router=lambda: ctx.user.network.create_router(router)["id"],
        group=lambda: make_default_group(ctx, ctx.user, draft.vpc.id),
        subnet=lambda: make_network(ctx.user, subnet.id, SUBNET_RANGE, routes),
    )
    plug(ctx.user, made["router"], made["subnet"], subnet.id)

    def finish(session: Session) -> None:
        finish_vpc(session, ctx, draft, made["router"], made["group"])
        finish_subnet(session, ctx, subnet, made["subnet"]["id"])
        markers.forget(session, ctx.project_id)

    ctx.db.write(finish)
    data = {name: value for name, value in draft.vpc.data.items() if name != STAGE}
    return replace(draft.vpc, data=data, os_id=made["router"])
