"""What may be done to a cluster in which status (spec section 6).

The conductor asks when an operation begins, since only then it counts; the API
may ask as well, so that a client is told at once (F-2).
"""

from __future__ import annotations

from typing import Final

COMPLETE: Final = frozenset(
    f"{action}_COMPLETE"
    for action in (
        "CREATE",
        "UPDATE",
        "RESUME",
        "RESTORE",
        "ROLLBACK",
        "SNAPSHOT",
        "CHECK",
        "ADOPT",
    )
)
#: what may be changed again while a change is under way, or after one failed
CHANGEABLE: Final = COMPLETE | {"UPDATE_IN_PROGRESS", "UPDATE_FAILED"}


def refusal(doing: str, status: str | None) -> str:
    """The text of a refusal.

    Args:
        doing: "Updating", "Resizing" or "Upgrading".
        status: the cluster's.
    """
    return f'{doing} a cluster when status is "{status}" is not supported.'
