"""AttachNetworkInterface and DetachNetworkInterface: by way of Nova (spec ec2.md 3.9, F42).

The place in the instance is reserved first, so that two requests cannot take
it; Nova then plugs the port in.  What a crash leaves is what Neutron shows: an
attachment that did not come about is forgotten after ``launch_deadline_seconds``.
Detaching goes on after the answer, as AWS's does; the interface is
``detaching`` until Neutron shows its port free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.guest_changes import interfaces_changed
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.instances.instance_type import INTERFACES
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface import in_use, one_interface, require_free
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, unsupported
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, NotFound, TrimaranError, Unavailable

Request = Mapping[str, Any]

ATTACHMENT = "eni-attach"
#: Device indexes: as many as an instance has interfaces at most, numbered freely below this.
HIGHEST_INDEX = 99


def attach_network_interface(ctx: Context, request: Request) -> dict[str, Any]:
    """Give an instance a network interface."""
    for name in ("NetworkInterfaceId", "InstanceId", "DeviceIndex"):
        if request.get(name) in (None, ""):
            raise missing(name)
    if request.get("NetworkCardIndex"):
        raise unsupported("There is one network card only.")
    for name in ("EnaSrdSpecification", "EnaQueueCount"):
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    index = check_index(request["DeviceIndex"], "DeviceIndex")
    instance_id = ids.check_id(request["InstanceId"], "instanceId", "i")
    pair, _ = one_interface(ctx, request["NetworkInterfaceId"], described=False)
    [instance] = reconcile(ctx, Instances(groups=False, volumes=False), [instance_id]).pairs
    server = _server(instance)
    require_free(pair)
    ctx.commit_point()
    ctx.db.write(lambda s: _reserve(s, ctx, pair, instance, index))
    try:
        ctx.user.compute.attach_interface(server, {"port_id": pair.item.os_id})
    except Unavailable:
        raise  # it may be attached: Neutron will show it
    except TrimaranError as error:
        _forget(ctx, pair)
        raise _refusal(error, pair, instance) from error
    interfaces_changed(ctx, [pair.item.id])
    return {"AttachmentId": ids.derive(pair.item.id, ATTACHMENT), "NetworkCardIndex": 0}


def detach_network_interface(ctx: Context, request: Request) -> dict[str, Any]:
    """Take an interface from its instance; not the first one."""
    if not request.get("AttachmentId"):
        raise missing("AttachmentId")
    attachment_id = ids.check_id(request["AttachmentId"], "attachmentId", ATTACHMENT)
    try:
        pair, _ = one_interface(ctx, ids.derive(attachment_id, kind.PREFIX), described=False)
    except EC2Error as error:
        if error.code.endswith(".NotFound"):
            raise no_attachment(attachment_id) from error
        raise
    data, server = pair.item.data, kind.server_of(pair.body)
    if not data.get(kind.INSTANCE):
        raise no_attachment(attachment_id)
    if data.get(kind.INDEX, 0) == 0:
        raise EC2Error(
            "OperationNotPermitted",
            "The network interface at device index 0 cannot be detached.",
        )
    if not server:
        raise EC2Error("IncorrectState", f"The attachment '{attachment_id}' is still being made.")
    ctx.commit_point()
    try:
        with contextlib.suppress(NotFound):  # Nova has detached it already
            ctx.user.compute.detach_interface(server, pair.item.os_id or "")
    except (BadRequest, Conflict) as error:
        raise EC2Error(
            "IncorrectState", f"The attachment '{attachment_id}' cannot be ended now."
        ) from error
    ctx.db.write(lambda s: _note_detaching(s, ctx, pair))
    interfaces_changed(ctx, [pair.item.id])
    return {}


def check_index(index: int, parameter: str) -> int:
    """A device index that can be given.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    if not 0 <= index <= HIGHEST_INDEX:
        raise invalid_value(parameter, index, f"Expecting a value between 0 and {HIGHEST_INDEX}.")
    return index


def no_attachment(attachment_id: str) -> EC2Error:
    """The error for an attachment that is none."""
    return EC2Error(
        "InvalidAttachmentID.NotFound", f"The attachment '{attachment_id}' does not exist."
    )


def _server(instance: Pair) -> str:
    """The server of an instance that can be given an interface."""
    usable = (states.RUNNING, states.STOPPED)
    if instance.found is None or states.state_of(instance.body) not in usable:
        raise EC2Error(
            "IncorrectState", f"Instance '{instance.item.id}' is not 'running' or 'stopped'."
        )
    return instance.found.os_id


def _reserve(session: Session, ctx: Context, pair: Pair, instance: Pair, index: int) -> None:
    """The place in the instance, for this interface alone: the instance's row is the lock."""
    wanted = [pair.item.id, instance.item.id]
    locked = {item.id: item for item in queries.locked_items(session, ctx.project_id, wanted)}
    item = locked.get(pair.item.id)
    if item is None:
        raise ids.missing_ids([pair.item.id])
    if item.data.get(kind.INSTANCE):
        raise in_use(item.id)
    mine = kind.instances_items(session, ctx.project_id, instance.item.id)
    if index in {each.data.get(kind.INDEX, 0) for each in mine}:
        raise invalid_value(
            "DeviceIndex",
            index,
            f"Instance '{instance.item.id}' already has an interface attached at it.",
        )
    if len(mine) >= INTERFACES:
        raise EC2Error(
            "AttachmentLimitExceeded",
            f"Interface count {len(mine) + 1} exceeds the limit of '{instance.item.id}'.",
        )
    if any(each.vpc_id != item.vpc_id for each in mine):
        raise invalid_value(
            "NetworkInterfaceId", item.id, "The instance is in another VPC than the interface."
        )
    coming = kind.attached(instance.item.id, index, ctx.now, deletes=False)
    data = {**kind.detached(item.data), **coming}
    queries.update_item(session, ctx.project_id, item.id, data=data)


def _forget(ctx: Context, pair: Pair) -> None:
    def write(session: Session) -> None:
        for item in queries.items_by_ids(session, ctx.project_id, [pair.item.id]):
            data = kind.detached(item.data)
            queries.update_item(session, ctx.project_id, item.id, data=data)

    ctx.db.write(write)


def _note_detaching(session: Session, ctx: Context, pair: Pair) -> None:
    for item in queries.items_by_ids(session, ctx.project_id, [pair.item.id]):
        if item.data.get(kind.INSTANCE):  # else somebody has seen already that it is free
            data = {**item.data, kind.ATTACHMENT: kind.DETACHING}
            queries.update_item(session, ctx.project_id, item.id, data=data)


def _refusal(error: TrimaranError, pair: Pair, instance: Pair) -> TrimaranError:
    """Nova's refusal as EC2 says it; Nova's own words stay in the log (F8)."""
    words = str(getattr(error, "remote_message", "")).lower()
    if isinstance(error, NotFound):
        return ids.missing_ids([pair.item.id if "port" in words else instance.item.id])
    if "still in use" in words or "in use" in words:
        return in_use(pair.item.id)
    if isinstance(error, Conflict):
        return EC2Error(
            "IncorrectState",
            f"Instance '{instance.item.id}' is not in a state to be given an interface.",
        )
    if isinstance(error, BadRequest):
        return invalid_value(
            "NetworkInterfaceId", pair.item.id, "The instance cannot have this interface."
        )
    return error
