"""Operations: what a request asks the conductors to do, recorded before it is asked.

The API writes the cluster's row and the operation in one transaction; the
message that follows is a hint.  A lost message, a broker that is down or a
conductor that is killed therefore lose nothing: the operation is found, in
the order in which it was asked for, and run again from its last step.
"""

from __future__ import annotations

from trimaran.magnum.operations.record import (
    KINDS,
    Operations,
    action_in_status,
    kind_of,
    name_of,
)

__all__ = ["KINDS", "Operations", "action_in_status", "kind_of", "name_of"]
