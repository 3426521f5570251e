"""Removing what there is of a VPC or subnet in Neutron, however much that is.

The same function undoes a create that failed, completes a delete, and does
either for a process that died: what belongs to an id bears it as its name.  A
delete that Neutron refuses (a port of somebody else is in the way) is taken
back, so that nothing is half deleted.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import CloudSession
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_default_vpc as markers
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups.security_group_default import (
    default_group_id,
    delete_default_group,
)
from trimaran.ec2.kinds.vpcs.subnet_plug import OURS, ROUTER_PORTS, plug, ports_of
from trimaran.ec2.kinds.vpcs.vpc_kind import DELETING, STAGE, is_default
from trimaran.ec2.kinds.vpn import vpn_sync
from trimaran.errors import Conflict, NotFound

LOG = logging.getLogger(__name__)

#: Seconds between two tries to delete what a port keeps.
PAUSE = 60.0

Row = Mapping[str, Any]


def begin(session: Session, ctx: Context, item_ids: Sequence[str], beside: Sequence[str]) -> str:
    """Record that the objects of items are to be removed unless somebody finishes them.

    Args:
        session: of the transaction that makes or stages the items.
        ctx: the request.
        item_ids: subnets and VPCs, in the order of their removal; the last one is the job's key.
        beside: items that go with them and have no object of their own.
    """
    payload = {"project": ctx.project_id, "items": list(item_ids), "beside": list(beside)}
    return journal.begin(session, ctx.conf, journal.RAZE, item_ids[-1], payload)


def raze(ctx: Context, cloud: CloudSession, item_id: str, os_id: str | None = None) -> None:
    """Remove the Neutron objects of a VPC or subnet.

    Raises:
        Conflict: something that is not ours keeps them; what is ours is as it was, but
            for a VPC's router, whose removal comes first and is final.
    """
    if ids.kind_of(item_id) == "subnet":
        raze_subnet(ctx, cloud, item_id, os_id)
    else:
        raze_vpc(ctx, cloud, item_id, os_id)


def raze_subnet(
    ctx: Context, cloud: CloudSession, subnet_id: str, os_id: str | None = None
) -> None:
    """Remove a subnet's network, and unplug the router from it first."""
    vpn_sync.stop_subnet(ctx, cloud, subnet_id)
    for network_id in _networks(ctx, cloud, subnet_id, os_id):
        unplugged: list[Row] = []
        for port in ports_of(cloud, network_id):
            if port["device_owner"] in ROUTER_PORTS:
                with contextlib.suppress(NotFound):
                    cloud.network.remove_router_interface(
                        port["device_id"], {"port_id": port["id"]}
                    )
                    unplugged.append(port)
            elif not port["device_owner"] and port["name"] == subnet_id:
                with contextlib.suppress(NotFound):
                    cloud.network.delete_port(port["id"])
        try:
            with contextlib.suppress(NotFound):
                cloud.network.delete_network(network_id)
        except Conflict:
            for row in unplugged:
                subnet = cloud.network.subnet(row["fixed_ips"][0]["subnet_id"])
                plug(cloud, row["device_id"], subnet, subnet_id)
            raise


def raze_vpc(ctx: Context, cloud: CloudSession, vpc_id: str, os_id: str | None = None) -> None:
    """Remove a VPC's router and its default security group."""
    rows = cloud.network.routers(
        name=vpc_id, project_id=ctx.project_id, fields=["id", "project_id"]
    )
    routers = {row["id"] for row in rows if row["project_id"] == ctx.project_id}
    for router in routers | ({os_id} if os_id else set()):
        with contextlib.suppress(NotFound):
            cloud.network.delete_router(router)
    delete_default_group(ctx, cloud, vpc_id)


def _networks(ctx: Context, cloud: CloudSession, subnet_id: str, os_id: str | None) -> list[str]:
    rows = cloud.network.networks(
        name=subnet_id, project_id=ctx.project_id, fields=["id", "project_id"]
    )
    found = {row["id"] for row in rows if row["project_id"] == ctx.project_id}
    if os_id:
        with contextlib.suppress(NotFound):
            found.add(cloud.network.subnet(os_id)["network_id"])
    return sorted(found)


def beside_vpc(vpc: Item, tables: Sequence[str] = ()) -> list[str]:
    """The items that go with a VPC."""
    return [*tables, default_group_id(vpc.id)]


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.raze``."""
    razed: list[str] = job.payload["items"]
    items = {
        item.id: item
        for item in ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, razed))
    }
    for item_id in razed:
        item = items.get(item_id)
        try:
            raze(ctx, ctx.admin, item_id, item.os_id if item else None)
        except Conflict as error:
            if item is not None and still_there(ctx, ctx.admin, item):
                LOG.warning("The deletion of %s is taken back: others use it", item_id)
                job.commit(partial(restore, project_id=ctx.project_id, item_id=item_id))
                return
            raise work.Retry(PAUSE, f"ports to leave {item_id}") from error
    gone = [*razed, *job.payload["beside"]]
    unwanted = [
        item for item in items.values() if item.data.get(STAGE) == DELETING and is_default(item)
    ]

    def finish(session: Session) -> None:
        queries.delete_items(session, ctx.project_id, gone)
        if unwanted:
            markers.opt_out(session, ctx.project_id)

    job.commit(finish)


def still_there(ctx: Context, cloud: CloudSession, item: Item) -> bool:
    """Whether a delete that Neutron refused has left the object in place."""
    if item.data.get(STAGE) != DELETING or not item.os_id:
        return False
    look = cloud.network.router if item.kind == "vpc" else cloud.network.subnet
    try:
        look(item.os_id)
    except NotFound:
        return False
    return True


def restore(session: Session, project_id: str, item_id: str) -> None:
    """Take the deletion of an item back."""
    for item in queries.locked_items(session, project_id, [item_id]):
        data = {name: value for name, value in item.data.items() if name != STAGE}
        queries.update_item(session, project_id, item_id, data=data)


def foreign(ports: Sequence[Row], name: str) -> list[Row]:
    """Ports of a network that keep it: not the router's, not the network's own services'."""
    return [
        port
        for port in ports
        if not port["device_owner"].startswith(OURS)
        and not (not port["device_owner"] and port["name"] == name)
    ]
