"""How a volume looks on the wire (spec ec2.md 3.15 and appendix B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trimaran.ec2.kinds.volumes.volume_kind import DRAFT, TYPE
from trimaran.ec2.kinds.volumes.volume_states import state_of
from trimaran.ec2.reconcile_kind import Pair, View


def shown_volume(
    view: View, pair: Pair, attachments: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The volume of a pair as boto3 shows it.

    Args:
        view: where tags and other ids come from.
        pair: item and volume; without volume the item's draft is shown.
        attachments: as they are shown (see `volume_attachments`).
    """
    item = pair.item
    volume = body_of(pair)
    made = {
        "VolumeId": item.id,
        "OwnerId": view.ctx.project_id,
        "State": state_of(volume),
        "Size": volume.get("size"),
        "AvailabilityZone": volume.get("availability_zone"),
        "AvailabilityZoneId": volume.get("availability_zone"),
        "CreateTime": moment(volume.get("created_at")),
        "VolumeType": type_of(item.data, volume),
        "Encrypted": bool(volume.get("encrypted")),
        "MultiAttachEnabled": bool(volume.get("multiattach")),
        # The snapshot that it was made from, also when that is gone, under the id it had then.
        "SnapshotId": item.data.get("snapshot_id") or view.id_of(volume.get("snapshot_id")) or "",
        "Attachments": list(attachments),
        "Tags": view.tags.get(item.id),
    }
    return {name: value for name, value in made.items() if value is not None}


def body_of(pair: Pair) -> Mapping[str, Any]:
    """Cinder's JSON of a volume or snapshot, or what stands in for it while it is being made."""
    return pair.body or pair.item.data.get(DRAFT) or {"status": "creating"}


def type_of(data: Mapping[str, Any], volume: Mapping[str, Any]) -> str:
    """The volume type: Cinder's name, or EC2's name for it under which it was asked for."""
    kind = str(volume.get("volume_type") or "")
    asked = data.get(TYPE) or {}
    if asked.get("alias") and asked.get("name") in (kind, None):
        return str(asked["alias"])
    return kind


def moment(text: Any) -> datetime | None:
    """A time of Cinder's (UTC without zone)."""
    if not isinstance(text, str) or not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
