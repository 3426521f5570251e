"""RegisterImage (spec ec2.md 3.5).

An image of snapshots has no data in Glance: it is the list of its block
devices, of which the root device is made from a snapshot.  The others have
data, which comes from a location (`image_bundle`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trimaran.cloud import gather
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_bundle import location_of, register_bundle, register_file
from trimaran.ec2.kinds.images.image_devices import bare
from trimaran.ec2.kinds.images.image_kind import LONGEST_TEXT, MARK, Images
from trimaran.ec2.kinds.images.image_reserve import discard, make_image
from trimaran.ec2.kinds.instances.launch_devices import (
    as_property,
    by_device,
    device_of,
    invalid_devices,
    sources_of,
)
from trimaran.ec2.kinds.instances.launch_types import NAMES, with_types
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol.errors import (
    EC2Error,
    check_length,
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)
from trimaran.ec2.reconcile import reconcile
from trimaran.errors import NotFound, TrimaranError

Request = Mapping[str, Any]

#: EC2's architectures in Glance's words.
_ARCHITECTURES = {"x86_64": "x86_64", "i386": "i686", "arm64": "aarch64"}
_FIRMWARE = {"legacy-bios": "bios", "uefi": "uefi"}
_REFUSED = ("BillingProducts", "TpmSupport", "UefiData", "ImdsSupport")


def register_image(ctx: Context, request: Request) -> dict[str, Any]:
    """Make an image of snapshots, of a bundle in S3, or of a file that Glance fetches."""
    name, root = request.get("Name"), request.get("RootDeviceName")
    # Upstream's rule, for clients that know no ImageLocation.
    location = request.get("ImageLocation") or ("" if root else name)
    if not location and not root:
        raise invalid_combination("ImageLocation or RootDeviceName is needed.")
    if not location and not name:
        raise missing("Name")
    for parameter in _REFUSED:
        if request.get(parameter):
            raise unsupported(f"The parameter {parameter} is not supported.")
    tags = tag_specifications(request.get("TagSpecifications"), ("image",)).get("image")
    description = request.get("Description") or ""
    check_length("Name", name or "", LONGEST_TEXT)
    check_length("Description", description, LONGEST_TEXT)
    entries, names = with_types(ctx, by_device(request.get("BlockDeviceMappings")))
    noted = {
        "description": description,
        NAMES: names,
        # Nothing here depends on these; they are shown to those who compare.
        "ena_support": request.get("EnaSupport"),
        "sriov_net_support": request.get("SriovNetSupport"),
    }
    body = {"name": name or location, "visibility": "private", **_properties(ctx, request)}
    if not location:
        devices = _devices(ctx, root or "", entries)
        return {"ImageId": _register_snapshots(ctx, root or "", devices, body, noted, tags)}
    place = location_of(location)
    body |= {"image_location": location, **_brought(ctx, root or "", entries)}
    register = register_bundle if place.bucket else register_file
    return {"ImageId": register(ctx, place, body, noted, tags)}


def _register_snapshots(
    ctx: Context,
    root: str,
    devices: list[dict[str, Any]],
    body: Mapping[str, Any],
    noted: Mapping[str, Any],
    tags: Mapping[str, str] | None,
) -> str:
    ctx.commit_point()
    full = {
        "architecture": "x86_64",
        **body,
        "disk_format": "raw",
        "container_format": "bare",
        **_device_properties(root, devices),
    }

    def create(image_id: str) -> Mapping[str, Any]:
        image = ctx.user.image.create_image({**full, MARK: image_id})
        try:
            ctx.user.image.upload_image(image["id"], b"")
        except TrimaranError:
            discard(ctx.user, image["id"])
            raise
        return image

    return make_image(ctx, create, noted=noted, tags=tags)


def _brought(ctx: Context, root: str, entries: dict[str, Mapping[str, Any]]) -> dict[str, str]:
    """Root device and further devices of an image with data of its own."""
    if (entries.pop(bare(root), {}).get("Ebs") or {}).get("SnapshotId"):
        raise invalid_combination("The root device comes from ImageLocation or from a snapshot.")
    sources = sources_of(ctx, entries.values())
    _sizes(ctx, sources)
    devices = [as_property(device_of(row, None, False, {}, sources)) for row in entries.values()]
    return _device_properties(root, devices)


def _device_properties(root: str, devices: list[dict[str, Any]]) -> dict[str, str]:
    made = {"root_device_name": root} if root else {}
    if devices:
        made |= {"bdm_v2": "True", "block_device_mapping": json.dumps(devices)}
    return made


def _properties(ctx: Context, request: Request) -> dict[str, str]:
    made: dict[str, str] = {}
    architecture = request.get("Architecture")
    if architecture:
        if architecture not in _ARCHITECTURES:
            raise invalid_value("Architecture", architecture)
        made["architecture"] = _ARCHITECTURES[architecture]
    if request.get("Description"):
        made["description"] = request["Description"]
    mode = request.get("BootMode")
    if mode:
        if mode not in _FIRMWARE:
            raise unsupported(f"The boot mode {mode[:64]} is not supported.")
        made["hw_firmware_type"] = _FIRMWARE[mode]
    for parameter, field, prefix in (
        ("KernelId", "kernel_id", "aki"),
        ("RamdiskId", "ramdisk_id", "ari"),
    ):
        if request.get(parameter):
            item_id = ids.check_id(request[parameter], parameter[0].lower() + parameter[1:], prefix)
            [pair] = reconcile(ctx, Images(), [item_id]).pairs
            if pair.found is None:
                raise ids.missing_ids([item_id])
            made[field] = pair.found.os_id
    return made


def _devices(
    ctx: Context, root: str, entries: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The devices as Nova reads them from an image's property (version 2)."""
    ebs = (entries.get(bare(root)) or {}).get("Ebs") or {}
    if not ebs.get("SnapshotId"):
        raise invalid_devices(f"The root device '{root}' has to be mapped to a snapshot")
    sources = sources_of(ctx, entries.values())
    sizes = _sizes(ctx, sources)
    made = []
    for name, entry in entries.items():
        device = device_of(entry, None, name == bare(root), {}, sources)
        if device.get("no_device"):
            continue
        source = (entry.get("Ebs") or {}).get("SnapshotId")
        if source:
            size = device.setdefault("volume_size", sizes[source])
            if size < sizes[source]:
                raise invalid_devices(
                    f"The volume of device '{entry['DeviceName']}' is smaller than its snapshot "
                    f"of {sizes[source]} GiB"
                )
            as_property(device)
        made.append(device)
    return made


def _sizes(ctx: Context, sources: Mapping[str, tuple[str, str]]) -> dict[str, int]:
    """GiB of the snapshots and volumes by their EC2 ids; their states are looked at as well."""

    def look(item_id: str) -> Any:
        kind, os_id = sources[item_id]

        def ask() -> int:
            cinder = ctx.user.volume
            try:
                row = cinder.snapshot(os_id) if kind == "snapshot" else cinder.volume(os_id)
            except NotFound as error:
                raise ids.missing_ids([item_id]) from error
            if row.get("status") not in ("available", "in-use"):
                raise EC2Error("IncorrectState", f"'{item_id}' is not available.")
            return int(row["size"])

        return ask

    return gather(**{item_id: look(item_id) for item_id in sources})
