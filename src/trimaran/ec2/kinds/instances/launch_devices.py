"""The block devices of a launch: what the caller asks for over what the image brings.

Result is Nova's own list (block device mapping version 2); an empty one means
"as the image says".  Rules and codes are those of spec ec2.md 3.6 step 5, with
what upstream ignored (F54, F55) either honoured or refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import (
    Device,
    bare,
    devices,
    is_virtual,
    root_device_name,
    root_is_volume,
)
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, unsupported

#: Root devices by AWS's and Nova's habits, for images that name none.
_USUAL_ROOTS = frozenset({"vda", "sda", "sda1", "xvda", "hda"})
_GIB = 1 << 30


def block_devices(
    ctx: Context, entries: Mapping[str, Mapping[str, Any]], image: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Nova's ``block_device_mapping_v2`` for a launch.

    Args:
        ctx: the request.
        entries: ``BlockDeviceMappings`` by bare name (`by_device`), with types of Cinder only.
        image: the Glance image.

    Raises:
        EC2Error: ``InvalidBlockDeviceMapping``, ``InvalidSnapshotID.Malformed``,
            ``InvalidSnapshot.NotFound``, ``UnsupportedOperation`` and the
            parameter errors.
    """
    if not entries:
        return []
    sources = sources_of(ctx, entries.values())
    brought = {bare(device.name): device for device in devices(image)}
    root = root_device_name(image)
    made: list[dict[str, Any]] = []
    for name, entry in entries.items():
        is_root = name == bare(root) if root else name in _USUAL_ROOTS
        _check_merge(entry, brought.get(name), is_root)
        made.append(device_of(entry, brought.get(name), is_root, image, sources))
    if not root_is_volume(image) and not any(device.get("boot_index") == 0 for device in made):
        # Nova takes a list for the whole truth: without this there is nothing to boot from.
        made.insert(
            0,
            {
                "uuid": image["id"],
                "source_type": "image",
                "destination_type": "local",
                "boot_index": 0,
                "delete_on_termination": True,
            },
        )
    return made


def by_device(wanted: Sequence[Mapping[str, Any]] | None) -> dict[str, Mapping[str, Any]]:
    """The entries of a request by bare device name, each checked for its form.

    Raises:
        EC2Error: see `block_devices`.
    """
    entries: dict[str, Mapping[str, Any]] = {}
    for entry in wanted or ():
        name = entry.get("DeviceName")
        if not name:
            raise missing("BlockDeviceMapping.DeviceName")
        before = entries.get(bare(name))
        if before is not None and before["DeviceName"] != name:
            raise invalid_devices(
                f"The device '{name}' is used in more than one block-device mapping"
            )
        entries[bare(name)] = entry
        ebs = entry.get("Ebs") or {}
        if ebs.get("Encrypted") or ebs.get("KmsKeyId"):
            raise unsupported("Encrypted volumes are not supported in a block device mapping.")
        size = ebs.get("VolumeSize")
        if size is not None and size < 1:
            raise invalid_value("BlockDeviceMapping.Ebs.VolumeSize", size)
        virtual = entry.get("VirtualName")
        if virtual and not is_virtual(virtual):
            raise invalid_value("BlockDeviceMapping.VirtualName", virtual)
    return entries


def sources_of(ctx: Context, entries: Any) -> dict[str, tuple[str, str]]:
    """(source type, OpenStack id) by the id that an entry names.

    Raises:
        EC2Error: ``InvalidSnapshotID.Malformed``, ``InvalidSnapshot.NotFound``.
    """
    named = {}
    for entry in entries:
        source = (entry.get("Ebs") or {}).get("SnapshotId")
        if not source:
            continue
        if not ids.is_id(source, ["snap", "vol"]):
            raise EC2Error(
                "InvalidSnapshotID.Malformed",
                f'Invalid id: "{source[:255]}" (expecting "snap-...")',
            )
        named[source] = "volume" if ids.kind_of(source) == "vol" else "snapshot"
    if not named:
        return {}
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, list(named)))
    found = {item.id: (named[item.id], item.os_id) for item in items if item.os_id}
    absent = set(named) - set(found)
    if absent:
        raise ids.missing_ids(absent)
    return found


def _check_merge(entry: Mapping[str, Any], device: Device | None, is_root: bool) -> None:
    if device is None:
        return
    name, ebs = entry["DeviceName"], entry.get("Ebs") or {}
    if device.name != name:
        raise invalid_devices(f"The device '{name}' is called '{device.name}' in the image")
    if device.virtual and ebs.get("SnapshotId"):
        raise invalid_devices(f"The device '{name}' of the image is no EBS device")
    if is_root and ebs.get("SnapshotId"):
        raise invalid_devices("The snapshot of the root device cannot be changed")
    size = ebs.get("VolumeSize")
    if size is not None and device.size is not None and size < device.size:
        raise invalid_devices(
            f"The volume of device '{name}' is smaller than the image's {device.size} GiB"
        )


def device_of(
    entry: Mapping[str, Any],
    device: Device | None,
    is_root: bool,
    image: Mapping[str, Any],
    sources: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    """One entry in Nova's words.

    Args:
        entry: as boto3 takes it, its volume type Cinder's (`launch_types.with_types`).
        device: what the image has of this name, or None.
        is_root: the image boots from it.
        image: the Glance image.
        sources: see `sources_of`.
    """
    name, ebs = entry["DeviceName"], entry.get("Ebs") or {}
    if entry.get("NoDevice") is not None:
        return {"device_name": name, "no_device": True}
    if entry.get("VirtualName"):
        swap = entry["VirtualName"] == "swap"
        return {
            "device_name": name,
            "source_type": "blank",
            "destination_type": "local",
            "boot_index": -1,
            "delete_on_termination": True,
            **({"guest_format": "swap"} if swap else {}),
        }
    size = ebs.get("VolumeSize")
    made: dict[str, Any] = {
        "device_name": name,
        "destination_type": "volume",
        "boot_index": 0 if is_root else -1,
        "delete_on_termination": ebs.get("DeleteOnTermination", device.deletes if device else True),
    }
    if ebs.get("SnapshotId"):
        made["source_type"], made["uuid"] = sources[ebs["SnapshotId"]]
    elif device is not None and device.os_id:
        made["source_type"], made["uuid"] = device.source, device.os_id
        size = size or device.size
    elif is_root:
        made["source_type"], made["uuid"] = "image", image["id"]
        size = size or _least_size(image)
    else:
        made["source_type"] = "blank"
        size = size or (device.size if device else None)
        if size is None:
            raise missing("BlockDeviceMapping.Ebs.VolumeSize")
    if size is not None:
        made["volume_size"] = size
    kind = ebs.get("VolumeType", device.kind if device else "")
    if kind:
        made["volume_type"] = kind
    return made


def as_property(device: dict[str, Any]) -> dict[str, Any]:
    """Turn Nova's words for a request into those for an image's property, in place."""
    if "uuid" in device:
        device[f"{device['source_type']}_id"] = device.pop("uuid")
    return device


def _least_size(image: Mapping[str, Any]) -> int:
    size = image.get("virtual_size") or image.get("size") or 1
    return max(int(image.get("min_disk") or 0), -(-int(size) // _GIB), 1)


def invalid_devices(message: str) -> EC2Error:
    """``InvalidBlockDeviceMapping``."""
    return EC2Error("InvalidBlockDeviceMapping", message)
