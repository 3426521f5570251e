"""AssociateAddress and DisassociateAddress: one call of Neutron each (spec ec2.md 3.1).

Neutron alone decides what an address is associated with; the item only keeps
what EC2 calls the association.  When this process dies between the two, the
association is there and is called after the address.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.guest_changes import interfaces_changed, server_changed
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.interfaces import address_kind as kind
from trimaran.ec2.kinds.interfaces import network_interface_kind as interface_kind
from trimaran.ec2.kinds.interfaces.address import address_of, not_owned, one_address
from trimaran.ec2.kinds.interfaces.address_kind import PREFIX, association_id
from trimaran.ec2.kinds.interfaces.network_interface import one_interface
from trimaran.ec2.kinds.interfaces.network_interface_ips import one_of
from trimaran.ec2.protocol.errors import EC2Error, invalid_combination, invalid_value, missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, NotFound

Request = Mapping[str, Any]
Row = Mapping[str, Any]

ASSOCIATION = "eipassoc"


@dataclass(frozen=True)
class Target:
    """What an address is to be associated with.

    Attributes:
        pair: the interface.
        private: its address.
    """

    pair: Pair
    private: str


def associate_address(ctx: Context, request: Request) -> dict[str, Any]:
    """Let a public address lead to an instance or an interface."""
    one_of(request, "AllocationId", "PublicIp")
    if not (request.get("InstanceId") or request.get("NetworkInterfaceId")):
        raise missing("InstanceId or NetworkInterfaceId")
    if request.get("AllocationId"):
        view, pair = one_address(ctx, request["AllocationId"])
    else:
        found = address_of(ctx, request["PublicIp"])
        if found is None:
            return _associate_standard(ctx, request)
        if not ctx.conf.disable_ec2_classic:
            raise invalid_combination("You must specify an allocation id for a VPC address.")
        view, pair = found
    target = _target(ctx, request)
    there = pair.body.get("port_id")
    if there:
        same = there == target.pair.item.os_id
        asked = request.get("PrivateIpAddress")
        if same and asked in (None, "", pair.body.get("fixed_ip_address")):
            return {"AssociationId": association_id(pair.item, pair.body)}
        if not request.get("AllowReassociation"):
            holder = view.id_of(there) or "another interface"
            raise _already(f"resource {pair.item.id} is already associated with {holder}")
    _require_gateway(ctx, target.pair)
    ctx.commit_point()
    _make_way(ctx, target)
    row = _update(ctx, pair, target)
    association = _note(ctx, pair, target, row)
    interfaces_changed(ctx, [target.pair.item.id, pair.item.data.get(kind.INTERFACE)])
    return {"AssociationId": association}


def disassociate_address(ctx: Context, request: Request) -> dict[str, Any]:
    """Let a public address lead nowhere."""
    one_of(request, "AssociationId", "PublicIp")
    if request.get("AssociationId"):
        pair = _by_association(ctx, request["AssociationId"])
    else:
        found = address_of(ctx, request["PublicIp"])
        if found is None:
            return _disassociate_standard(ctx, request["PublicIp"])
        if not ctx.conf.disable_ec2_classic:
            raise invalid_value(
                "PublicIp", request["PublicIp"], "You must specify an association id."
            )
        pair = found[1]
        if not pair.body.get("port_id"):
            raise invalid_value(
                "PublicIp", request["PublicIp"], "The address is not associated with anything."
            )
    ctx.commit_point()
    if pair.body.get("port_id"):
        try:
            ctx.user.network.update_floating_ip(pair.item.os_id or "", {"port_id": None})
        except NotFound as error:
            raise _no_association(str(request.get("AssociationId"))) from error
    _change(ctx, pair.item, kind.dissociated)
    interfaces_changed(ctx, [pair.item.data.get(kind.INTERFACE)])
    return {}


def _target(ctx: Context, request: Request) -> Target:
    """The interface and its address that a request means.

    Raises:
        EC2Error: ``InvalidParameterCombination`` for an instance outside a VPC,
            ``InvalidInstanceID`` for one with several interfaces,
            ``InvalidParameterValue`` for an address that the interface has not.
    """
    interface_id = request.get("NetworkInterfaceId")
    instance_id = request.get("InstanceId")
    if interface_id:
        pair, describer = one_interface(ctx, interface_id, described=False)
        if instance_id and describer.instance_of(pair) != instance_id:
            raise invalid_combination(
                f"The interface '{interface_id}' is not attached to instance '{instance_id}'."
            )
    else:
        pair = _interface_of(ctx, str(instance_id))
    if pair.found is None:
        raise EC2Error(
            "IncorrectState", f"The network interface '{pair.item.id}' is still being made."
        )
    there = interface_kind.addresses_of(pair.body)
    private = request.get("PrivateIpAddress") or pair.item.data.get(interface_kind.PRIMARY)
    if not private and there:
        private = there[0]
    if private not in there:
        raise invalid_value(
            "PrivateIpAddress", private, f"It is not assigned to interface '{pair.item.id}'."
        )
    return Target(pair, str(private))


def _interface_of(ctx: Context, instance_id: str) -> Pair:
    ids.check_id(instance_id, "instanceId", "i")
    reconcile(ctx, Instances(groups=False, volumes=False), [instance_id])
    of = interface_kind.Interfaces(groups=False, addresses=False, of=[instance_id])
    pairs = [
        pair
        for pair in reconcile(ctx, of).pairs
        if pair.item.data.get(interface_kind.INSTANCE) == instance_id
    ]
    if not pairs:
        raise invalid_combination(
            f"The instance '{instance_id}' is in no VPC: it has no interface for the address."
        )
    if len(pairs) > 1:
        raise EC2Error(
            "InvalidInstanceID",
            f"There are multiple interfaces attached to instance '{instance_id}'. "
            "Please specify an interface ID for the operation instead.",
        )
    return pairs[0]


def _require_gateway(ctx: Context, pair: Pair) -> None:
    def read(session: Session) -> list[Item]:
        return queries.items_of(session, ctx.project_id, ["igw"])

    vpc_id = pair.item.vpc_id
    if vpc_id not in {item.vpc_id for item in ctx.db.read(read)}:
        raise _no_gateway(vpc_id)


def _no_gateway(vpc_id: str | None) -> EC2Error:
    return EC2Error(
        "Gateway.NotAttached", f"Network {vpc_id} is not attached to any internet gateway"
    )


def _already(text: str) -> EC2Error:
    return EC2Error("Resource.AlreadyAssociated", text)


def _make_way(ctx: Context, target: Target) -> None:
    """An address that came with the instance gives way to one that is the project's own."""
    rows = ctx.user.network.floating_ips(project_id=ctx.project_id, port_id=target.pair.item.os_id)
    there = [row["id"] for row in rows if row.get("fixed_ip_address") == target.private]
    items = ctx.db.read(lambda s: queries.by_os_ids(s, there))
    for os_id, item in items.items():
        if item.data.get(kind.AUTO) and item.project_id == ctx.project_id:
            with contextlib.suppress(NotFound):
                ctx.user.network.delete_floating_ip(os_id)
            ctx.db.write(partial(_forget, ctx, item.id))


