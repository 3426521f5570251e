"""Snapshots: create, describe, delete, and what Cinder has no way to do (spec ec2.md 3.12)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2_tokens import ClientToken
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import devices
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.volumes.snapshot_kind import ENCRYPTED, Snapshots
from trimaran.ec2.kinds.volumes.snapshot_view import shown_snapshot
from trimaran.ec2.kinds.volumes.volume_kind import Volumes
from trimaran.ec2.kinds.volumes.volume_reserve import Wanted, make
from trimaran.ec2.kinds.volumes.volume_states import status_of
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, check_length, missing, unsupported
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, NotFound

Request = Mapping[str, Any]

LONGEST_DESCRIPTION = 255

FILTERS: filters.Table = {
    "description": "Description",
    "encrypted": "Encrypted",
    "owner-alias": "OwnerAlias",
    "owner-id": "OwnerId",
    "progress": "Progress",
    "snapshot-id": "SnapshotId",
    "start-time": "StartTime",
    "status": "State",
    "storage-tier": "StorageTier",
    "volume-id": "VolumeId",
    "volume-size": "VolumeSize",
}
TIER_FILTERS: filters.Table = {
    "last-tiering-operation": "LastTieringOperationStatus",
    "snapshot-id": "SnapshotId",
    "volume-id": "VolumeId",
}

#: Cinder's states of a volume that a snapshot can be taken in (spec ec2.md 3.12).
_READY = frozenset({"available", "in-use", "attaching", "detaching"})


def create_snapshot(ctx: Context, request: Request) -> dict[str, Any]:
    """Take a snapshot of a volume, attached or not."""
    if not request.get("VolumeId"):
        raise missing("VolumeId")
    if request.get("OutpostArn") or request.get("Location") == "local":
        raise unsupported("Snapshots are kept in the region only.")
    description = request.get("Description") or ""
    check_length("Description", description, LONGEST_DESCRIPTION)
    tags = tag_specifications(request.get("TagSpecifications"), ["snapshot"]).get("snapshot", {})
    volume_id = ids.check_id(request["VolumeId"], "volumeId", "vol")
    [source] = reconcile(ctx, Volumes(), [volume_id]).pairs
    if status_of(source.body) not in _READY:
        raise _not_ready(volume_id)
    ctx.commit_point()
    encrypted = bool(source.body.get("encrypted"))
    body = {"volume_id": source.body["id"], "description": description, "force": True}
    draft = {
        "status": "creating",
        "size": source.body.get("size"),
        "description": description,
        "created_at": ctx.now.replace(tzinfo=None).isoformat(),
    }
    done = make(
        ctx,
        Wanted("snap", draft, {"volume_id": volume_id, ENCRYPTED: encrypted}, tags),
        create=_creator(ctx, body, volume_id),
        find=lambda name: ctx.user.volume.snapshots(name=name),
    )
    # Without a client token no other request can have been first.
    assert not isinstance(done, ClientToken)
    return shown_snapshot(*done, encrypted=encrypted)


def describe_snapshots(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's snapshots; there are no others, since Cinder shares none."""
    page = paging.Page(ctx.action, request, ids="SnapshotIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("SnapshotIds"), "snapshotId", "snap")
    kind = Snapshots()
    view = reconcile(ctx, kind, wanted or None)
    shown = [
        shown_snapshot(view, pair, encrypted=kind.is_encrypted(pair))
        for pair in view.pairs
        if _is_mine(request.get("OwnerIds"), ctx.project_id)
        and _is_mine(request.get("RestorableByUserIds"), ctx.project_id)
    ]
    rows, token = page.slice(matches.apply(shown), key=lambda row: row["SnapshotId"])
    return {"Snapshots": rows, "NextToken": token}


def describe_snapshot_tier_status(ctx: Context, request: Request) -> dict[str, Any]:
    """The storage tier of the project's snapshots: there is one tier."""
    page = paging.Page(ctx.action, request)
    matches = filters.compile_filters(request.get("Filters"), TIER_FILTERS)
    kind = Snapshots()
    view = reconcile(ctx, kind)
    rows = []
    for pair in view.pairs:
        full = shown_snapshot(view, pair, encrypted=kind.is_encrypted(pair))
        names = ("SnapshotId", "VolumeId", "OwnerId", "StorageTier", "Tags")
        row = {name: full[name] for name in names if name in full}
        rows.append({**row, "Status": full["State"]})
    rows, token = page.slice(matches.apply(rows), key=lambda row: row["SnapshotId"])
    return {"SnapshotTierStatuses": rows, "NextToken": token}


def delete_snapshot(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a snapshot that no image of the project needs; its item goes when Cinder is done."""
    pair = one_snapshot(ctx, request.get("SnapshotId"))
    item_id = pair.item.id
    if pair.found is None:
        raise EC2Error("IncorrectState", f"The snapshot '{item_id}' is still being made.")
    user = _image_with(ctx, pair.found.os_id)
    if user:
        raise EC2Error(
            "InvalidSnapshot.InUse", f"The snapshot {item_id} is currently in use by {user}"
        )
    ctx.commit_point()
    if status_of(pair.body) == "deleting":
        return {}
    try:
        with contextlib.suppress(NotFound):
            ctx.user.volume.delete_snapshot(pair.found.os_id)
    except (BadRequest, Conflict) as error:
        raise EC2Error(
            "InvalidSnapshot.InUse", f"The snapshot {item_id} is in use and cannot be deleted."
        ) from error
    return {}


def copy_snapshot(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused: Cinder copies no snapshot, and there is one region."""
    source = request.get("SourceSnapshotId")
    if not request.get("SourceRegion"):
        raise missing("SourceRegion")
    one_snapshot(ctx, source, parameter="SourceSnapshotId")
    raise unsupported("Copying of snapshots is not supported by this cloud.")


def one_snapshot(ctx: Context, snapshot_id: str | None, *, parameter: str = "SnapshotId") -> Pair:
    """The snapshot that a request names.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, ``InvalidSnapshot.NotFound``.
    """
    if not snapshot_id:
        raise missing(parameter)
    ids.check_id(snapshot_id, "snapshotId", "snap")
    [pair] = reconcile(ctx, Snapshots(), [snapshot_id]).pairs
    return pair


def _is_mine(wanted: list[str] | None, project_id: str) -> bool:
    """Whether a list of owners (or of who may restore) lets the project's own through."""
    return not wanted or not {"self", project_id}.isdisjoint(wanted)


def _creator(
    ctx: Context, body: Mapping[str, Any], volume_id: str
) -> Callable[[str], Mapping[str, Any]]:
    def create(name: str) -> Mapping[str, Any]:
        try:
            return ctx.user.volume.create_snapshot({**body, "name": name})
        except NotFound as error:
            raise ids.missing_ids([volume_id]) from error
        except (BadRequest, Conflict) as error:
            raise _not_ready(volume_id) from error

    return create


def _not_ready(volume_id: str) -> EC2Error:
    return EC2Error(
        "IncorrectState",
        f"The volume '{volume_id}' is not in a state in which a snapshot can be taken.",
    )


def _image_with(ctx: Context, os_id: str) -> str:
    """An image of the project that would be broken without the snapshot, or ""."""
    users = [
        image["id"]
        for image in ctx.user.image.images(owner=ctx.project_id)
        if any(device.source == "snapshot" and device.os_id == os_id for device in devices(image))
    ]
    if not users:
        return ""
    known = ctx.db.read(lambda s: queries.by_os_ids(s, users[:1]))
    return known[users[0]].id if users[0] in known else "an image"
