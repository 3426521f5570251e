"""One instance as its own guest may know it: by Nova's id, without a user's token.

The same reconciliation as a describe, for one server: one that nobody has
described yet gets its whole item here, not a bare mapping (F21).  What Nova and
Neutron are asked for concerns this server only, and all at once, since a guest
waits for it while it boots; devices therefore come from Nova's list of the
server's attachments, not from Cinder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_kind import (
    FACTS,
    Instances,
    rows_of,
    volume_image,
)
from trimaran.ec2.kinds.instances.instance_view import Describer, Instance
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Found, Selection, Thunks, as_admin
from trimaran.errors import NotFound
from trimaran.identity import NoEndpoint


@dataclass(frozen=True)
class Interface:
    """A network interface of an instance.

    Attributes:
        port: Neutron's.
        item: the EC2 interface, where it is one.
        index: device index, from 0.
    """

    port: Mapping[str, Any]
    item: Item | None
    index: int

    @property
    def addresses(self) -> list[str]:
        """Fixed addresses, the primary one first."""
        found = [str(row["ip_address"]) for row in self.port.get("fixed_ips") or ()]
        primary = (self.item.data if self.item else {}).get("private_ip_address")
        return sorted(found, key=lambda address: address != primary)


@dataclass(frozen=True)
class Guest:
    """An instance, and what it is made of.

    Attributes:
        instance: as boto3 shows it, with ``ReservationId`` and ``OwnerId`` beside its own fields.
        server: Nova's, as an administrator sees it.
        interfaces: by device index.
        version: of the instance's item, read before the cloud was asked.
    """

    instance: Mapping[str, Any]
    server: Mapping[str, Any]
    interfaces: Sequence[Interface]
    version: int


@dataclass(frozen=True)
class Surroundings:
    """What the interfaces of an instance are plugged into.

    Attributes:
        subnets: Neutron's subnets by id.
        groups: EC2 names of security groups by Neutron's id.
        floating: Neutron's floating addresses.
        ids: EC2 ids of subnets and groups by Neutron's, where they have one.
        vpcs: CIDR blocks of the VPCs by id.
    """

    subnets: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, str]
    floating: Sequence[Mapping[str, Any]]
    ids: Mapping[str, str]
    vpcs: Mapping[str, str]


def guest_of(ctx: Context, server_id: str) -> Guest | None:
    """The instance behind a server of the context's project.

    Args:
        ctx: a context of the project, whose user session may be the service's.
        server_id: Nova's id.

    Returns:
        None when the project has no such server.
    """
    view = reconcile(ctx, _GuestKind(server_id), objects=[server_id])
    for instance in Describer(view).instances():
        if not instance.is_dead:
            beside = {"ReservationId": instance.reservation_id, "OwnerId": ctx.project_id}
            shown = {**instance.shown(), **beside}
            if not shown.get("ImageId") and (volume := _root_volume(view.listed, shown)):
                shown["ImageId"] = _image_of(ctx, instance, volume)
            return Guest(
                instance=shown,
                server=instance.server,
                interfaces=_interfaces(ctx, view.listed["ports"], shown),
                version=instance.item.version,
            )
    return None


def options_of(ctx: Context, server_id: str) -> Mapping[str, Any] | None:
    """The blob of the item of a server, without asking the cloud.

    Returns:
        Empty when the server has no item yet; None when it is another project's.
    """
    item = ctx.db.read(lambda s: queries.by_os_ids(s, [server_id])).get(server_id)
    if item is None:
        return {}
    return item.data if item.project_id in (ctx.project_id, None) else None


def surroundings_of(ctx: Context, interfaces: Sequence[Interface]) -> Surroundings:
    """Subnets, security groups and floating addresses of interfaces: one round of questions."""
    ports = [interface.port for interface in interfaces]
    subnets = {row["subnet_id"] for port in ports for row in port.get("fixed_ips") or ()}
    groups = {group for port in ports for group in port.get("security_groups") or ()}
    network = ctx.admin.network
    found = gather(
        subnets=_neutron(partial(network.subnets, id=sorted(subnets))),
        groups=_neutron(partial(network.security_groups, id=sorted(groups), fields=["id", "name"])),
        floating=_neutron(partial(network.floating_ips, port_id=[port["id"] for port in ports])),
    )

    def read(session: Session) -> tuple[dict[str, Item], list[Item]]:
        known = queries.by_os_ids(session, subnets | groups)
        mine = {i.vpc_id for i in _own(ctx, known).values() if i.vpc_id}
        mine |= {i.item.vpc_id for i in interfaces if i.item and i.item.vpc_id}
        return known, queries.items_by_ids(session, ctx.project_id, mine) if mine else []

    known, vpcs = ctx.db.read(read)
    return Surroundings(
        subnets={row["id"]: row for row in found["subnets"]},
        groups={row["id"]: group_name(row["name"]) for row in found["groups"]},
        floating=found["floating"],
        ids={os_id: item.id for os_id, item in _own(ctx, known).items()},
        vpcs={vpc.id: str(vpc.data.get("cidr_block") or "") for vpc in vpcs},
    )


def group_name(name: str) -> str:
    """A security group's name on the wire: a VPC's default group has the VPC's id in Neutron."""
    return "default" if ids.is_id(name, ["vpc"]) else name


