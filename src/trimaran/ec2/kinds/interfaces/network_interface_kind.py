"""Network interfaces as the reconciliation engine sees them: Neutron's ports that we made.

A port of the project that no item names is somebody else's (Nova's, a router's)
and not shown.  The item's blob has upstream's fields (``subnet_id``,
``description``, ``private_ip_address`` for the primary one, ``source_dest_check``
and, while attached, ``instance_id``, ``device_index``, ``attach_time``,
``delete_on_termination``), and of ours:

``stage``/``draft``
    the port is being made, alone (``making``, shown) or for a launch that is
    not decided yet (``launching``, hidden); the draft is what it was asked for;
``attachment``
    where an attachment is: ``attaching`` until Neutron shows the port in use,
    ``detaching`` until it does no more, else absent;
``server``
    the server that the attachment is to, as Neutron last told it;
``ended``
    the attachment that was detached last, and when: who waits for its end
    (Terraform does) asks for it by its id and wants to be told ``detached``.

Neutron is the truth: what no longer agrees with it is repaired as it is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces.network_interface_routes import retell_routes
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Reference, Selection, Thunks

PREFIX = "eni"
ELASTIC = "eipalloc"

STAGE = "stage"
MAKING = "making"
LAUNCHING = "launching"
DRAFT = "draft"

SUBNET = "subnet_id"
PRIMARY = "private_ip_address"
INSTANCE = "instance_id"
INDEX = "device_index"
SINCE = "attach_time"
DELETES = "delete_on_termination"
SERVER = "server"
ATTACHMENT = "attachment"
ATTACHING = "attaching"
DETACHING = "detaching"
ENDED = "ended"
DETACHED = "detached"
_ATTACHED = (INSTANCE, INDEX, SINCE, DELETES, SERVER, ATTACHMENT, ENDED)

#: Seconds that an attachment which has ended is still known by its id.
REMEMBERED = 60.0

#: Neutron's way to let a port send with any source, which is what the check is about.
ANY_SOURCE = "0.0.0.0/0"

#: Up to so many ports are asked for by their ids; more are read with the whole listing.
FEW = 50

_FIELDS = [
    "id",
    "name",
    "project_id",
    "network_id",
    "mac_address",
    "status",
    "device_id",
    "device_owner",
    "fixed_ips",
    "security_groups",
    "allowed_address_pairs",
    "dns_assignment",
    "revision_number",
]


class Interfaces(Kind):
    """The network interfaces of the caller's project.

    Args:
        groups: also read security groups, to show their names.
        addresses: also read floating IPs, to show associations.
        of: only the interfaces that these instances have, by our notes.
    """

    prefixes = (PREFIX,)

    def __init__(
        self, *, groups: bool = True, addresses: bool = True, of: Collection[str] | None = None
    ) -> None:
        self._groups = groups
        self._addresses = addresses
        self._of = of
        self._known: list[str] = []
        self._waiting: list[str] = []
        #: the project's elastic IPs by Neutron's ids
        self.elastic: dict[str, Item] = {}

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        kinds = [PREFIX, *([ELASTIC] if self._addresses else [])]
        if wanted is None:
            # What all of them are plugged into is most of what the project has.
            named = ["i", "sg"] if self._groups else []
            items = queries.items_of(session, ctx.project_id, [*kinds, *named])
            self.beside = {item.os_id: item for item in items if item.kind in named and item.os_id}
        else:
            items = super().load(session, ctx, wanted)
            items += queries.items_of(session, ctx.project_id, kinds[1:]) if kinds[1:] else []
        self.elastic = {item.os_id: item for item in items if item.kind == ELASTIC and item.os_id}
        items = [item for item in items if item.kind == PREFIX]
        if self._of is not None:
            items = [item for item in items if item.data.get(INSTANCE) in self._of]
        self._known = [item.os_id for item in items if item.os_id]
        self._waiting = [item.id for item in items if not item.os_id]
        return items

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        if not (self._known or self._waiting):
            return {}
        neutron = ctx.user.network
        mine = {"project_id": ctx.project_id}
        all_of_them = selection is None and self._of is None
        few = not all_of_them and len(self._known) <= FEW
        thunks: dict[str, Callable[[], Any]] = {}
        if few and self._known:
            thunks["ports"] = partial(neutron.ports, **mine, id=self._known, fields=_FIELDS)
        elif not few:
            thunks["ports"] = partial(neutron.ports, **mine, fields=_FIELDS)
        if few and self._waiting:
            thunks["ports:waiting"] = partial(
                neutron.ports, **mine, name=self._waiting, fields=_FIELDS
            )
        if self._addresses:
            chosen = {"port_id": self._known} if few and not self._waiting else {}
            thunks["floating_ips"] = partial(neutron.floating_ips, **mine, **chosen)
        if self._groups:
            thunks["groups"] = lambda: group_rows(ctx)
        return thunks

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        known, waiting = set(self._known), set(self._waiting)
        rows = {row["id"]: row for row in listed.get("ports", ())}
        rows |= {row["id"]: row for row in listed.get("ports:waiting", ())}
        return [
            Found(PREFIX, row["id"], row, hint=hint_of(row))
            for row in rows.values()
            if row.get("project_id") == ctx.project_id
            and (row["id"] in known or hint_of(row) in waiting)
        ]

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        return NewItem(PREFIX, found.os_id, ctx.project_id)

    def repair(self, ctx: Context, item: Item, found: Found) -> Mapping[str, Any]:
        data = dict(item.data)
        if data.get(STAGE) == MAKING:
            data = made(data)
        addresses = addresses_of(found.body)
        if addresses and data.get(PRIMARY) not in addresses:
            data[PRIMARY] = addresses[0]
        checks = checks_source(found.body)
        if checks != data.get("source_dest_check", True):
            data["source_dest_check"] = checks
        data = _attachment_now(ctx, data, found.body)
        return {"data": data} if data != item.data else {}

    def fate(self, ctx: Context, item: Item) -> Fate:
        waits = item.os_id is None and STAGE in item.data
        young = item.age is not None and item.age < ctx.conf.trimaran.launch_deadline_seconds
        return Fate.KEEP if waits and young else Fate.DELETE

    def removed(self, session: Session, ctx: Context, items: Sequence[Item]) -> None:
        """A route to an interface whose port was deleted in Neutron leads nowhere."""
        retell_routes(session, ctx, [item.id for item in items])

    def hidden(self, item: Item) -> bool:
        return item.data.get(STAGE) == LAUNCHING

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        ports = {thing.os_id: thing.body for thing in found}
        if self._groups:
            named = {row["id"]: row["name"] for row in listed.get("groups", ())}
            for group in {group for port in ports.values() for group in port["security_groups"]}:
                # The id of a VPC's default group follows from the VPC's: it is not minted here.
                default = ids.is_id(named.get(group, ""), ["vpc"])
                yield Reference("sg", group, known_only=default or group not in named)
        for port in ports.values():
            if server := server_of(port):
                yield Reference("i", server, known_only=True)


def group_rows(ctx: Context) -> list[dict[str, Any]]:
    """Neutron's security groups of the project with id and name, read once a request."""

    def read() -> list[dict[str, Any]]:
        return ctx.user.network.security_groups(project_id=ctx.project_id, fields=["id", "name"])

    return ctx.once("security group names", read)


