"""CreateVolume (spec ec2.md 3.15): empty, or from a snapshot.

All that can be wrong is found out before anything is made; a client token
makes one volume however often it is sent (F53).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.cloud import gather
from trimaran.db.queries.ec2_tokens import ClientToken
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.availability_zone import zones
from trimaran.ec2.kinds.client_token import check_token, fingerprint
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.volumes.snapshot_kind import Snapshots
from trimaran.ec2.kinds.volumes.snapshot_view import COMPLETED, state_of
from trimaran.ec2.kinds.volumes.volume_attachments import shown_attachments
from trimaran.ec2.kinds.volumes.volume_kind import Volumes
from trimaran.ec2.kinds.volumes.volume_reserve import Wanted, known_token, make, same_request
from trimaran.ec2.kinds.volumes.volume_types import choose_type, names_type, refuse_promises
from trimaran.ec2.kinds.volumes.volume_view import shown_volume
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, not_found
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, NotFound

Request = Mapping[str, Any]

#: GiB; AWS's largest volume.  Cinder's own limits come out of its answer.
LARGEST = 65536


def create_volume(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a volume."""
    refuse_promises(request)
    size = request.get("Size")
    if size is not None:
        check_size(size)
    elif not request.get("SnapshotId"):
        raise missing("Size")
    tags = tag_specifications(request.get("TagSpecifications"), ["volume"]).get("volume", {})
    token, asked = check_token(request), fingerprint(request)
    earlier = known_token(ctx, token, asked)
    if earlier:
        return _replay(ctx, earlier)
    snapshots = Snapshots()
    source = _source(ctx, snapshots, request.get("SnapshotId"))
    if source is not None:
        size = _large_enough(size, source)
    encrypted = source is not None and snapshots.is_encrypted(source)
    zone = request.get("AvailabilityZone") or request.get("AvailabilityZoneId") or None
    thunks: dict[str, Callable[[], Any]] = {"zones": ctx.user.volume.zones} if zone else {}
    if names_type(request):
        thunks["types"] = ctx.user.volume.volume_types
    seen = gather(**thunks)
    if zone:
        _check_zone(ctx, zone, seen["zones"])
    choice = choose_type(ctx, request, seen.get("types", []), encrypted=encrypted)
    ctx.commit_point()
    body: dict[str, Any] = {"size": size}
    for name, value in (("availability_zone", zone), ("volume_type", choice.name)):
        if value:
            body[name] = value
    if source is not None:
        body["snapshot_id"] = source.item.os_id
    draft = {
        **body,
        "status": "creating",
        "encrypted": encrypted or bool(request.get("Encrypted")),
        "multiattach": bool(request.get("MultiAttachEnabled")),
        "created_at": ctx.now.replace(tzinfo=None).isoformat(),
    }
    data = {
        **({"client_token": token} if token else {}),
        **({"snapshot_id": source.item.id} if source is not None else {}),
        **choice.noted(None),
    }
    done = make(
        ctx,
        Wanted("vol", draft, data, tags, token, asked),
        create=_creator(ctx, body),
        find=lambda name: ctx.user.volume.volumes(name=name),
        learnt=lambda row: choice.noted(row.get("volume_type")),
    )
    if isinstance(done, ClientToken):
        return _replay(ctx, same_request(done, asked))
    return shown_volume(*done)


def check_size(size: int) -> None:
    """A size in GiB that a volume can have.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    if not 1 <= size <= LARGEST:
        raise invalid_value("Size", size, f"Expecting a value between 1 and {LARGEST}.")


def _replay(ctx: Context, volume_id: str) -> dict[str, Any]:
    """The volume of an earlier request with the same token, as it is now."""
    view = reconcile(ctx, Volumes(), [volume_id])
    attached = shown_attachments(ctx, view)
    return shown_volume(view, view.pairs[0], attached[volume_id])


def _source(ctx: Context, kind: Snapshots, snapshot_id: str | None) -> Pair | None:
    if not snapshot_id:
        return None
    ids.check_id(snapshot_id, "snapshotId", "snap")
    [pair] = reconcile(ctx, kind, [snapshot_id]).pairs
    if state_of(pair) != COMPLETED:
        raise EC2Error("IncorrectState", f"The snapshot '{snapshot_id}' is not completed.")
    return pair


def _large_enough(size: int | None, source: Pair) -> int:
    least = int(source.body.get("size") or 1)
    if size is not None and size < least:
        raise invalid_value(
            "Size", size, f"The snapshot '{source.item.id}' needs at least {least} GiB."
        )
    return size or least


def _check_zone(ctx: Context, name: str, found: list[dict[str, Any]]) -> None:
    """A zone of Cinder's; or one of Nova's, which Cinder may be configured to take as well."""
    usable = {row["zoneName"] for row in found if row["zoneState"]["available"]}
    if name not in usable and name not in {zone["ZoneName"] for zone in zones(ctx)}:
        raise _unknown_zone(name)


def _unknown_zone(name: str) -> EC2Error:
    return not_found("InvalidAvailabilityZone.NotFound", "availability zone", [name])


def _creator(ctx: Context, body: Mapping[str, Any]) -> Callable[[str], Mapping[str, Any]]:
    def create(name: str) -> Mapping[str, Any]:
        try:
            return ctx.user.volume.create_volume({**body, "name": name})
        except (BadRequest, NotFound) as error:
            raise _refusal(error, body) from error

    return create


def _refusal(error: Exception, body: Mapping[str, Any]) -> EC2Error:
    """Cinder's refusal as EC2 says it; Cinder's own words stay in the log (F8)."""
    words = str(getattr(error, "remote_message", "")).lower()
    if "availability zone" in words and body.get("availability_zone"):
        return _unknown_zone(body["availability_zone"])
    if "snapshot" in words and isinstance(error, NotFound):
        return EC2Error("InvalidSnapshot.NotFound", "The snapshot does not exist")
    if "volume_type" in words or "volume type" in words:
        return invalid_value(
            "VolumeType", body.get("volume_type") or "", "The volume cannot have this type."
        )
    return EC2Error("InvalidParameterValue", "The volume cannot be made with these parameters.")