def _own(ctx: Context, items: Mapping[str, Item]) -> dict[str, Item]:
    return {os_id: item for os_id, item in items.items() if item.project_id == ctx.project_id}


def _neutron(question: Callable[[], Any]) -> Callable[[], Any]:
    return as_admin(question, service="network")


def _interfaces(
    ctx: Context, ports: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]
) -> list[Interface]:
    """Ports by device index; outside a VPC the one with the instance's own address is first."""
    known = ctx.db.read(lambda s: queries.by_os_ids(s, [port["id"] for port in ports]))
    items = _own(ctx, known)

    def place(port: Mapping[str, Any]) -> tuple[bool, int, bool, str]:
        item = items.get(port["id"])
        index = item.data.get("device_index") if item else None
        addresses = [row.get("ip_address") for row in port.get("fixed_ips") or ()]
        return (
            index is None,
            index or 0,
            shown.get("PrivateIpAddress") not in addresses,
            str(port.get("created_at")),
        )

    made: list[Interface] = []
    for port in sorted(ports, key=place):
        item = items.get(port["id"])
        after = made[-1].index + 1 if made else 0
        index = (item.data.get("device_index") if item else None) or after
        made.append(Interface(port, item, index))
    return made


def _root_volume(listed: Mapping[str, Any], shown: Mapping[str, Any]) -> str | None:
    for row in rows_of(listed, "volume"):
        if row["attachments"][0]["device"] == shown.get("RootDeviceName"):
            return str(row["id"])
    return None


def _image_of(ctx: Context, instance: Instance, volume_id: str) -> str | None:
    """The image that a root volume was made from; noted, so that it is asked for once."""
    try:
        volume = as_admin(lambda: ctx.admin.volume.volume(volume_id), service="volume")()
    except (NotFound, NoEndpoint):
        return None
    image = volume_image(volume)
    if not image:
        return None

    def write(session: Session) -> str:
        new = NewItem("ami", image, None, alike=ids.IMAGE_PREFIXES)
        [found] = queries.add_items(session, [new], ids.mint)
        facts = {**instance.facts, "image_id": found.id}
        queries.update_item(
            session,
            ctx.project_id,
            instance.id,
            version=instance.item.version,
            data={**instance.item.data, FACTS: facts},
        )
        return found.id

    return ctx.db.write(write)


class _GuestKind(Instances):
    """One server; another project's is as good as none, since a guest may name any."""

    def __init__(self, server_id: str) -> None:
        super().__init__(groups=False, volumes=False)
        self._server_id = server_id

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        asked = dict(super().listings(ctx, selection))
        asked["ports"] = _neutron(partial(ctx.admin.network.ports, device_id=self._server_id))
        asked["volumes"] = as_admin(lambda: self._devices(ctx), service="compute")
        return asked

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        own = {
            name: None
            if name.startswith("server:") and row and row.get("tenant_id") != ctx.project_id
            else row
            for name, row in listed.items()
        }
        return super().found(ctx, own)

    def _devices(self, ctx: Context) -> list[dict[str, Any]]:
        """The attached volumes, in the form in which Cinder would have listed them."""
        try:
            rows = ctx.admin.compute.server_volumes(self._server_id)
        except NotFound:
            return []
        return [
            {
                "id": row["volumeId"],
                "status": "in-use",
                "attachments": [{"server_id": self._server_id, "device": row.get("device")}],
            }
            for row in rows
        ]
