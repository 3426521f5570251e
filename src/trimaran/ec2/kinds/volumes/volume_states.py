"""Cinder's states as EC2's: what waiters and retry loops of clients look at.

EC2 has six states of a volume and none for what is done to one beside its
life: a volume that is extended, retyped or backed up is as usable as before,
``in-use`` when it is attached and ``available`` otherwise (spec ec2.md 3.15).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CREATING = "creating"
AVAILABLE = "available"
IN_USE = "in-use"
DELETING = "deleting"
ERROR = "error"

#: Cinder's words for a change by ModifyVolume that goes on.
MODIFYING = frozenset({"extending", "retyping"})
#: An attachment that Cinder does not list yet is on its way.
ATTACHING = frozenset({"reserved", "attaching"})

_STATES = {
    "creating": CREATING,
    "downloading": CREATING,
    "managing": CREATING,
    "restoring-backup": CREATING,
    "available": AVAILABLE,
    "in-use": IN_USE,
    "reserved": IN_USE,
    "attaching": IN_USE,
    "detaching": IN_USE,
    "deleting": DELETING,
    "unmanaging": DELETING,
}
_BESIDE = MODIFYING | {"awaiting-transfer", "backing-up", "maintenance", "uploading"}


def status_of(volume: Mapping[str, Any]) -> str:
    """Cinder's status in lower case."""
    return str(volume.get("status") or "").lower()


def state_of(volume: Mapping[str, Any]) -> str:
    """The EC2 state of a volume of Cinder."""
    status = status_of(volume)
    if status in _STATES:
        return _STATES[status]
    if status in _BESIDE:
        return IN_USE if volume.get("attachments") else AVAILABLE
    return ERROR


def attachment_state(volume: Mapping[str, Any]) -> str:
    """The EC2 state of an attachment that Cinder lists."""
    return "detaching" if status_of(volume) == "detaching" else "attached"
