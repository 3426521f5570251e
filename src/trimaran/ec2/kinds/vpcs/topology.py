"""Changes of a VPC that the database knows first and Neutron is told next.

Routes, associations, gateways and DHCP options live in items; Neutron's router,
subnets and ports are made to agree with them.  The change and a journal entry
are one transaction, then Neutron is told, then the entry goes.  When the
process dies in between, another one tells Neutron; when Neutron refuses, the
change is taken back.

Whoever tells Neutron reads the items again afterwards and goes on until what
was told is what holds (`until_settled`): of two who write at once, the later
one finds out that it was late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import CloudSession
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import dhcp_options_ports, route_push, vpc_gateway
from trimaran.ec2.kinds.vpn import vpn_sync
from trimaran.errors import TrimaranError

LOG = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds until what Neutron refused is told again; who was in the way is done by then.
PAUSE = 5.0


def change(
    ctx: Context,
    vpc_id: str,
    apply: Callable[[Session], T],
    tell: Callable[[], None],
    take_back: Callable[[Session], None],
) -> T:
    """Change a VPC, behind the commit point.

    Args:
        ctx: the request.
        vpc_id: the VPC whose routers, subnets or ports are concerned.
        apply: changes the items; raises to change nothing.
        tell: makes Neutron agree.
        take_back: changes the items back, as far as they still are as ``apply`` left them.

    Returns:
        What ``apply`` returned.

    Raises:
        Unavailable: Neutron did not answer; the journal tells it.
        TrimaranError: Neutron refused; nothing is changed.
    """

    def first(session: Session) -> tuple[T, str]:
        result = apply(session)
        return result, begin(session, ctx, vpc_id)

    result, job_id = ctx.db.write(first)

    def undo(session: Session) -> None:
        take_back(session)
        # What Neutron took before it refused is told anew.
        journal.hasten(session, job_id)

    with journal.settled(ctx.db, job_id, undo):
        tell()
    ctx.db.write(lambda s: journal.end(s, job_id))
    return result


def begin(session: Session, ctx: Context, vpc_id: str) -> str:
    """Record that Neutron is to be told about a VPC; each request has an entry of its own."""
    payload = {"project": ctx.project_id, "vpc": vpc_id}
    key = f"{vpc_id} {ctx.request_id}"
    return journal.begin(session, ctx.conf, journal.TOPOLOGY, key, payload)


def follow(ctx: Context, vpc_id: str, job_id: str) -> None:
    """Tell Neutron the routes and VPN that follow from a change which stands whatever it says.

    What fails is left to the journal, whose entry the change has begun.
    """
    try:
        route_push.push_routes(ctx, vpc_id)
    except TrimaranError as error:
        LOG.warning("%s: routes and VPN of %s: %s", ctx.request_id, vpc_id, error.message)
        ctx.db.write(lambda s: journal.hasten(s, job_id, PAUSE))
    else:
        ctx.db.write(lambda s: journal.end(s, job_id))


def tell_all(ctx: Context, cloud: CloudSession, vpc_id: str) -> None:
    """Make Neutron agree with everything that the items say of a VPC."""
    vpn_sync.clean_vpn(ctx, vpc_id, cloud)
    vpc_gateway.sync_gateway(ctx, vpc_id, cloud)
    route_push.push_routes(ctx, vpc_id, cloud)
    dhcp_options_ports.sync_ports(ctx, vpc_id, cloud)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.topology``."""
    tell_all(ctx, ctx.admin, job.payload["vpc"])