def _forget(ctx: Context, item_id: str, session: Session) -> None:
    queries.delete_items(session, ctx.project_id, [item_id])


def _update(ctx: Context, pair: Pair, target: Target) -> Row:
    body = {"port_id": target.pair.item.os_id, "fixed_ip_address": target.private}
    try:
        return ctx.user.network.update_floating_ip(pair.item.os_id or "", body)
    except NotFound as error:
        code = str(getattr(error, "remote_code", ""))
        if code.startswith("ExternalGateway"):
            raise _no_gateway(target.pair.item.vpc_id) from error
        gone = target.pair.item.id if code.startswith("Port") else pair.item.id
        raise ids.missing_ids([gone]) from error
    except Conflict as error:
        raise _already(
            f"resource {target.pair.item.id} has an address for {target.private} already"
        ) from error
    except BadRequest as error:
        raise invalid_value(
            "PrivateIpAddress", target.private, "The address cannot lead there."
        ) from error


def _note(ctx: Context, pair: Pair, target: Target, row: Row) -> str:
    """Keeps what the association is called; a new one each time (F47)."""
    made = ids.mint(ASSOCIATION)
    noted = {
        kind.INTERFACE: target.pair.item.id,
        kind.PRIVATE: target.private,
        kind.PORT: row.get("port_id"),
        kind.ASSOCIATION: made,
    }
    _change(ctx, pair.item, lambda data: {**kind.dissociated(data), **noted})
    return made


