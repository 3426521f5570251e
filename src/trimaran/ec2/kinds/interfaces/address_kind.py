"""Elastic IPs as the reconciliation engine sees them: Neutron's floating IPs.

Where every project is in VPCs, each floating IP of the project is an elastic
IP, whoever made it (F46); with EC2-Classic, only what was allocated for a VPC
has an item.  Neutron alone knows what an address is associated with.  The blob
has upstream's ``public_ip`` and, of the last association made here,
``network_interface_id`` and ``private_ip_address``; of ours:

``association_id``
    of that association; one made otherwise is named after the address (F47);
``port``
    Neutron's id of its port, which tells whether it still is that association;
``instance``
    the address came with this instance and goes with it (see `launch_network`):
    it is nobody's to use, and not shown as an elastic IP.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes.volume_kind import STAGE, fate_of_making, made
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Reference, Selection, Thunks

PREFIX = "eipalloc"

PUBLIC = "public_ip"
AUTO = "instance"
INTERFACE = "network_interface_id"
PRIVATE = "private_ip_address"
ASSOCIATION = "association_id"
PORT = "port"
_ASSOCIATED = (INTERFACE, PRIVATE, ASSOCIATION, PORT)


class Addresses(Kind):
    """The elastic IPs of the caller's project."""

    prefixes = (PREFIX,)

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._waiting: set[str] = set()

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        if wanted is None:
            # What addresses lead to is read with them.
            rows = queries.items_of(session, ctx.project_id, [PREFIX, "eni", "i"])
            items = [row for row in rows if row.kind == PREFIX]
            self.beside = {row.os_id: row for row in rows if row.kind != PREFIX and row.os_id}
        else:
            items = super().load(session, ctx, wanted)
        self._known = {item.os_id for item in items if item.os_id}
        self._waiting = {item.id for item in items if not item.os_id}
        return items

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        neutron, mine = ctx.user.network, {"project_id": ctx.project_id}
        if selection is None:
            return {"floating_ips": partial(neutron.floating_ips, **mine)}
        thunks: dict[str, Callable[[], Any]] = {}
        if selection.os_ids:
            thunks["floating_ips"] = partial(
                neutron.floating_ips, **mine, id=list(selection.os_ids)
            )
        if selection.waiting:
            names = [item.id for item in selection.waiting]
            thunks["floating_ips:waiting"] = partial(
                neutron.floating_ips, **mine, description=names
            )
        return thunks

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        rows = {row["id"]: row for name in listed for row in _floating(listed, name)}
        return [
            Found(PREFIX, row["id"], row, hint=hint_of(row))
            for row in rows.values()
            if row.get("project_id") == ctx.project_id
            and (
                ctx.conf.disable_ec2_classic
                or row["id"] in self._known
                or hint_of(row) in self._waiting
            )
        ]

    def details(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found], selective: bool
    ) -> Thunks:
        # An older Neutron does not tell who has the port.
        ports = sorted(
            {
                row["port_id"]
                for name in listed
                for row in _floating(listed, name)
                if row.get("port_id") and "port_details" not in row
            }
        )
        fields = ["id", "device_id", "device_owner"]
        return {"ports": partial(ctx.user.network.ports, id=ports, fields=fields)} if ports else {}

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        data = {PUBLIC: found.body["floating_ip_address"]}
        return NewItem(PREFIX, found.os_id, ctx.project_id, data)

    def repair(self, ctx: Context, item: Item, found: Found) -> Mapping[str, Any]:
        data = dict(item.data)
        if STAGE in data:
            data = made(data)
        data[PUBLIC] = found.body["floating_ip_address"]
        if not is_noted(data, found.body):
            data = dissociated(data)
        return {"data": data} if data != item.data else {}

    def fate(self, ctx: Context, item: Item) -> Fate:
        return fate_of_making(ctx, item)

    def hidden(self, item: Item) -> bool:
        return bool(item.data.get(AUTO))

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        for name in listed:
            for row in _floating(listed, name):
                if row.get("port_id"):
                    yield Reference("eni", row["port_id"], known_only=True)
                if server := server_of(row, listed):
                    yield Reference("i", server, known_only=True)


def _floating(listed: Mapping[str, Any], name: str) -> Iterable[dict[str, Any]]:
    return listed[name] if name.startswith("floating_ips") else ()


def hint_of(row: Mapping[str, Any]) -> str:
    """The allocation id that a floating IP was made for: its description, while nobody edits it."""
    text = row.get("description")
    return text if isinstance(text, str) and ids.is_id(text, [PREFIX]) else ""


def server_of(row: Mapping[str, Any], listed: Mapping[str, Any]) -> str:
    """Nova's id of the server behind a floating IP, or ""."""
    port = row.get("port_details")
    if port is None:
        ports = {each["id"]: each for each in listed.get("ports", ())}
        port = ports.get(row.get("port_id") or "", {})
    owner = str(port.get("device_owner") or "")
    return str(port.get("device_id") or "") if owner.startswith("compute:") else ""


def is_noted(data: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether what the blob says of an association is what Neutron says."""
    if not data.get(PRIVATE):
        return not any(data.get(name) for name in _ASSOCIATED)
    if data.get(PORT, row.get("port_id")) != row.get("port_id"):
        return False
    return bool(row.get("port_id")) and data[PRIVATE] == row.get("fixed_ip_address")


def dissociated(data: Mapping[str, Any]) -> dict[str, Any]:
    """The blob of an address that nothing has."""
    return {name: value for name, value in data.items() if name not in _ASSOCIATED}


def association_id(item: Item, row: Mapping[str, Any]) -> str:
    """The id of an address's association as Neutron shows it."""
    noted = item.data.get(ASSOCIATION)
    if noted and is_noted(item.data, row):
        return str(noted)
    return ids.derive(item.id, "eipassoc")
