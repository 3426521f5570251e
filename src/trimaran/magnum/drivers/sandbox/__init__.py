"""The sandbox driver: for the demo and for tests, off unless MAGNUM_SANDBOX_DIR is set.

A cluster that carries one of its labels is only pretended and goes as the
labels say; any other cluster gets a real Nova server for each node.
"""

from __future__ import annotations

from trimaran.magnum.drivers.sandbox.driver import (
    BetaDriver,
    DisabledDriver,
    FedoraCoreOSDriver,
    UbuntuDriver,
)

__all__ = ["BetaDriver", "DisabledDriver", "FedoraCoreOSDriver", "UbuntuDriver"]