def _change(ctx: Context, item: Item, change: Any) -> None:
    def write(session: Session) -> None:
        for each in queries.items_by_ids(session, ctx.project_id, [item.id]):
            queries.update_item(session, ctx.project_id, each.id, data=change(each.data))

    ctx.db.write(write)


def _by_association(ctx: Context, association: str) -> Pair:
    """The address of an association; one without a name of its own has the address's number."""
    ids.check_id(association, "associationId", ASSOCIATION)

    def read(session: Session) -> list[Item]:
        return queries.items_of(session, ctx.project_id, [PREFIX])

    derived = ids.derive(association, PREFIX)
    items = [item for item in ctx.db.read(read) if not item.data.get(kind.AUTO)]
    named = [item.id for item in items if item.data.get(kind.ASSOCIATION) == association]
    wanted = named or [item.id for item in items if item.id == derived]
    if not wanted:
        raise _no_association(association)
    try:
        _, pair = one_address(ctx, wanted[0])
    except EC2Error as error:
        raise _no_association(association) from error
    shown = association_id(pair.item, pair.body)
    if shown != association and pair.body.get("port_id"):
        raise _no_association(association)
    return pair


def _no_association(association: str) -> EC2Error:
    return EC2Error(
        "InvalidAssociationID.NotFound",
        f"The association ID '{association[:255]}' does not exist",
    )


# -- EC2-Classic ----------------------------------------------------------------


def _standard(ctx: Context, public_ip: str) -> dict[str, Any]:
    """A floating IP that was not allocated for a VPC."""
    if not ctx.conf.disable_ec2_classic:
        rows = ctx.user.network.floating_ips(
            project_id=ctx.project_id, floating_ip_address=public_ip
        )
        known = ctx.db.read(lambda s: queries.by_os_ids(s, [row["id"] for row in rows]))
        for row in rows:
            if row["id"] not in known and row.get("project_id") == ctx.project_id:
                return row
    raise not_owned(public_ip)


def _associate_standard(ctx: Context, request: Request) -> dict[str, Any]:
    row = _standard(ctx, request["PublicIp"])
    if not request.get("InstanceId"):
        raise invalid_combination("A standard address leads to an instance.")
    instance_id = ids.check_id(request["InstanceId"], "instanceId", "i")
    [instance] = reconcile(ctx, Instances(groups=False, volumes=False), [instance_id]).pairs
    if instance.item.vpc_id or ctx.db.read(
        lambda s: interface_kind.instances_items(s, ctx.project_id, instance_id)
    ):
        raise invalid_combination("You must specify an allocation id for an instance in a VPC.")
    ports = ctx.user.network.ports(
        project_id=ctx.project_id, device_id=instance.item.os_id or "-", fields=["id", "fixed_ips"]
    )
    if not ports:
        raise EC2Error("IncorrectState", f"Instance '{instance_id}' has no network yet.")
    addresses = interface_kind.addresses_of(ports[0])
    ctx.commit_point()
    body = {"port_id": ports[0]["id"], "fixed_ip_address": addresses[0] if addresses else None}
    try:
        ctx.user.network.update_floating_ip(row["id"], body)
    except Conflict as error:
        raise _already(f"Instance {instance_id} has an address already") from error
    except (NotFound, BadRequest) as error:
        raise EC2Error(
            "Gateway.NotAttached", "The instance's network has no way to the outside."
        ) from error
    server_changed(ctx, instance.item.os_id or "")
    return {}


def _disassociate_standard(ctx: Context, public_ip: str) -> dict[str, Any]:
    row = _standard(ctx, public_ip)
    ctx.commit_point()
    if row.get("port_id"):
        ports = ctx.user.network.ports(id=row["port_id"], fields=["device_id"])
        ctx.user.network.update_floating_ip(row["id"], {"port_id": None})
        for port in ports:
            server_changed(ctx, port.get("device_id") or "")
    return {}
