"""How a snapshot looks on the wire (spec ec2.md 3.12 and appendix B)."""

from __future__ import annotations

from typing import Any

from trimaran.ec2.kinds.volumes.volume_view import body_of, moment
from trimaran.ec2.reconcile_kind import Pair, View

PENDING, COMPLETED, ERROR = "pending", "completed", "error"

_STATES = {
    "new": PENDING,
    "creating": PENDING,
    "deleting": PENDING,
    "unmanaging": PENDING,
    "available": COMPLETED,
    "active": COMPLETED,
    # A snapshot is as good as ever while something is made from it.
    "backing-up": COMPLETED,
    "restoring": COMPLETED,
}


def state_of(pair: Pair) -> str:
    """The EC2 state of a snapshot."""
    return _STATES.get(str(body_of(pair).get("status") or "").lower(), ERROR)


def shown_snapshot(view: View, pair: Pair, *, encrypted: bool) -> dict[str, Any]:
    """The snapshot of a pair as boto3 shows it."""
    item = pair.item
    snapshot = body_of(pair)
    state = state_of(pair)
    progress = snapshot.get("os-extended-snapshot-attributes:progress") or "0%"
    made = {
        "SnapshotId": item.id,
        "VolumeId": view.id_of(snapshot.get("volume_id")) or item.data.get("volume_id"),
        "OwnerId": view.ctx.project_id,
        "State": state,
        "Progress": "100%" if state == COMPLETED else progress,
        "StartTime": moment(snapshot.get("created_at")),
        "VolumeSize": snapshot.get("size"),
        "Description": snapshot.get("description") or "",
        "Encrypted": encrypted,
        "StorageTier": "standard",
        "Tags": view.tags.get(item.id),
    }
    return {name: value for name, value in made.items() if value is not None}
