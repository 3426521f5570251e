"""ModifyInstanceAttribute: one attribute a call, in either of its two forms (spec ec2.md 3.6).

``Attribute`` with ``Value``, or the attribute under its own name.  What
OpenStack cannot change afterwards is refused; asking for what is so anyway
succeeds, because terraform sends such things.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from trimaran.cloud import gather
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import bare
from trimaran.ec2.kinds.instances.instance_network import the_interface
from trimaran.ec2.kinds.instances.instance_options import change_item, one_instance, set_flag
from trimaran.ec2.kinds.instances.instance_resize import resize
from trimaran.ec2.kinds.instances.instance_view import Instance
from trimaran.ec2.kinds.interfaces.network_interface_attribute import set_groups, set_source_check
from trimaran.ec2.kinds.item_options import NO_STOP, NO_TERMINATION
from trimaran.ec2.kinds.volumes.volume_kind import ATTACHED
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)
from trimaran.errors import BadRequest, Conflict, NotFound

Request = Mapping[str, Any]
Change = Callable[[Context, Instance, Any], None]


def modify_instance_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Change one attribute of an instance."""
    if not request.get("InstanceId"):
        raise missing("InstanceId")
    ids.check_id(request["InstanceId"], "instanceId", "i")
    name, value = _asked(request)
    devices = name == "blockDeviceMapping"
    instance = one_instance(ctx, request["InstanceId"], volumes=devices)
    _CHANGES[name](ctx, instance, value)
    return {}


def _asked(request: Request) -> tuple[str, Any]:
    """The attribute and its value.

    Raises:
        EC2Error: ``InvalidParameterValue``, ``MissingParameter``,
            ``InvalidParameterCombination`` for none or several.
    """
    given: list[tuple[str, Any]] = []
    name = request.get("Attribute")
    if name:
        if name not in _CHANGES:
            raise invalid_value("Attribute", name, "Unknown attribute.")
        if request.get("Value") is not None:
            given.append((name, _typed(name, request["Value"])))
        elif _STRUCTURES_BY_NAME[name] not in request:
            raise missing("Value")
    elif request.get("Value") is not None:
        raise missing("Attribute")
    for structure, attribute in _STRUCTURES.items():
        if structure in request:
            entry = request[structure]
            given.append((attribute, entry.get("Value") if isinstance(entry, dict) else entry))
    if len(given) != 1 or (name and given[0][0] != name):
        raise invalid_combination("Exactly one attribute is to be given.")
    return given[0]


def _typed(name: str, text: str) -> Any:
    if name in _BOOLEANS:
        if text.lower() not in ("true", "false"):
            raise invalid_value("Value", text, "Expected true or false.")
        return text.lower() == "true"
    if name == "userData":
        return text.encode()
    if name in ("groupSet", "blockDeviceMapping"):
        raise invalid_combination(f"The attribute {name} has a parameter of its own.")
    return text


def _protect(kept: str) -> Change:
    def change(ctx: Context, instance: Instance, value: Any) -> None:
        ctx.commit_point()
        set_flag(ctx, [instance.id], kept, bool(value))

    return change


def _fixed(name: str, current: Any) -> Change:
    def change(ctx: Context, instance: Instance, value: Any) -> None:
        if value != current:
            raise unsupported(f"The attribute {name} cannot be changed to '{value}'.")

    return change


def _shutdown(ctx: Context, instance: Instance, value: Any) -> None:
    if value not in ("stop", "terminate"):
        raise invalid_value("InstanceInitiatedShutdownBehavior", value)
    if value != "stop":
        raise unsupported("A guest's shutdown stops its instance; it cannot terminate it.")


def _unchangeable(name: str) -> Change:
    def change(ctx: Context, instance: Instance, value: Any) -> None:
        if value in (None, "") or value != instance.shown().get(name):
            raise unsupported(f"{name} of an instance cannot be changed.")

    return change


def _user_data(ctx: Context, instance: Instance, value: Any) -> None:
    there = instance.server.get("OS-EXT-SRV-ATTR:user_data") or ""
    try:
        known = base64.b64decode(there)
    except (ValueError, binascii.Error):
        known = there.encode()
    if (value or b"") != known:
        raise unsupported("User data of an instance cannot be changed.")


