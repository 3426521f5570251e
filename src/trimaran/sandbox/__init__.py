"""A small real OpenStack on one machine, for the demo, the tests and the benchmarks.

The control plane is real (Keystone, Glance, Placement, Neutron, Cinder, Nova,
Barbican from PyPI at pinned versions, on MariaDB and RabbitMQ); only what needs
hardware or a kernel is stood in for: a virt driver, an ML2 driver and a volume
driver under ``lib/``.  No container, systemd, kernel module or name space is used,
so that it runs wherever Debian's packages can be installed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

__all__ = ["down", "is_up", "up"]


# The parts are imported when they are needed: a command line that only shows its help
# should not pay for them.
def up(
    state: str | os.PathLike[str],
    extras: Sequence[str] = (),
    base_port: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Bring a sandbox up and describe it; see api.up."""
    from trimaran.sandbox import api

    return api.up(state, extras, base_port, **options)


def down(state: str | os.PathLike[str]) -> None:
    """Stop everything that ``up`` started; see api.down."""
    from trimaran.sandbox import api

    api.down(state)


def is_up(state: str | os.PathLike[str]) -> bool:
    """Whether everything of a sandbox runs and answers."""
    from trimaran.sandbox import api

    return api.is_up(state)
