"""The block devices that an image brings: Glance properties to EC2 mappings.

Two properties hold them, both JSON text: ``mappings`` (swap and ephemeral
disks) and ``block_device_mapping``, in the old form of Nova's version 1 or,
with ``bdm_v2``, in the new one (spec ec2.md 3.5).  Both come from users, so
anything malformed is no device rather than an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: What a mapping's source is as an id: Nova's word → the id's prefix.
SOURCES = {"snapshot": "snap", "volume": "vol", "image": "ami"}


@dataclass(frozen=True, slots=True)
class Device:
    """One device of an image.

    Attributes:
        name: the device name as the image spells it.
        virtual: name of a virtual device (``swap``, ``ephemeral0``), or "".
        source: ``snapshot``, ``volume``, ``image``, ``blank`` or "" for a virtual one.
        os_id: OpenStack id of the source, or "".
        size: GiB, or None.
        deletes: whether it is deleted on termination.
        root: Nova boots from it.
        kind: Cinder's volume type, or "".
    """

    name: str
    virtual: str = ""
    source: str = ""
    os_id: str = ""
    size: int | None = None
    deletes: bool = True
    root: bool = False
    kind: str = ""


def bare(name: str) -> str:
    """A device name without ``/dev/``: the two spellings mean one device."""
    return name.removeprefix("/dev/")


def root_device_name(image: Mapping[str, Any]) -> str | None:
    """The root device: a property, or the mapping whose virtual name is ``root``."""
    name = image.get("root_device_name")
    if isinstance(name, str) and name:
        return name
    for entry in _entries(image.get("mappings")):
        if entry.get("virtual") in ("root", "ami") and isinstance(entry.get("device"), str):
            return str(entry["device"])
    return None


def devices(image: Mapping[str, Any]) -> list[Device]:
    """The image's devices in order; a later one of the same name replaces an earlier one."""
    found: dict[str, Device] = {}
    for entry in _entries(image.get("mappings")):
        virtual, name = entry.get("virtual"), entry.get("device")
        if isinstance(virtual, str) and isinstance(name, str) and is_virtual(virtual):
            found[bare(name)] = Device(name, virtual=virtual)
    newer = str(image.get("bdm_v2") or "").lower() in ("true", "1", "yes")
    for entry in _entries(image.get("block_device_mapping")):
        device = _version_2(entry, image) if newer else _version_1(entry)
        if device is not None:
            found[bare(device.name)] = device
    return list(found.values())


def root_is_volume(image: Mapping[str, Any]) -> bool:
    """Whether some mapping is the root device (the image is "EBS-backed")."""
    root = root_device_name(image)
    return any(
        device.root or (root is not None and bare(device.name) == bare(root))
        for device in devices(image)
        if not device.virtual
    )


def is_virtual(name: str) -> bool:
    """Whether a name is one of EC2's virtual devices: ``swap``, ``ephemeral0``…"""
    return name == "swap" or (name.startswith("ephemeral") and name[9:].isdigit())


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def _version_2(entry: Mapping[str, Any], image: Mapping[str, Any]) -> Device | None:
    name = entry.get("device_name")
    root = str(entry.get("boot_index")) == "0"
    if not isinstance(name, str) or not name:
        # Nova's own snapshots of volume-backed servers name the root device apart.
        name = root_device_name(image) if root else None
    if not name or _true(entry.get("no_device")):
        return None
    source = str(entry.get("source_type") or "blank")
    if source == "blank" and str(entry.get("destination_type")) == "local":
        swap = entry.get("guest_format") == "swap"
        return Device(name, virtual="swap" if swap else "ephemeral0")
    os_id = entry.get(f"{source}_id") or entry.get("uuid") or ""
    return Device(
        name,
        source=source,
        os_id=str(os_id),
        size=_size(entry.get("volume_size")),
        deletes=_true(entry.get("delete_on_termination", True)),
        root=root,
        kind=str(entry.get("volume_type") or ""),
    )


def _version_1(entry: Mapping[str, Any]) -> Device | None:
    name = entry.get("device_name")
    if not isinstance(name, str) or not name or _true(entry.get("no_device")):
        return None
    virtual = entry.get("virtual_name")
    if isinstance(virtual, str) and virtual:
        return Device(name, virtual=virtual) if is_virtual(virtual) else None
    source = next((word for word in ("snapshot", "volume") if entry.get(f"{word}_id")), "blank")
    return Device(
        name,
        source=source,
        os_id=str(entry.get(f"{source}_id") or ""),
        size=_size(entry.get("volume_size")),
        deletes=_true(entry.get("delete_on_termination", True)),
    )


def _true(value: Any) -> bool:
    return value is True or str(value).lower() in ("true", "1")


def _size(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
