"""Volumes: describe and delete (spec ec2.md 3.15)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume_attachments import shown_attachments
from trimaran.ec2.kinds.volumes.volume_kind import Volumes
from trimaran.ec2.kinds.volumes.volume_view import body_of, shown_volume
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, NotFound

Request = Mapping[str, Any]

#: Seconds that a deletion waits for snapshots that are being deleted themselves: clients
#: delete one after the other (Terraform does), and EC2's volumes do not need their snapshots.
WAIT = 30.0
LOOK_EVERY = 0.5

FILTERS: filters.Table = {
    "attachment.attach-time": "Attachments.AttachTime",
    "attachment.delete-on-termination": "Attachments.DeleteOnTermination",
    "attachment.device": "Attachments.Device",
    "attachment.instance-id": "Attachments.InstanceId",
    "attachment.status": "Attachments.State",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "client-token": "ClientToken",
    "create-time": "CreateTime",
    "encrypted": "Encrypted",
    "fast-restored": "FastRestored",
    "multi-attach-enabled": "MultiAttachEnabled",
    "owner-id": "OwnerId",
    "size": "Size",
    "snapshot-id": "SnapshotId",
    "status": "State",
    "volume-id": "VolumeId",
    "volume-type": "VolumeType",
}


def describe_volumes(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's volumes."""
    page = paging.Page(ctx.action, request, ids="VolumeIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("VolumeIds"), "volumeId", "vol")
    view = reconcile(ctx, Volumes(), wanted or None)
    attached = shown_attachments(ctx, view)
    shown = []
    for pair in view.pairs:
        row = shown_volume(view, pair, attached[pair.item.id])
        if not matches or matches({**row, "ClientToken": pair.item.data.get("client_token")}):
            shown.append(row)
    rows, token = page.slice(shown, key=lambda row: row["VolumeId"])
    return {"Volumes": rows, "NextToken": token}


def delete_volume(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a volume; its item goes when Cinder is done, so that waiters see ``deleting``.

    Cinder keeps a volume as long as it has snapshots: those that are on their
    way out are waited for.
    """
    pair = one_volume(ctx, request.get("VolumeId"))
    state = states.state_of(body_of(pair))
    if state == states.IN_USE:
        raise in_use(pair)
    if pair.found is None or state == states.CREATING:
        raise EC2Error("IncorrectState", f"The volume '{pair.item.id}' is still being made.")
    ctx.commit_point()
    if state == states.DELETING:
        return {}
    deadline = time.monotonic() + WAIT
    while True:
        try:
            with contextlib.suppress(NotFound):
                ctx.user.volume.delete_volume(pair.found.os_id)
        except (BadRequest, Conflict) as error:
            refusal = _kept(ctx, pair, waited=time.monotonic() > deadline)
            if refusal is not None:
                raise refusal from error
            time.sleep(LOOK_EVERY)
        else:
            return {}


def one_volume(ctx: Context, volume_id: str | None) -> Pair:
    """The volume that a request names.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, ``InvalidVolume.NotFound``.
    """
    if not volume_id:
        raise missing("VolumeId")
    ids.check_id(volume_id, "volumeId", "vol")
    [pair] = reconcile(ctx, Volumes(), [volume_id]).pairs
    return pair


def in_use(pair: Pair) -> EC2Error:
    """The error for a volume that an instance has."""
    return EC2Error("VolumeInUse", f"The volume '{pair.item.id}' is attached to an instance.")


def _kept(ctx: Context, pair: Pair, *, waited: bool) -> EC2Error | None:
    """Why Cinder refuses to delete a volume that is not attached, as far as can be found out.

    Returns:
        None when its last snapshots are being deleted, so that it can be tried again.
    """
    volume = ctx.user.volume.volume(pair.item.os_id or "")
    if states.state_of(volume) == states.IN_USE:
        return in_use(pair)
    snapshots = ctx.user.volume.snapshots(volume_id=pair.item.os_id)
    if snapshots and all(states.status_of(row) == states.DELETING for row in snapshots):
        if not waited:
            return None
        # By the code that clients try again at.
        return EC2Error(
            "VolumeInUse", f"Snapshots of the volume '{pair.item.id}' are still being deleted."
        )
    if snapshots:
        return EC2Error(
            "IncorrectState",
            f"The volume '{pair.item.id}' has snapshots, which this cloud keeps in it; "
            "delete them first.",
        )
    return EC2Error(
        "IncorrectState", f"The volume '{pair.item.id}' is not in a state to be deleted."
    )
