"""One function an operation; each is safe to run again from the step that was noted.

A handler looks at what there is, checks the guard on the fresh row, writes
what a user shall see, calls the driver and writes the outcome.  It runs alone
with its cluster, in the order in which operations were asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from trimaran.magnum.conductor.handlers import cluster, nodegroup, rotation
from trimaran.magnum.conductor.operation import Operation

HANDLERS: dict[str, Callable[[Operation], None]] = {
    "cluster_create": cluster.create,
    "cluster_update": cluster.update,
    "cluster_delete": cluster.delete,
    "cluster_resize": cluster.resize,
    "cluster_upgrade": cluster.upgrade,
    "nodegroup_create": nodegroup.create,
    "nodegroup_update": nodegroup.update,
    "nodegroup_delete": nodegroup.delete,
    "rotate_ca_certificate": rotation.rotate_ca,
    "credential_rotate": rotation.rotate_credential,
}

__all__ = ["HANDLERS"]
