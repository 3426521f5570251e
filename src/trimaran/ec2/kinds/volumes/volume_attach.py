"""AttachVolume and DetachVolume (spec ec2.md 3.15).

Nova does the work later; the answer says ``attaching`` or ``detaching``, and a
describe shows where it is.  What is refused, and with which code, is decided by
looking at volume and instance first (F56); Nova has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import instance_states
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume import in_use, one_volume
from trimaran.ec2.kinds.volumes.volume_attachments import (
    note_attachment,
    shown_attachment,
    shown_attachments,
)
from trimaran.ec2.kinds.volumes.volume_kind import Volumes, attachments
from trimaran.ec2.kinds.volumes.volume_view import body_of
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, Forbidden, NotFound, QuotaExceeded

Request = Mapping[str, Any]

# What Nova takes; EC2 clients may leave out the directory.
_DEVICE = re.compile(r"(/dev/)?x?[a-z]?d?[a-z]+[0-9]*")


def attach_volume(ctx: Context, request: Request) -> dict[str, Any]:
    """Attach a volume to an instance under a device name."""
    for name in ("VolumeId", "InstanceId", "Device"):
        if not request.get(name):
            raise missing(name)
    device = request["Device"]
    if len(device) > 255 or not _DEVICE.fullmatch(device):
        raise _bad_device(device)
    if request.get("EbsCardIndex"):
        raise unsupported("There is one EBS card only.")
    instance_id = ids.check_id(request["InstanceId"], "instanceId", "i")
    pair = one_volume(ctx, request["VolumeId"])
    [instance] = reconcile(ctx, Instances(groups=False, volumes=False), [instance_id]).pairs
    server = _server(instance)
    _check_free(pair, server)
    ctx.commit_point()
    told = _attach(ctx, pair, instance, device)
    note = {
        "instance": instance_id,
        "device": device,
        "deletes": bool(told.get("delete_on_termination")),
        "since": ctx.now.isoformat(),
    }
    note_attachment(ctx, pair.item.id, server, note)
    return shown_attachment(pair.item.id, note, {}, "attaching")


def detach_volume(ctx: Context, request: Request) -> dict[str, Any]:
    """Detach a volume from its instance."""
    if not request.get("VolumeId"):
        raise missing("VolumeId")
    volume_id = ids.check_id(request["VolumeId"], "volumeId", "vol")
    if request.get("InstanceId"):
        ids.check_id(request["InstanceId"], "instanceId", "i")
    view = reconcile(ctx, Volumes(), [volume_id])
    [pair] = view.pairs
    if not attachments(pair.body) or states.status_of(pair.body) == "detaching":
        raise _not_attached(pair)
    shown = [
        row
        for row in shown_attachments(ctx, view)[volume_id]
        if request.get("InstanceId") in (None, "", row["InstanceId"])
    ]
    if not shown:
        raise _other_attachment(request)
    if len(shown) > 1:
        raise invalid_combination("The volume has several attachments: name the InstanceId.")
    server = _server_of(ctx, pair, shown[0])
    real = attachments(pair.body)[server].get("device")
    if request.get("Device") and request["Device"] not in (shown[0].get("Device"), real):
        raise _other_attachment(request)
    ctx.commit_point()
    _detach(ctx, pair, server)
    return {**shown[0], "State": "detaching"}


def _server(instance: Pair) -> str:
    """The server of an instance that can be given a volume."""
    usable = (instance_states.RUNNING, instance_states.STOPPED)
    if instance.found is None or instance_states.state_of(instance.body) not in usable:
        raise EC2Error("IncorrectState", f"Instance '{instance.item.id}' is not 'running'.")
    return instance.found.os_id


def _check_free(pair: Pair, server: str) -> None:
    volume = body_of(pair)
    state = states.state_of(volume)
    there = attachments(volume)
    if state == states.IN_USE and (not volume.get("multiattach") or server in there or not there):
        raise in_use(pair)
    if pair.found is None or state not in (states.AVAILABLE, states.IN_USE):
        raise _not_available(pair, state)


def _attach(ctx: Context, pair: Pair, instance: Pair, device: str) -> Mapping[str, Any]:
    full = device if device.startswith("/dev/") else f"/dev/{device}"
    body = {"volumeId": pair.item.os_id, "device": full}
    try:
        return ctx.user.compute.attach_volume(instance.body["id"], body)
    except QuotaExceeded as error:
        raise EC2Error(
            "AttachmentLimitExceeded", f"Instance '{instance.item.id}' takes no more volumes."
        ) from error
    except (BadRequest, Conflict, NotFound) as error:
        raise _refusal(error, pair, instance, device) from error


def _refusal(error: Exception, pair: Pair, instance: Pair, device: str) -> EC2Error:
    """Nova's refusal as EC2 says it; its own words stay in the log (F8)."""
    words = str(getattr(error, "remote_message", "")).lower()
    if isinstance(error, NotFound):
        return ids.missing_ids([pair.item.id if "volume" in words else instance.item.id])
    if "device path" in words or "device name" in words:
        return invalid_value(
            "Device", device, f"Attachment point {device} is already in use or cannot be used."
        )
    if "field/attribute device" in words:
        return _bad_device(device)
    if "availability zone" in words:
        return EC2Error(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{pair.item.id}' is not in the same availability zone as instance "
            f"'{instance.item.id}'",
        )
    if "already attached" in words:
        return in_use(pair)
    if isinstance(error, Conflict):
        return EC2Error(
            "IncorrectState",
            f"Instance '{instance.item.id}' is not in a state to be given a volume.",
        )
    return _not_available(pair, "in another state")


def _detach(ctx: Context, pair: Pair, server: str) -> None:
    try:
        ctx.user.compute.detach_volume(server, pair.item.os_id or "")
    except NotFound as error:
        raise _not_attached(pair) from error
    except Forbidden as error:
        if "root" not in str(getattr(error, "remote_message", "")).lower():
            raise
        raise EC2Error(
            "OperationNotPermitted",
            f"Unable to detach root volume '{pair.item.id}' from its instance.",
        ) from error
    except (BadRequest, Conflict) as error:
        raise EC2Error(
            "IncorrectState", f"The volume '{pair.item.id}' cannot be detached now."
        ) from error


def _server_of(ctx: Context, pair: Pair, shown: Mapping[str, Any]) -> str:
    there = attachments(pair.body)
    if len(there) == 1:
        return next(iter(there))
    [instance] = reconcile(ctx, Instances(groups=False, volumes=False), [shown["InstanceId"]]).pairs
    if instance.item.os_id not in there:
        raise _not_attached(pair)
    return instance.item.os_id


def _bad_device(device: str) -> EC2Error:
    return invalid_value("Device", device, f"{device[:255]} is not a valid EBS device name.")


def _not_available(pair: Pair, state: str) -> EC2Error:
    return EC2Error(
        "IncorrectState", f"The volume '{pair.item.id}' is not 'available' but '{state}'."
    )


def _not_attached(pair: Pair) -> EC2Error:
    state = states.status_of(body_of(pair))
    shown = state if state == "detaching" else states.state_of(body_of(pair))
    return EC2Error("IncorrectState", f"The volume '{pair.item.id}' is in the '{shown}' state.")


def _other_attachment(request: Request) -> EC2Error:
    place = " ".join(str(request[name]) for name in ("InstanceId", "Device") if request.get(name))
    return EC2Error(
        "InvalidAttachment.NotFound",
        f"The volume '{request['VolumeId']}' is not attached as {place[:255]}.",
    )