def hint_of(port: Mapping[str, Any]) -> str:
    """The interface id that a port was made for: its name, while nobody renames it."""
    name = port.get("name")
    return name if isinstance(name, str) and ids.is_id(name, [PREFIX]) else ""


def server_of(port: Mapping[str, Any]) -> str:
    """Nova's id of the server that has the port, or ""."""
    owner = str(port.get("device_owner") or "")
    return str(port.get("device_id") or "") if owner.startswith("compute:") else ""


def addresses_of(port: Mapping[str, Any]) -> list[str]:
    """The port's IPv4 addresses in a lasting order; Neutron's own means nothing."""
    found = [row["ip_address"] for row in port.get("fixed_ips") or ()]
    v4 = [address for address in found if ":" not in address]
    return sorted(v4, key=lambda address: [int(part) for part in address.split(".")])


def checks_source(port: Mapping[str, Any]) -> bool:
    """Whether Neutron drops what the port sends with a foreign source address."""
    pairs = port.get("allowed_address_pairs") or ()
    return not any(pair.get("ip_address") == ANY_SOURCE for pair in pairs)


def made(data: Mapping[str, Any]) -> dict[str, Any]:
    """The blob of an item whose port is there."""
    return {name: value for name, value in data.items() if name not in (STAGE, DRAFT)}


def detached(data: Mapping[str, Any]) -> dict[str, Any]:
    """The blob of an interface that is not attached."""
    return {name: value for name, value in data.items() if name not in _ATTACHED}


def attached(instance_id: str, index: int, since: datetime, *, deletes: bool) -> dict[str, Any]:
    """What the blob says of an attachment that is being made."""
    return {
        INSTANCE: instance_id,
        INDEX: index,
        SINCE: since.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        DELETES: deletes,
        ATTACHMENT: ATTACHING,
    }


def is_free(data: Mapping[str, Any], port: Mapping[str, Any]) -> bool:
    """Whether nothing has an interface: neither by our notes nor by Neutron."""
    return not (data.get(INSTANCE) or port.get("device_id") or data.get(STAGE))


def instances_items(session: Session, project_id: str, instance_id: str) -> list[Item]:
    """The interfaces that an instance has, by our notes."""
    items = queries.items_of(session, project_id, [PREFIX])
    return [item for item in items if item.data.get(INSTANCE) == instance_id]


def is_lost(ctx: Context, data: Mapping[str, Any], port: Mapping[str, Any]) -> bool:
    """Whether we noted an attachment that Neutron does not show, and that is not just coming."""
    if not data.get(INSTANCE) or server_of(port) or not port or STAGE in data:
        return False
    coming = data.get(ATTACHMENT) == ATTACHING
    return not (coming and _age(ctx, data) < ctx.conf.trimaran.launch_deadline_seconds)


def _attachment_now(ctx: Context, data: dict[str, Any], port: Mapping[str, Any]) -> dict[str, Any]:
    """The blob with its attachment as Neutron shows it; lost ones are looked at elsewhere."""
    server, going = server_of(port), data.get(ATTACHMENT)
    if not data.get(INSTANCE):
        return data
    if not server:
        if going != DETACHING:
            return data
        kept = {name: data[name] for name in (INSTANCE, INDEX, SINCE, DELETES) if name in data}
        return {**detached(data), ENDED: {**kept, "at": ctx.now.isoformat()}}
    if going == ATTACHING:
        data = {name: value for name, value in data.items() if name != ATTACHMENT}
    return {SERVER: server, **data}


def ended(ctx: Context, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The attachment that ended a moment ago, as the blob tells attachments; or None."""
    last: Mapping[str, Any] = data.get(ENDED) or {}
    recent = bool(last) and _seconds_since(ctx, last.get("at")) < REMEMBERED
    return {**last, ATTACHMENT: DETACHED} if recent else None


def _age(ctx: Context, data: Mapping[str, Any]) -> float:
    return _seconds_since(ctx, data.get(SINCE))


def _seconds_since(ctx: Context, moment: Any) -> float:
    try:
        since = datetime.fromisoformat(str(moment))
        return (ctx.now - since).total_seconds()
    except (TypeError, ValueError):
        return float("inf")
