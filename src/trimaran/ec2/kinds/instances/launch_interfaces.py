"""The interfaces of a launch: reserved with its instances, made before their servers.

Their items are in the launch's first transaction, hidden, with the ids that
their ports will bear as names and their public addresses as descriptions; so
whoever finishes or undoes the launch finds in Neutron what was made of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.launch_network import Interface, Network, busy
from trimaran.ec2.kinds.instances.launch_settle import Conclusion, Launch, change_item
from trimaran.ec2.kinds.interfaces import address_kind
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.address_allocate import create_floating_ip
from trimaran.ec2.kinds.interfaces.network_interface_create import creator, primary_of, still_there
from trimaran.ec2.kinds.interfaces.network_interface_end import delete_objects
from trimaran.ec2.kinds.volumes.volume_kind import MAKING, STAGE
from trimaran.ec2.kinds.volumes.volume_kind import made as address_made

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """One interface of one instance.

    Attributes:
        interface: what it is to be.
        id: its id.
        address_id: of its public address, or "".
    """

    interface: Interface
    id: str
    address_id: str = ""


@dataclass
class Made:
    """What Neutron made for a launch, by EC2 id; filled by several threads at once."""

    ports: dict[str, Row] = field(default_factory=dict)
    addresses: dict[str, Row] = field(default_factory=dict)


def places(network: Network) -> list[Place]:
    """Places of one new instance, with ids for what is made."""
    return [
        Place(
            each,
            each.existing.id if each.existing is not None else ids.mint(kind.PREFIX),
            ids.mint(address_kind.PREFIX) if each.public else "",
        )
        for each in network.interfaces
    ]


def hold(session: Session, ctx: Context, network: Network) -> None:
    """Keep the VPC from others' changes: the launch's first transaction begins with it.

    Raises:
        EC2Error: the VPC or a subnet is gone by now.
    """
    still_there(session, ctx, network.subnets)


def reserve(
    session: Session, ctx: Context, network: Network, wanted: Mapping[str, Sequence[Place]]
) -> None:
    """Store the interfaces of new instances, and take those that there are.

    Args:
        session: of the launch's first transaction.
        ctx: the request.
        network: the launch's.
        wanted: the places by instance id.

    Raises:
        EC2Error: an interface that the launch needs is gone, or taken, by now.
    """
    there = [item.id for item in network.existing]
    locked = {item.id: item for item in queries.locked_items(session, ctx.project_id, there)}
    new: list[NewItem] = []
    for instance_id, mine in wanted.items():
        for place in mine:
            each = place.interface
            noted = kind.attached(instance_id, each.index, ctx.now, deletes=each.deletes)
            if each.existing is not None:
                _take(session, ctx, locked.get(each.existing.id), each.existing.id, noted)
                continue
            draft = {"groups": [dict(group) for group in each.shown]}
            data = {**each.data, **noted, kind.STAGE: kind.LAUNCHING, kind.DRAFT: draft}
            new.append(
                NewItem(kind.PREFIX, None, ctx.project_id, data, network.vpc_id, id=place.id)
            )
            if place.address_id:
                kept = {address_kind.AUTO: instance_id, STAGE: MAKING}
                new.append(
                    NewItem(address_kind.PREFIX, None, ctx.project_id, kept, id=place.address_id)
                )
    queries.add_items(session, new, ids.mint)
    tags = [
        tag_queries.Tag(item.id, key, value)
        for item in new
        if item.kind == kind.PREFIX
        for key, value in network.tags.items()
    ]
    tag_queries.set_tags(session, ctx.project_id, tags)


def _take(
    session: Session, ctx: Context, item: Item | None, item_id: str, noted: Mapping[str, Any]
) -> None:
    if item is None:
        raise ids.missing_ids([item_id])
    if item.data.get(kind.INSTANCE):
        raise busy(item_id)
    data = {**kind.detached(item.data), **noted}
    queries.update_item(session, ctx.project_id, item_id, data=data)


def make(ctx: Context, network: Network, mine: Sequence[Place], made: Made) -> list[dict[str, str]]:
    """Make the ports and public addresses of one instance.

    Returns:
        ``networks`` for Nova's create.

    Raises:
        TrimaranError: Neutron refused, or did not answer; `release` finds what there is.
    """
    plugged = []
    for place in mine:
        each = place.interface
        if each.existing is not None:
            plugged.append({"port": each.existing.os_id or ""})
            continue
        assert each.subnet is not None
        port = creator(ctx, each.body, each.addresses, each.subnet.item.id)(place.id)
        made.ports[place.id] = port
        if place.address_id:
            body = {
                "floating_network_id": network.external,
                "port_id": port["id"],
                "fixed_ip_address": primary_of(port, each.addresses),
                "description": place.address_id,
            }
            made.addresses[place.address_id] = create_floating_ip(ctx, body)
        plugged.append({"port": port["id"]})
    return plugged


def settle(
    session: Session, ctx: Context, launch: Launch, done: Conclusion, made: Made | None = None
) -> None:
    """Show the interfaces of instances that stay; in the transaction that decides the launch.

    Args:
        session: of that transaction.
        ctx: whose launch.
        launch: which.
        done: the decision.
        made: what Neutron made, where it is known; else it is found by its name.
    """
    stay = [item.id for item in done.stay]
    wanted = [each for instance_id in stay for each in launch.plugged.get(instance_id, ())]
    known = made or Made()
    for item in queries.items_by_ids(session, ctx.project_id, wanted):
        if item.kind == address_kind.PREFIX:
            row = known.addresses.get(item.id)
            data = address_made(item.data)
            if row is not None:
                data[address_kind.PUBLIC] = row["floating_ip_address"]
        else:
            row = known.ports.get(item.id)
            data = kind.made(item.data)
            if row is not None and not data.get(kind.PRIMARY):
                data[kind.PRIMARY] = next(iter(kind.addresses_of(row)), "")
        os_id = row["id"] if row is not None and not item.os_id else None
        if os_id or data != item.data:
            change_item(session, ctx.project_id, item, data, os_id)


def to_release(launch: Launch, done: Conclusion) -> list[str]:
    """The instances whose interfaces are to go: they are none, and that is certain."""
    stay = {item.id for item in done.stay}
    certain = [i for i in launch.item_ids if i not in stay and i not in done.waiting]
    return [i for i in certain if launch.plugged.get(i) or launch.borrowed.get(i)]


def release(ctx: Context, launch: Launch, instance_ids: Collection[str]) -> None:
    """Delete what was made for instances, and give back what was there before; may be done twice.

    Raises:
        TrimaranError: something could not be deleted; nothing is forgotten.
    """
    wanted = [each for i in instance_ids for each in launch.plugged.get(i, ())]
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, wanted))
    delete_objects(ctx, items)
    lent = [each for i in instance_ids for each in launch.borrowed.get(i, ())]

    def forget(session: Session) -> None:
        queries.delete_items(session, ctx.project_id, [item.id for item in items])
        for item in queries.items_by_ids(session, ctx.project_id, lent):
            if item.data.get(kind.INSTANCE) in instance_ids:
                data = kind.detached(item.data)
                queries.update_item(session, ctx.project_id, item.id, data=data)

    ctx.db.write(forget)
