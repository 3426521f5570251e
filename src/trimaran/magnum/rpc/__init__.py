"""RPC between API and conductor, on upstream's wire (spec/magnum.md section 5)."""

from __future__ import annotations

# First: it chooses threads for the libraries below before they are imported.
from trimaran.magnum.rpc.transport import open_notification_transport, open_transport  # isort: skip
from trimaran.magnum.rpc.client import ConductorClient
from trimaran.magnum.rpc.server import RpcServer

__all__ = ["ConductorClient", "RpcServer", "open_notification_transport", "open_transport"]
