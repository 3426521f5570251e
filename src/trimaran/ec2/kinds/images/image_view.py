"""How an image looks on the wire (spec ec2.md 3.5 and appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.kinds.images.image_devices import (
    Device,
    bare,
    devices,
    root_device_name,
    root_is_volume,
)
from trimaran.ec2.kinds.images.image_kind import is_public
from trimaran.ec2.kinds.instances.launch_types import NAMES
from trimaran.ec2.reconcile_kind import Pair, View

TYPES = {"ami": "machine", "aki": "kernel", "ari": "ramdisk"}

_STATES = {
    "queued": "pending",
    "saving": "pending",
    "uploading": "pending",
    "importing": "pending",
    "active": "available",
    "killed": "deregistered",
    "pending_delete": "deregistered",
    "deleted": "deregistered",
    "deactivated": "invalid",
}
#: Glance property of an image that is being made from a bundle (spec 5.2).
_STEPS = {
    "available": "available",
    "downloading": "pending",
    "decrypting": "pending",
    "untarring": "pending",
    "uploading": "pending",
    "pending": "pending",
    "failed_download": "failed",
    "failed_decrypt": "failed",
    "failed_untar": "failed",
    "failed_upload": "failed",
}
_ARCHITECTURES = {"aarch64": "arm64", "amd64": "x86_64", "i486": "i386", "i586": "i386"}
_ARCHITECTURES |= {"i686": "i386", "arm64": "arm64", "i386": "i386", "x86_64": "x86_64"}


def state_of_image(item_data: Mapping[str, Any], image: Mapping[str, Any]) -> str:
    """The EC2 state: the item's own word, else Glance's status and the bundle's step."""
    noted = item_data.get("state")
    if noted:
        return str(noted)
    if not image:
        return "pending"
    status = str(image.get("status") or "").lower()
    if status == "queued" and image.get("os_glance_failed_import"):
        return "failed"  # Glance could not fetch the data, and will not try again
    state = _STATES.get(status, "error")
    if state in ("available", "pending"):
        state = _STEPS.get(str(image.get("image_state") or "").lower(), state)
    return state


def architecture_of(image: Mapping[str, Any]) -> str:
    """In EC2's words; what Glance does not say is taken for ``x86_64``."""
    told = str(image.get("architecture") or image.get("hw_architecture") or "").lower()
    return _ARCHITECTURES.get(told, "x86_64")


def shown_image(view: View, pair: Pair) -> dict[str, Any]:
    """The image of a pair as boto3 shows it."""
    item, image = pair.item, pair.body
    public = is_public(image) if image else bool(item.data.get("is_public"))
    kind = item.kind
    windows = "windows" in (image.get("os_type"), image.get("os_distro"))
    made: dict[str, Any] = {
        "ImageId": item.id,
        "OwnerId": image.get("owner") or item.project_id or view.ctx.project_id,
        "ImageType": TYPES.get(kind, "machine"),
        "Public": public,
        "Description": item.data.get("description") or image.get("description"),
        "State": state_of_image(item.data, image),
        "Tags": view.tags.get(item.id),
    }
    if image:
        name = image.get("name") or image.get("image_location")
        foreign = image.get("owner") != view.ctx.project_id
        root = root_device_name(image)
        made |= {
            "Name": name,
            "ImageLocation": image.get("image_location") or f"None ({name})",
            "ImageOwnerAlias": "amazon" if public and foreign else None,
            "CreationDate": _moment(image.get("created_at")),
            "Architecture": architecture_of(image),
            "Platform": "windows" if windows else None,
            "PlatformDetails": "Windows" if windows else "Linux/UNIX",
            "UsageOperation": "RunInstances",
            "VirtualizationType": "hvm",
            "Hypervisor": "xen",
            # What RegisterImage was told is kept for those who compare; nothing depends on it.
            "EnaSupport": item.data.get("ena_support", True),
            "SriovNetSupport": item.data.get("sriov_net_support"),
            "ProductCodes": [],
            "KernelId": view.id_of(image.get("kernel_id")),
            "RamdiskId": view.id_of(image.get("ramdisk_id")),
            "RootDeviceName": root,
            "RootDeviceType": "ebs" if root_is_volume(image) else "instance-store",
            "BlockDeviceMappings": _mappings(view, image, item.data.get(NAMES) or {}),
        }
    return {name: value for name, value in made.items() if value is not None}


def _mappings(
    view: View, image: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for device in devices(image):
        if device.virtual:
            shown.append({"DeviceName": device.name, "VirtualName": device.virtual})
        elif ebs := _ebs(view, device, names.get(bare(device.name))):
            shown.append({"DeviceName": device.name, "Ebs": ebs})
    return shown


def _ebs(view: View, device: Device, name: str | None) -> dict[str, Any] | None:
    source = view.id_of(device.os_id)
    if device.os_id and source is None:
        return None  # nothing that an id could be given to
    made = {
        "DeleteOnTermination": device.deletes,
        # Sources other than snapshots go by the same name: upstream's extension.
        "SnapshotId": source,
        "VolumeSize": device.size,
        "VolumeType": name or device.kind or "standard",
        "Encrypted": False,
    }
    return {name: value for name, value in made.items() if value is not None}


def _moment(text: Any) -> str | None:
    """Glance's time with the milliseconds that AWS writes (the wire has it as a string)."""
    if not isinstance(text, str) or not text:
        return None
    return text if "." in text else text.replace("Z", ".000Z")
