"""The steps by which an instance becomes an image, each of them safe to do twice.

Nova makes snapshots of all volumes and an image that lists them, within the
call.  What the request says of block devices is then written into that list
(F57): Nova itself takes no such wish.  CreateImage takes these steps at once
where the instance need not be stopped, and in a job where it must be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import bare
from trimaran.ec2.kinds.images.image_kind import MARK
from trimaran.ec2.kinds.images.image_reserve import discard
from trimaran.ec2.kinds.instances.launch_devices import as_property, device_of, invalid_devices
from trimaran.errors import TrimaranError

Entry = dict[str, Any]


@dataclass(frozen=True)
class Wish:
    """What a CreateImage request asks for; JSON, so that a job can keep it.

    Attributes:
        server: Nova's id of the instance.
        name: the image's.
        description: the image's, or "".
        devices: the request's block device mappings by bare device name.
        sources: (source type, OpenStack id) by the id that a device names.
        snapshot_tags: tags of the snapshots.
    """

    server: str
    name: str
    description: str = ""
    devices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    snapshot_tags: Mapping[str, str] = field(default_factory=dict)

    def noted(self) -> dict[str, Any]:
        """For a payload."""
        return asdict(self)


def snapshot(ctx: Context, wish: Wish, image_id: str) -> str:
    """Have Nova make the image, marked with the EC2 id that it is made for.

    Returns:
        Glance's id.

    Raises:
        TrimaranError: Nova's refusal.
        Unavailable: nobody knows whether there is an image.
    """
    metadata = {MARK: image_id}
    if wish.description:
        metadata["description"] = wish.description
    return ctx.user.compute.create_image(wish.server, {"name": wish.name, "metadata": metadata})


def images_made_for(ctx: Context, image_id: str) -> list[dict[str, Any]]:
    """The project's images that carry an EC2 id, oldest first."""
    query = {"owner": ctx.project_id, MARK: image_id, "visibility": "all"}
    found = [
        image
        for image in ctx.user.image.images(**query)
        if image.get("owner") == ctx.project_id and image.get(MARK) == image_id
    ]
    return sorted(found, key=lambda image: (str(image.get("created_at")), image["id"]))


def complete(ctx: Context, image: Mapping[str, Any], wish: Wish) -> None:
    """Bring the request's wishes into an image that Nova has made."""
    if wish.devices:
        _write_devices(ctx, image, wish)
    if wish.snapshot_tags:
        _tag_snapshots(ctx, ctx.user.image.image(image["id"]), wish.snapshot_tags)


def take_back(ctx: Context, os_id: str) -> None:
    """Delete an image that was not finished, with the snapshots that Nova made for it."""
    try:
        snapshots = [
            str(row.get("snapshot_id") or "") for row in _entries(ctx.user.image.image(os_id))
        ]
    except TrimaranError:
        snapshots = []
    discard(ctx.user, os_id)
    _delete_snapshots(ctx, snapshots)


def _entries(image: Mapping[str, Any]) -> list[Entry]:
    """The devices of an image that Nova has just made, in Nova's words."""
    listed = json.loads(image.get("block_device_mapping") or "[]")
    return [entry for entry in listed if isinstance(entry, dict)]


def _write_devices(ctx: Context, image: Mapping[str, Any], wish: Wish) -> None:
    kept: list[Entry] = []
    left_out: list[str] = []
    wanted = dict(wish.devices)
    sources = {name: (kind, os_id) for name, (kind, os_id) in wish.sources.items()}
    for device in _entries(image):
        entry = wanted.pop(bare(str(device.get("device_name") or "")), None)
        if entry is None:
            kept.append(device)
        elif entry.get("NoDevice") is not None:
            left_out.append(str(device.get("snapshot_id") or ""))
        else:
            kept.append(_merged(device, entry.get("Ebs") or {}))
    for entry in wanted.values():
        if entry.get("NoDevice") is None:
            kept.append(as_property(device_of(entry, None, False, {}, sources)))
    # First, since what is not in the list any more would not be found a second time.
    _delete_snapshots(ctx, left_out)
    patch = {"op": "replace", "path": "/block_device_mapping", "value": json.dumps(kept)}
    ctx.user.image.update_image(image["id"], [patch])


def _merged(device: Entry, ebs: Mapping[str, Any]) -> Entry:
    size = ebs.get("VolumeSize")
    if size is not None and size < int(device.get("volume_size") or 0):
        raise invalid_devices(
            f"The volume of device '{device.get('device_name')}' is smaller than its snapshot"
        )
    made = dict(device)
    if size is not None:
        made["volume_size"] = size
    if ebs.get("DeleteOnTermination") is not None:
        made["delete_on_termination"] = ebs["DeleteOnTermination"]
    if ebs.get("VolumeType"):
        made["volume_type"] = ebs["VolumeType"]
    return made


def _tag_snapshots(ctx: Context, image: Mapping[str, Any], tags: Mapping[str, str]) -> None:
    os_ids = [row["snapshot_id"] for row in _entries(image) if row.get("snapshot_id")]
    if not os_ids:
        return
    new = [NewItem("snap", os_id, ctx.project_id) for os_id in os_ids]

    def store(session: Any) -> None:
        items = queries.add_items(session, new, ids.mint)
        rows = [Tag(item.id, key, value) for item in items for key, value in tags.items()]
        tag_queries.set_tags(session, ctx.project_id, rows)

    ctx.db.write(store)


def _delete_snapshots(ctx: Context, os_ids: Sequence[str]) -> None:
    def bound(os_id: str) -> Any:
        def delete() -> None:
            try:
                ctx.user.volume.delete_snapshot(os_id)
            except TrimaranError:
                # It stays visible among the project's snapshots.
                return

        return delete

    gather(**{os_id: bound(os_id) for os_id in os_ids if os_id})
