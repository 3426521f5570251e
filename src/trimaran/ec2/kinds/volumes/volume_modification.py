"""What became of a ModifyVolume: a note in the volume's item, compared with the volume.

Cinder forgets a change as soon as it is done; EC2 shows the last one of each
volume with its state, which clients poll until it is ``completed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes import volume_states as states

MODIFICATION = "modification"
#: In the note: another step follows, so the change goes on whatever the volume says.
WAITS = "waits"
MODIFYING, COMPLETED, FAILED = "modifying", "completed", "failed"


def state_of(note: Mapping[str, Any], volume: Mapping[str, Any]) -> str:
    """The state of a noted change of a volume.

    Args:
        note: ``size`` (GiB) and ``type`` (Cinder's name) are what is to be reached;
            ``state`` is there once the change has ended.
        volume: Cinder's JSON.
    """
    if note.get("state"):
        return str(note["state"])
    if note.get(WAITS) or states.status_of(volume) in states.MODIFYING:
        return MODIFYING
    size, kind = note.get("size"), note.get("type")
    reached = (not size or (volume.get("size") or 0) >= size) and (
        not kind or volume.get("volume_type") == kind
    )
    return COMPLETED if reached else FAILED


def finished(ctx: Context, data: Mapping[str, Any], volume: Mapping[str, Any]) -> dict[str, Any]:
    """What to change in an item's blob when its change is seen to have ended, else nothing."""
    note = data.get(MODIFICATION)
    if not note or note.get("state"):
        return {}
    state = state_of(note, volume)
    if state == MODIFYING:
        return {}
    return {MODIFICATION: {**note, "state": state, "end": ctx.now.isoformat()}}


def shown(volume_id: str, note: Mapping[str, Any], volume: Mapping[str, Any]) -> dict[str, Any]:
    """The change as boto3 shows it."""
    state = state_of(note, volume)
    told = {
        "VolumeId": volume_id,
        "ModificationState": state,
        "StatusMessage": "The volume could not be changed." if state == FAILED else None,
        "OriginalSize": note["was"].get("size"),
        "OriginalVolumeType": note["was"].get("type"),
        "OriginalMultiAttachEnabled": bool(volume.get("multiattach")),
        "TargetSize": note.get("size") or note["was"].get("size"),
        "TargetVolumeType": note.get("alias") or note.get("type") or note["was"].get("type"),
        "TargetMultiAttachEnabled": bool(volume.get("multiattach")),
        "Progress": 100 if state == COMPLETED else 0,
        "StartTime": note.get("start"),
        "EndTime": note.get("end"),
    }
    return {name: value for name, value in told.items() if value is not None}
