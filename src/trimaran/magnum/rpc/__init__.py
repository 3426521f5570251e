"""RPC between API and conductor, on upstream's wire (spec/magnum.md section 5)."""

from __future__ import annotations

from trimaran.magnum.rpc.client import ConductorClient
from trimaran.magnum.rpc.server import RpcServer
from trimaran.magnum.rpc.transport import (
    open_embedded_transport,
    open_notification_transport,
    open_transport,
)

__all__ = [
    "ConductorClient",
    "RpcServer",
    "open_embedded_transport",
    "open_notification_transport",
    "open_transport",
]
