"""Routes that lead to an interface, when that is no more: they lead nowhere from then on."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import topology
from trimaran.ec2.kinds.vpcs.route_push import INTERFACE, ROUTES


def retell_routes(session: Session, ctx: Context, interface_ids: Collection[str]) -> None:
    """Have Neutron told of the routes anew; in the transaction that deletes interfaces' items."""
    if not interface_ids:
        return
    concerned = {
        table.vpc_id
        for table in queries.items_of(session, ctx.project_id, ["rtb"])
        if any(route.get(INTERFACE) in interface_ids for route in table.data.get(ROUTES) or ())
    }
    for vpc_id in sorted(vpc_id for vpc_id in concerned if vpc_id):
        journal.hasten(session, topology.begin(session, ctx, vpc_id))
