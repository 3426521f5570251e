"""What a RunInstances request means, found out before anything is done.

Everything that can be wrong is checked here, and everything that the request
names is looked up in OpenStack, in parallel.  The plan that comes out holds
OpenStack's ids and is all that the launch itself needs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.availability_zone import zones
from trimaran.ec2.kinds.client_token import check_token, fingerprint
from trimaran.ec2.kinds.images.image_devices import root_device_name, root_is_volume
from trimaran.ec2.kinds.images.image_view import state_of_image
from trimaran.ec2.kinds.instances import launch_classic
from trimaran.ec2.kinds.instances.instance_options import launch_options
from trimaran.ec2.kinds.instances.instance_type import flavors
from trimaran.ec2.kinds.instances.launch_devices import block_devices, by_device
from trimaran.ec2.kinds.instances.launch_network import Network, check_placement, plan_network
from trimaran.ec2.kinds.instances.launch_types import NAMES, names_of_launch, with_types
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    not_found,
    unsupported,
)
from trimaran.errors import NotFound

#: Instances of one request at most (AWS's own bound for most accounts is lower).
MOST = 1000
LARGEST_USER_DATA = 16384

#: Parameters that would be a lie to ignore (spec ec2.md 9.3).
_REFUSED = (
    "LaunchTemplate",
    "InstanceMarketOptions",
    "ElasticGpuSpecification",
    "ElasticInferenceAccelerators",
    "LicenseSpecifications",
    "Ipv6AddressCount",
    "Ipv6Addresses",
    "EnablePrimaryIpv6",
    "SecondaryInterfaces",
)
_NO_PLACE = (
    "GroupName",
    "GroupId",
    "HostId",
    "HostResourceGroupArn",
    "PartitionNumber",
    "SpreadDomain",
)
_TAGGED = ("instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu")


@dataclass(frozen=True)
class Plan:
    """A launch that can be done.

    Attributes:
        least: instances that are needed for success.
        most: instances that are tried.
        server: the body of Nova's create but for name, metadata and what is plugged in.
        network: what is plugged in; None with EC2-Classic, where ``server`` says it.
        groups: Neutron id and name of the security groups with EC2-Classic.
        facts: what is noted in each item about the launch.
        tags: of each instance.
        volume_tags: of each volume that Nova makes.
        options: what the item keeps of the request besides (`instance_options`).
        token: ``ClientToken`` or "".
        fingerprint: digest of the request's parameters.
    """

    least: int
    most: int
    server: dict[str, Any]
    network: Network | None
    groups: list[Mapping[str, Any]]
    facts: dict[str, Any]
    tags: dict[str, str]
    volume_tags: dict[str, str]
    options: dict[str, Any]
    token: str
    fingerprint: str


def make_plan(ctx: Context, request: Mapping[str, Any]) -> Plan:
    """Check a RunInstances request and look up what it names.

    Raises:
        EC2Error: the codes of spec ec2.md 3.6, steps 1 to 6.
    """
    least, most = _counts(request)
    _refuse(request)
    user_data = _user_data(request.get("UserData"))
    tags = tag_specifications(request.get("TagSpecifications"), _TAGGED)
    options = launch_options(ctx, request)
    item = _image_item(ctx, request)
    check_placement(request)
    network = plan_network(ctx, request, tags.get("network-interface", {}))
    seen = gather(**_lookups(ctx, request, item, most, network))
    image = _usable_image(item, seen["image"])
    _check_kernel(ctx, request, image)
    flavor = _flavor(ctx, request, seen["flavors"])
    zone = _zone(ctx, request)
    most = _within_quota(seen.get("limits"), least, most)
    groups: list[Mapping[str, Any]] = []
    plugged: dict[str, Any] = {}
    if network is None:
        classic = launch_classic.choose_network(seen["networks"], ctx.project_id)
        groups = launch_classic.choose_groups(ctx, request, seen["groups"])
        named = [{"name": group["id"]} for group in groups]
        plugged = {"networks": [{"uuid": classic}], **_given(security_groups=named)}
    entries, names = with_types(ctx, by_device(request.get("BlockDeviceMappings")))
    devices = block_devices(ctx, entries, image)
    names = names_of_launch(item.data.get(NAMES) or {}, names, _root(devices, image))
    from_volume = any(
        entry.get("boot_index") == 0 and entry["destination_type"] == "volume" for entry in devices
    )
    server: dict[str, Any] = {"flavorRef": flavor["id"], **plugged}
    server |= _given(
        imageRef=None if from_volume else image["id"],
        block_device_mapping_v2=devices,
        key_name=request.get("KeyName"),
        user_data=user_data,
        availability_zone=zone,
    )
    root_is_ebs = from_volume or root_is_volume(image)
    return Plan(
        least=least,
        most=most,
        server=server,
        network=network,
        groups=groups,
        facts={
            "image_id": item.id,
            "instance_type": flavor["name"],
            "launch_time": ctx.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "root_device_type": "ebs" if root_is_ebs else "instance-store",
            **_given(
                key_name=request.get("KeyName"),
                zone=zone,
                root_device_name=root_device_name(image),
            ),
        },
        tags=tags.get("instance", {}),
        volume_tags=tags.get("volume", {}),
        options={**options, **_given(**{NAMES: names})},
        token=check_token(request),
        fingerprint=fingerprint(request),
    )


def _root(devices: list[dict[str, Any]], image: Mapping[str, Any]) -> str | None:
    """The name of the device that is booted from, as request or image have it."""
    first = (row.get("device_name") for row in devices if row.get("boot_index") == 0)
    return next(first, None) or root_device_name(image)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _counts(request: Mapping[str, Any]) -> tuple[int, int]:
    least, most = request.get("MinCount"), request.get("MaxCount")
    for name, value in (("MinCount", least), ("MaxCount", most)):
        if value is None:
            raise missing(name)
        if value < 1:
            raise invalid_value(name, value, "It must be greater than 0.")
    assert least is not None
    assert most is not None
    if least > most:
        raise invalid_value("MinCount", least, "It must not be greater than MaxCount.")
    if least > MOST:
        raise EC2Error(
            "ResourceLimitExceeded", f"At most {MOST} instances can be launched in one request."
        )
    return least, min(most, MOST)


def _refuse(request: Mapping[str, Any]) -> None:
    for name in _REFUSED:
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    if (request.get("HibernationOptions") or {}).get("Configured"):
        raise unsupported("Hibernation is not supported.")
    if (request.get("EnclaveOptions") or {}).get("Enabled"):
        raise unsupported("Enclaves are not supported.")
    behavior = request.get("InstanceInitiatedShutdownBehavior") or "stop"
    if behavior not in ("stop", "terminate"):
        raise invalid_value("InstanceInitiatedShutdownBehavior", behavior)
    if behavior == "terminate":
        raise unsupported("A guest's shutdown stops its instance; it cannot terminate it.")
    placement = request.get("Placement") or {}
    if placement.get("Tenancy", "default") not in ("", "default"):
        raise unsupported("Dedicated tenancy is not supported.")
    if placement.get("Affinity", "default") not in ("", "default"):
        raise unsupported("Dedicated hosts are not supported.")
    for name in _NO_PLACE:
        if placement.get(name):
            raise unsupported(f"The parameter Placement.{name} is not supported.")


def _user_data(text: str | None) -> str | None:
    if not text:
        return None
    try:
        size = len(base64.b64decode("".join(text.split()), validate=True))
    except (ValueError, binascii.Error):
        raise EC2Error(
            "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data."
        ) from None
    if size > LARGEST_USER_DATA:
        raise invalid_value(
            "UserData", f"{size} bytes", f"User data is limited to {LARGEST_USER_DATA} bytes."
        )
    return "".join(text.split())


def _image_item(ctx: Context, request: Mapping[str, Any]) -> Item:
    if not request.get("ImageId"):
        raise missing("ImageId")
    image_id = ids.check_id(request["ImageId"], "imageId", "ami")
    items = ctx.db.read(lambda s: queries.mapped_by_ids(s, [image_id]))
    if not items or (not items[0].os_id and items[0].project_id != ctx.project_id):
        raise ids.missing_ids([image_id])
    if not items[0].os_id:
        raise _unavailable(image_id)
    return items[0]


def _unavailable(image_id: str) -> EC2Error:
    return EC2Error("InvalidAMIID.Unavailable", f"The image id '{image_id}' is not available")


def _lookups(
    ctx: Context, request: Mapping[str, Any], item: Item, most: int, network: Network | None
) -> dict[str, Callable[[], Any]]:
    thunks: dict[str, Callable[[], Any]] = {
        "image": lambda: _image(ctx, item),
        "flavors": lambda: flavors(ctx),
    }
    if network is None:
        thunks["networks"] = lambda: launch_classic.networks(ctx)
        thunks["groups"] = lambda: launch_classic.groups(ctx)
    if request.get("KeyName"):
        thunks["key"] = lambda: _key(ctx, request["KeyName"])
    if _asked_zone(request):
        thunks["zones"] = lambda: zones(ctx)
    if most > 1:
        thunks["limits"] = ctx.user.compute.limits
    return thunks


def _image(ctx: Context, item: Item) -> dict[str, Any]:
    try:
        return ctx.user.image.image(item.os_id or "")
    except NotFound:
        raise ids.missing_ids([item.id]) from None


def _key(ctx: Context, name: str) -> Any:
    try:
        return ctx.user.compute.keypair(name)
    except NotFound:
        raise not_found("InvalidKeyPair.NotFound", "key pair", [name]) from None


def _usable_image(item: Item, image: dict[str, Any]) -> dict[str, Any]:
    own_words = item.data if item.project_id == image.get("owner") else {}
    if state_of_image(own_words, image) != "available":
        raise _unavailable(item.id)
    return image


def _check_kernel(ctx: Context, request: Mapping[str, Any], image: Mapping[str, Any]) -> None:
    """Nova takes kernel and ramdisk from the image; asking for the same ones is harmless (F59)."""
    for parameter, field, prefix in (
        ("KernelId", "kernel_id", "aki"),
        ("RamdiskId", "ramdisk_id", "ari"),
    ):
        asked = request.get(parameter)
        if not asked:
            continue
        item_id = ids.check_id(asked, parameter[0].lower() + parameter[1:], prefix)
        if _os_id_of(ctx, item_id) != image.get(field):
            raise invalid_combination(
                f"The parameter {parameter} must be the one that the image was registered with."
            )


def _os_id_of(ctx: Context, item_id: str) -> str:
    items = ctx.db.read(lambda s: queries.mapped_by_ids(s, [item_id]))
    return (items[0].os_id or "") if items else ""


def _flavor(
    ctx: Context, request: Mapping[str, Any], known: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    name = request.get("InstanceType") or ctx.conf.default_flavor
    if name not in known:
        raise invalid_value("InstanceType", name, "Unknown instance type.")
    return known[name]


def _asked_zone(request: Mapping[str, Any]) -> str | None:
    """The zone that is wanted; a zone's id is its name here."""
    placement = request.get("Placement") or {}
    named = [placement.get(name) for name in ("AvailabilityZone", "AvailabilityZoneId")]
    if all(named):
        raise invalid_combination(
            "The parameters AvailabilityZone and AvailabilityZoneId exclude each other."
        )
    return next((name for name in named if name), None)


def _zone(ctx: Context, request: Mapping[str, Any]) -> str | None:
    name = _asked_zone(request)
    if name and name not in {zone["ZoneName"] for zone in zones(ctx)}:
        raise invalid_value("AvailabilityZone", name, "Unknown availability zone.")
    return name


def _within_quota(limits: Mapping[str, Any] | None, least: int, most: int) -> int:
    """How many the quota leaves room for; Nova still has the last word."""
    absolute = (limits or {}).get("absolute") or {}
    allowed = absolute.get("maxTotalInstances", -1)
    if allowed < 0:
        return most
    room = allowed - absolute.get("totalInstancesUsed", 0)
    if room < least:
        raise EC2Error(
            "ResourceLimitExceeded",
            f"You have requested more instances ({least}) than your quota leaves ({max(room, 0)}).",
        )
    return min(most, room)
