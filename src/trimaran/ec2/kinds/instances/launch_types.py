"""Volume types in block device mappings: Cinder's go to Nova, EC2's own names are remembered.

A name that Cinder knows is a type of Cinder.  EC2's own names (``gp3``...) that
the operator made no type for mean Cinder's default type, as with CreateVolume;
Nova must not hear of them, but images and volumes are shown with them, since
Terraform compares what it reads with what it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import bare
from trimaran.ec2.kinds.volumes.volume_types import alias_of

#: In items of images and instances: EC2's own name of a volume type by bare device name.
NAMES = "volume_types"
#: In place of a device name that the hypervisor may change.
ROOT = "root"


def with_types(
    ctx: Context, entries: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    """Block device mappings with Cinder's types only ("" is its default), and EC2's own names.

    Args:
        ctx: the request.
        entries: as boto3 takes them, by bare device name.

    Returns:
        The entries, and EC2's own names by bare device name.

    Raises:
        EC2Error: ``InvalidParameterValue`` for a type that nobody knows.
    """
    made, names = dict(entries), {}
    asked = {
        name: kind
        for name, entry in entries.items()
        if (kind := (entry.get("Ebs") or {}).get("VolumeType"))
    }
    known = {row["name"] for row in ctx.user.volume.volume_types()} if asked else set()
    for name, kind in asked.items():
        if alias := alias_of(kind, known, "BlockDeviceMapping.Ebs.VolumeType"):
            names[name] = alias
            made[name] = {**entries[name], "Ebs": {**entries[name]["Ebs"], "VolumeType": ""}}
    return made, names


def names_of_launch(
    image: Mapping[str, str], asked: Mapping[str, str], root: str | None
) -> dict[str, str]:
    """The names that hold for the volumes of an instance, the root device's under `ROOT`.

    Args:
        image: the image's, by bare device name.
        asked: the launch's, likewise; they win.
        root: the image's root device.
    """
    return {
        ROOT if root and name == bare(root) else name: kind
        for name, kind in {**image, **asked}.items()
    }


def name_of_volume(
    data: Mapping[str, Any], server: Mapping[str, Any], device: str | None
) -> str | None:
    """EC2's own name of the type of a volume that Nova made with an instance.

    Args:
        data: the instance's blob.
        server: Nova's JSON.
        device: where the volume is attached, as Cinder says.
    """
    names = data.get(NAMES)
    if not names or not device:
        return None
    root = server.get("OS-EXT-SRV-ATTR:root_device_name") or ""
    found: str | None = names.get(ROOT if bare(device) == bare(root) else bare(device))
    return found
