"""DescribeInstanceAttribute and ResetInstanceAttribute (spec ec2.md 3.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_network import networks_of, the_interface
from trimaran.ec2.kinds.instances.instance_options import one_instance
from trimaran.ec2.kinds.instances.instance_view import Instance
from trimaran.ec2.kinds.interfaces.network_interface_attribute import set_source_check
from trimaran.ec2.kinds.item_options import NO_STOP, NO_TERMINATION
from trimaran.ec2.protocol.errors import invalid_value, missing

Request = Mapping[str, Any]


def describe_instance_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """One attribute of an instance."""
    name = request.get("Attribute")
    if not name:
        raise missing("Attribute")
    show = _SHOW.get(name)
    if show is None:
        raise invalid_value("Attribute", name, "Unknown attribute.")
    instance = one_instance(
        ctx,
        request.get("InstanceId"),
        groups=name == "groupSet",
        volumes=name in ("blockDeviceMapping", "rootDeviceName"),
    )
    return {"InstanceId": instance.id, **show(ctx, instance)}


def reset_instance_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Only ``sourceDestCheck`` can be reset, and only in a VPC."""
    name = request.get("Attribute")
    if not name:
        raise missing("Attribute")
    if name != "sourceDestCheck":
        raise invalid_value("Attribute", name, "Only sourceDestCheck can be reset.")
    instance = one_instance(ctx, request.get("InstanceId"))
    pair, _ = the_interface(ctx, instance.id, name)
    set_source_check(ctx, pair, True)
    return {}


def _value(name: str, value: Any) -> dict[str, Any]:
    # Without a value the element is there and empty, as AWS has it.
    return {name: {} if value in (None, "") else {"Value": value}}


def _fixed(name: str, value: Any) -> Callable[[Context, Instance], dict[str, Any]]:
    return lambda ctx, instance: _value(name, value)


def _flag(name: str, kept: str) -> Callable[[Context, Instance], dict[str, Any]]:
    return lambda ctx, instance: _value(name, bool(instance.item.data.get(kept)))


def _field(name: str, field: str) -> Callable[[Context, Instance], dict[str, Any]]:
    return lambda ctx, instance: _value(name, instance.shown().get(field))


def _user_data(ctx: Context, instance: Instance) -> dict[str, Any]:
    return _value("UserData", instance.server.get("OS-EXT-SRV-ATTR:user_data"))


def _devices(ctx: Context, instance: Instance) -> dict[str, Any]:
    return {"BlockDeviceMappings": instance.shown().get("BlockDeviceMappings", [])}


def _groups(ctx: Context, instance: Instance) -> dict[str, Any]:
    networks = networks_of(ctx, [instance.id])
    if len(networks.pairs(instance.id)) > 1:
        the_interface(ctx, instance.id, "groupSet")
    shown = networks.shown(instance.id)
    return {"Groups": shown[0]["Groups"] if shown else instance.groups}


def _source_dest_check(ctx: Context, instance: Instance) -> dict[str, Any]:
    pair, _ = the_interface(ctx, instance.id, "sourceDestCheck")
    return _value("SourceDestCheck", bool(pair.item.data.get("source_dest_check", True)))


_SHOW: Mapping[str, Callable[[Context, Instance], dict[str, Any]]] = {
    "blockDeviceMapping": _devices,
    "disableApiStop": _flag("DisableApiStop", NO_STOP),
    "disableApiTermination": _flag("DisableApiTermination", NO_TERMINATION),
    "ebsOptimized": _fixed("EbsOptimized", False),
    "enaSupport": _fixed("EnaSupport", True),
    "enclaveOptions": lambda ctx, instance: {"EnclaveOptions": {"Enabled": False}},
    "groupSet": _groups,
    # What a guest's own shutdown does: Nova powers the server off.
    "instanceInitiatedShutdownBehavior": _fixed("InstanceInitiatedShutdownBehavior", "stop"),
    "instanceType": _field("InstanceType", "InstanceType"),
    "kernel": _field("KernelId", "KernelId"),
    "productCodes": lambda ctx, instance: {"ProductCodes": []},
    "ramdisk": _field("RamdiskId", "RamdiskId"),
    "rootDeviceName": _field("RootDeviceName", "RootDeviceName"),
    "sourceDestCheck": _source_dest_check,
    "sriovNetSupport": _fixed("SriovNetSupport", None),
    "userData": _user_data,
}