def _regroup(ctx: Context, instance: Instance, value: Any) -> None:
    pair, _ = the_interface(ctx, instance.id, "groupSet")
    set_groups(ctx, pair, value or [])


def _source_check(ctx: Context, instance: Instance, value: Any) -> None:
    if value is None:
        raise missing("SourceDestCheck.Value")
    pair, _ = the_interface(ctx, instance.id, "sourceDestCheck")
    set_source_check(ctx, pair, bool(value))


def _devices(ctx: Context, instance: Instance, value: Any) -> None:
    """DeleteOnTermination of attached volumes: all are checked before the first is changed."""
    there = {bare(row["DeviceName"]): row for row in instance.shown()["BlockDeviceMappings"]}
    volumes = instance.volumes_by_id
    wanted: dict[str, bool] = {}
    for entry in value:
        ebs = entry.get("Ebs") or {}
        if entry.get("VirtualName") or entry.get("NoDevice") is not None:
            raise unsupported("Only DeleteOnTermination of a device can be changed.")
        device = there.get(bare(entry.get("DeviceName") or ""))
        if device is None:
            raise EC2Error(
                "InvalidInstanceAttributeValue",
                f"No device is currently mapped at {entry.get('DeviceName') or ''}",
            )
        volume_id = device["Ebs"]["VolumeId"]
        if ebs.get("VolumeId") not in (None, "", volume_id):
            raise invalid_value("BlockDeviceMapping.Ebs.VolumeId", ebs["VolumeId"])
        if ebs.get("DeleteOnTermination") is None:
            raise missing("BlockDeviceMapping.Ebs.DeleteOnTermination")
        wanted[volume_id] = ebs["DeleteOnTermination"]
    ctx.commit_point()

    def bound(volume_id: str) -> Callable[[], None]:
        return lambda: _set_deletes(ctx, instance, volumes[volume_id], wanted[volume_id])

    gather(**{volume_id: bound(volume_id) for volume_id in wanted})
    _forget_notes(ctx, wanted)


def _set_deletes(ctx: Context, instance: Instance, os_id: str, deletes: bool) -> None:
    body = {"volumeId": os_id, "delete_on_termination": deletes}
    try:
        ctx.user.compute.update_volume_attachment(instance.server["id"], os_id, body)
    except NotFound as error:
        raise EC2Error("IncorrectState", "The volume is not attached any more.") from error
    except (BadRequest, Conflict) as error:
        raise unsupported("DeleteOnTermination cannot be changed now.") from error


def _forget_notes(ctx: Context, volume_ids: Mapping[str, bool]) -> None:
    """The volumes' items have noted what is no longer so (`volume_attachments`)."""

    def change(data: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in data.items() if name != ATTACHED}

    change_item(ctx, list(volume_ids), change)


_BOOLEANS = frozenset(
    {"disableApiTermination", "disableApiStop", "ebsOptimized", "enaSupport", "sourceDestCheck"}
)
_STRUCTURES = {
    "BlockDeviceMappings": "blockDeviceMapping",
    "DisableApiStop": "disableApiStop",
    "DisableApiTermination": "disableApiTermination",
    "EbsOptimized": "ebsOptimized",
    "EnaSupport": "enaSupport",
    "Groups": "groupSet",
    "InstanceInitiatedShutdownBehavior": "instanceInitiatedShutdownBehavior",
    "InstanceType": "instanceType",
    "Kernel": "kernel",
    "Ramdisk": "ramdisk",
    "SourceDestCheck": "sourceDestCheck",
    "SriovNetSupport": "sriovNetSupport",
    "UserData": "userData",
}
_STRUCTURES_BY_NAME = {attribute: name for name, attribute in _STRUCTURES.items()}
_CHANGES: Mapping[str, Change] = {
    "blockDeviceMapping": _devices,
    "disableApiStop": _protect(NO_STOP),
    "disableApiTermination": _protect(NO_TERMINATION),
    "ebsOptimized": _fixed("ebsOptimized", False),
    "enaSupport": _fixed("enaSupport", True),
    "groupSet": _regroup,
    "instanceInitiatedShutdownBehavior": _shutdown,
    "instanceType": resize,
    "kernel": _unchangeable("KernelId"),
    "ramdisk": _unchangeable("RamdiskId"),
    "sourceDestCheck": _source_check,
    "sriovNetSupport": _fixed("sriovNetSupport", None),
    "userData": _user_data,
}
