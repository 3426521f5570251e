"""CreateImage of an instance that is stopped, or is not to be stopped (spec ec2.md 5.1, step 3).

Nova makes snapshots of all volumes and an image that lists them, within the
call.  What the request says of block devices is then written into that list
(F57): Nova itself takes no such wish.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds import instance_states as states
from trimaran.ec2.kinds.image_devices import bare
from trimaran.ec2.kinds.image_kind import MARK
from trimaran.ec2.kinds.image_reserve import discard, make_image
from trimaran.ec2.kinds.instance_options import one_instance
from trimaran.ec2.kinds.instance_view import Instance
from trimaran.ec2.kinds.launch_devices import (
    as_property,
    by_device,
    device_of,
    invalid_devices,
    sources_of,
)
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, unsupported
from trimaran.errors import BadRequest, Conflict, NotFound, TrimaranError

Request = Mapping[str, Any]
Entry = dict[str, Any]

_LONGEST_NAME = 255


def create_image(ctx: Context, request: Request) -> dict[str, Any]:
    """Make an image of an instance whose root device is a volume."""
    name = request.get("Name")
    if not name:
        raise missing("Name")
    if len(name) > _LONGEST_NAME:
        raise invalid_value("Name", name, f"Names have at most {_LONGEST_NAME} characters.")
    if request.get("SnapshotLocation") not in (None, "", "regional"):
        raise unsupported("Snapshots are kept in the region only.")
    tags = tag_specifications(request.get("TagSpecifications"), ("image", "snapshot"))
    entries = by_device(request.get("BlockDeviceMappings") or ())
    instance = one_instance(ctx, request.get("InstanceId"), volumes=True)
    _check(instance, bool(request.get("NoReboot")))
    _check_devices(instance, entries)
    sources = sources_of(ctx, entries.values())
    ctx.commit_point()
    body = {"name": name, "metadata": {}}
    if request.get("Description"):
        body["metadata"]["description"] = request["Description"]

    def create(image_id: str) -> Mapping[str, Any]:
        os_id = _snapshot(ctx, instance, body, image_id)
        try:
            image = ctx.user.image.image(os_id)
            if entries:
                _write_devices(ctx, image, entries, sources)
            _tag_snapshots(ctx, image, tags.get("snapshot", {}))
        except TrimaranError:
            _take_back(ctx, os_id)
            raise
        return image

    made = make_image(
        ctx, create, description=request.get("Description") or "", tags=tags.get("image")
    )
    return {"ImageId": made}


def _check(instance: Instance, as_it_is: bool) -> None:
    """Whether an image can be made of the instance now.

    Raises:
        EC2Error: ``InvalidParameterValue`` when its root is no volume,
            ``IncorrectState`` when it neither runs nor is stopped.
    """
    if instance.pair.found is None:
        raise _wrong_state(instance)
    if instance.shown().get("RootDeviceType") != "ebs":
        raise invalid_value("instanceId", instance.id, "Instance does not have a volume as root.")
    state = states.vm_state(instance.server)
    if as_it_is or state == "stopped":
        return
    if state != "active":
        raise _wrong_state(instance)
    raise unsupported(
        "Making an image of a running instance with a reboot is not supported: "
        "stop the instance before, or set NoReboot."
    )


def _wrong_state(instance: Instance) -> EC2Error:
    return EC2Error("IncorrectState", f"Instance '{instance.id}' is neither running nor stopped.")


def _check_devices(instance: Instance, entries: Mapping[str, Mapping[str, Any]]) -> None:
    root = bare(instance.shown().get("RootDeviceName") or "")
    there = {bare(row["DeviceName"]) for row in instance.shown()["BlockDeviceMappings"]}
    for name, entry in entries.items():
        ebs = entry.get("Ebs") or {}
        if name == root and entry.get("NoDevice") is not None:
            raise invalid_devices("The root device cannot be left out")
        if name in there and (ebs.get("SnapshotId") or entry.get("VirtualName")):
            raise invalid_devices(f"The device '{entry['DeviceName']}' is a volume of the instance")


def _snapshot(ctx: Context, instance: Instance, body: Mapping[str, Any], image_id: str) -> str:
    metadata = {**body["metadata"], MARK: image_id}
    try:
        return ctx.user.compute.create_image(instance.server["id"], {**body, "metadata": metadata})
    except NotFound as error:
        raise ids.missing_ids([instance.id]) from error
    except Conflict as error:
        raise _wrong_state(instance) from error
    except BadRequest as error:
        raise invalid_value("instanceId", instance.id, "No image can be made of it.") from error


def _entries(image: Mapping[str, Any]) -> list[Entry]:
    """The devices of an image that Nova has just made, in Nova's words."""
    listed = json.loads(image.get("block_device_mapping") or "[]")
    return [entry for entry in listed if isinstance(entry, dict)]


def _write_devices(
    ctx: Context,
    image: Mapping[str, Any],
    entries: Mapping[str, Mapping[str, Any]],
    sources: Mapping[str, tuple[str, str]],
) -> None:
    """Bring the wishes of a request into an image's list of devices."""
    kept: list[Entry] = []
    left_out: list[str] = []
    wanted = dict(entries)
    for device in _entries(image):
        wish = wanted.pop(bare(str(device.get("device_name") or "")), None)
        if wish is None:
            kept.append(device)
        elif wish.get("NoDevice") is not None:
            left_out.append(str(device.get("snapshot_id") or ""))
        else:
            kept.append(_merged(device, wish.get("Ebs") or {}))
    for wish in wanted.values():
        if wish.get("NoDevice") is None:
            kept.append(as_property(device_of(wish, None, False, {}, sources)))
    patch = {"op": "replace", "path": "/block_device_mapping", "value": json.dumps(kept)}
    ctx.user.image.update_image(image["id"], [patch])
    _delete_snapshots(ctx, left_out)


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
    return made


def _tag_snapshots(ctx: Context, image: Mapping[str, Any], tags: Mapping[str, str]) -> None:
    os_ids = [row["snapshot_id"] for row in _entries(image) if row.get("snapshot_id")]
    if not (tags and os_ids):
        return
    new = [NewItem("snap", os_id, ctx.project_id) for os_id in os_ids]

    def store(session: Any) -> None:
        items = queries.add_items(session, new, ids.mint)
        rows = [Tag(item.id, key, value) for item in items for key, value in tags.items()]
        tag_queries.set_tags(session, ctx.project_id, rows)

    ctx.db.write(store)


def _take_back(ctx: Context, os_id: str) -> None:
    """Delete an image that was not finished, with the snapshots that Nova made for it."""
    try:
        snapshots = [
            str(row.get("snapshot_id") or "") for row in _entries(ctx.user.image.image(os_id))
        ]
    except TrimaranError:
        snapshots = []
    discard(ctx.user, os_id)
    _delete_snapshots(ctx, snapshots)


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
