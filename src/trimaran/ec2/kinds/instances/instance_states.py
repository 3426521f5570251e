"""Nova's states as EC2's: two fields in, one of six out, and never anything else.

``vm_state`` is where a server is, ``task_state`` where it is going; EC2 shows
the going as ``pending``, ``stopping`` or ``shutting-down``, which is what
waiters and retry loops of clients look at (spec ec2.md 3.6, fault F50).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class State(NamedTuple):
    """An EC2 instance state."""

    code: int
    name: str

    def shown(self) -> dict[str, Any]:
        """As boto3 shows it."""
        return {"Code": self.code, "Name": self.name}


PENDING = State(0, "pending")
RUNNING = State(16, "running")
SHUTTING_DOWN = State(32, "shutting-down")
TERMINATED = State(48, "terminated")
STOPPING = State(64, "stopping")
STOPPED = State(80, "stopped")

_PLACES: dict[str | None, State] = {
    None: PENDING,
    "": PENDING,
    "building": PENDING,
    "active": RUNNING,
    "rescued": RUNNING,
    "stopped": STOPPED,
    "paused": STOPPED,
    "suspended": STOPPED,
    "shelved": STOPPED,
    "shelved_offloaded": STOPPED,
    "soft-delete": SHUTTING_DOWN,
    "deleted": SHUTTING_DOWN,
}
_SHUT_DOWN = 4
_ENDING = frozenset({"deleting", "soft-deleting"})
_DOWNWARD = frozenset(
    {
        "powering-off",
        "pausing",
        "suspending",
        "shelving",
        "shelving_image_pending_upload",
        "shelving_image_uploading",
        "shelving_offloading",
    }
)
_UPWARD = frozenset(
    {
        "powering-on",
        "unpausing",
        "resuming",
        "unshelving",
        "spawning",
        "scheduling",
        "networking",
        "block_device_mapping",
        "restoring",
    }
)


def vm_state(server: Mapping[str, Any]) -> str:
    """Nova's ``vm_state``, or "" when it has none yet."""
    return str(server.get("OS-EXT-STS:vm_state") or "").lower()


def task_state(server: Mapping[str, Any]) -> str:
    """Nova's ``task_state``, or "" when nothing goes on."""
    return str(server.get("OS-EXT-STS:task_state") or "").lower()


def has_failed(server: Mapping[str, Any]) -> bool:
    """Whether Nova gave the server up."""
    return vm_state(server) == "error"


def state_of(server: Mapping[str, Any]) -> State:
    """The EC2 state of a server of Nova.

    An errored server that never ran is what AWS calls terminated (the launch
    failed); one that ran before is stopped.
    """
    task = task_state(server)
    if task in _ENDING:
        return SHUTTING_DOWN
    if has_failed(server):
        return STOPPED if server.get("OS-SRV-USG:launched_at") else TERMINATED
    if vm_state(server) == "resized":
        # A server that was stopped when it was resized still is (power state 4).
        return STOPPED if server.get("OS-EXT-STS:power_state") == _SHUT_DOWN else RUNNING
    place = _PLACES.get(vm_state(server), PENDING)
    if place is RUNNING and task in _DOWNWARD:
        return STOPPING
    if place is STOPPED and task in _UPWARD:
        return PENDING
    return place
