"""CreateImage (spec ec2.md 5.1).

An instance that is stopped, or is not to be stopped, becomes an image within
the request.  One that runs is stopped, made into an image and started again by
a job (`trimaran.ec2.jobs.create_image`), while the image is shown as pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import work_jobs
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images import image_snapshot
from trimaran.ec2.kinds.images.image_devices import bare
from trimaran.ec2.kinds.images.image_kind import LONGEST_TEXT
from trimaran.ec2.kinds.images.image_reserve import make_image, reserve_item
from trimaran.ec2.kinds.images.image_snapshot import Wish
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_options import one_instance
from trimaran.ec2.kinds.instances.instance_view import Instance
from trimaran.ec2.kinds.instances.launch_devices import (
    by_device,
    device_of,
    invalid_devices,
    sources_of,
)
from trimaran.ec2.kinds.instances.launch_types import with_types
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.on_behalf import caller
from trimaran.ec2.protocol.errors import EC2Error, check_length, invalid_value, unsupported
from trimaran.errors import BadRequest, Conflict, NotFound, TrimaranError

Request = Mapping[str, Any]


def create_image(ctx: Context, request: Request) -> dict[str, Any]:
    """Make an image of an instance whose root device is a volume."""
    name = request.get("Name") or ""
    description = request.get("Description") or ""
    check_length("Name", name, LONGEST_TEXT)
    check_length("Description", description, LONGEST_TEXT)
    if request.get("SnapshotLocation") not in (None, "", "regional"):
        raise unsupported("Snapshots are kept in the region only.")
    if request.get("BootModeOverride"):
        raise unsupported("An image boots as the instance that it was made of.")
    tags = tag_specifications(request.get("TagSpecifications"), ("image", "snapshot"))
    devices, _ = with_types(ctx, by_device(request.get("BlockDeviceMappings")))
    instance = one_instance(ctx, request.get("InstanceId"), volumes=True)
    must_stop = _must_stop(instance, bool(request.get("NoReboot")))
    sources = sources_of(ctx, devices.values())
    _check_devices(instance, devices, sources)
    wish = Wish(
        server=instance.server["id"],
        name=name or _name_of(instance),
        description=description,
        devices=devices,
        sources=sources,
        snapshot_tags=tags.get("snapshot", {}),
    )
    make = _begin if must_stop else _make_now
    return {"ImageId": make(ctx, instance, wish, tags.get("image", {}))}


def _name_of(instance: Instance) -> str:
    """Upstream's name for an image that the request gives none (spec ec2.md 5.1)."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"image of {instance.server['id']} at {now}"


def _must_stop(instance: Instance, as_it_is: bool) -> bool:
    """Whether the instance is to be stopped for the image.

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
        return False
    # What Nova would refuse to stop is refused now; the job has nobody to tell.
    if state != "active" or states.task_state(instance.server) or instance.server.get("locked"):
        raise _wrong_state(instance)
    return True


def _wrong_state(instance: Instance) -> EC2Error:
    return EC2Error("IncorrectState", f"Instance '{instance.id}' is neither running nor stopped.")


def _check_devices(
    instance: Instance,
    devices: Mapping[str, Mapping[str, Any]],
    sources: Mapping[str, tuple[str, str]],
) -> None:
    root = bare(instance.shown().get("RootDeviceName") or "")
    known = instance.volumes_by_id
    volumes = {
        bare(row["DeviceName"]): instance.of.volumes[known[row["Ebs"]["VolumeId"]]]
        for row in instance.shown()["BlockDeviceMappings"]
        if row["Ebs"]["VolumeId"] in known
    }
    for name, entry in devices.items():
        ebs = entry.get("Ebs") or {}
        if name == root and entry.get("NoDevice") is not None:
            raise invalid_devices("The root device cannot be left out")
        if name not in volumes:
            device_of(entry, None, False, {}, sources)
            continue
        if ebs.get("SnapshotId") or entry.get("VirtualName"):
            raise invalid_devices(f"The device '{entry['DeviceName']}' is a volume of the instance")
        size = ebs.get("VolumeSize")
        if size is not None and size < int(volumes[name].get("size") or 0):
            raise invalid_devices(
                f"The volume of device '{entry['DeviceName']}' is smaller than its snapshot"
            )


def _make_now(ctx: Context, instance: Instance, wish: Wish, tags: Mapping[str, str]) -> str:
    ctx.commit_point()

    def create(image_id: str) -> Mapping[str, Any]:
        os_id = _snapshot(ctx, instance, wish, image_id)
        try:
            image = ctx.user.image.image(os_id)
            image_snapshot.complete(ctx, image, wish)
        except TrimaranError:
            image_snapshot.take_back(ctx, os_id)
            raise
        return image

    return make_image(ctx, create, noted={"description": wish.description}, tags=tags)


def _snapshot(ctx: Context, instance: Instance, wish: Wish, image_id: str) -> str:
    try:
        return image_snapshot.snapshot(ctx, wish, image_id)
    except NotFound as error:
        raise ids.missing_ids([instance.id]) from error
    except Conflict as error:
        raise _wrong_state(instance) from error
    except BadRequest as error:
        raise invalid_value("instanceId", instance.id, "No image can be made of it.") from error


def _begin(ctx: Context, instance: Instance, wish: Wish, tags: Mapping[str, str]) -> str:
    """Record the item and the job that makes its image; the answer does not wait for it."""
    person = caller(ctx)
    ctx.commit_point()
    data: dict[str, Any] = {"is_public": False}
    if wish.description:
        data["description"] = wish.description

    def enqueue(session: Session, image_id: str) -> None:
        payload = {**person.noted(), "item": image_id, "wish": wish.noted()}
        job_id = work.enqueue(session, journal.CREATE_IMAGE, payload, key=wish.server)
        job = work_jobs.show(session, job_id)
        if job is None or job.payload["item"] != image_id:
            raise EC2Error("IncorrectState", f"An image of '{instance.id}' is being made.")

    item, _ = reserve_item(ctx, "ami", data, tags, enqueue)
    return item.id
