"""A change of one cluster by PATCH (spec section 1.9).

Only the number of nodes and the health report can change; the rest of the
patched cluster is checked all the same, in upstream's order, so that a client
is told what is wrong with what it sent.  Faults F-32, F-47, F-53.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest
from trimaran.magnum import objects
from trimaran.magnum.api import patch as patching
from trimaran.magnum.api.call import Call
from trimaran.magnum.api.patch import Patch, Rules
from trimaran.magnum.api.schemas.cluster import ClusterCreate
from trimaran.magnum.statuses import COMPLETE
from trimaran.magnum.validation import clusters as checks
from trimaran.magnum.validation.resources import Resources

_HEALTH = ("health_status", "health_status_reason")
_MUTABLE = frozenset({"node_count", *_HEALTH})
_DOCUMENT = (
    "name",
    "cluster_template_id",
    "keypair",
    "node_count",
    "master_count",
    "docker_volume_size",
    "labels",
    "master_flavor_id",
    "flavor_id",
    "create_timeout",
    "status",
    "status_reason",
    "health_status",
    "health_status_reason",
    "discovery_url",
    "fixed_network",
    "fixed_subnet",
    "floating_ip_enabled",
    "master_lb_enabled",
)


class ClusterUpdate:
    """One patch of one cluster, from its checks to its acceptance.

    Args:
        call: the request.
        row: the cluster.
        patch: steps that passed :attr:`rules`.
    """

    rules: ClassVar[Rules] = Rules(
        internal=frozenset(
            {
                "api_address",
                "node_addresses",
                "master_addresses",
                "stack_id",
                "cluster_id",
                "ca_cert_ref",
                "magnum_cert_ref",
                "etcd_ca_cert_ref",
                "front_proxy_ca_cert_ref",
            }
        ),
        mandatory=frozenset({"cluster_template_id"}),
    )

    def __init__(self, call: Call, row: Cluster, patch: Patch) -> None:
        self.call = call
        self.row = row
        self.patch = patch
        self.node_count: int | None = None
        self.health_status: str | None = row.health_status
        self.health_status_reason: dict[str, str] = row.health_status_reason

    def authorize(self) -> None:
        """Asks policy; the health rule only when health is reported.

        Upstream asks the health rule always and about the caller himself, which
        never denies.  Asked about the cluster it protects what its name says.
        """
        target = self.row.as_dict()
        self.call.authorize("cluster:update", target)
        if any(step.attribute in _HEALTH for step in self.patch):
            self.call.authorize("cluster:update_health_status", target)

    def apply(self) -> None:
        """Applies the patch in memory and checks the outcome.

        Raises:
            BadRequest: a wrong value, or a property that cannot change.
        """
        call, row = self.call, self.row
        nodes = call.parts.db.read(lambda session: queries.node_totals(session, [row.uuid]))
        counts = nodes[row.uuid]
        before: dict[str, Any] = {
            **{name: getattr(row, name, None) for name in _DOCUMENT},
            "node_count": counts.node_count,
            "master_count": counts.master_count,
        }
        document = patching.apply(before, self.patch)
        body = patching.validated(ClusterCreate, document, *_DOCUMENT)
        after = {**dict.fromkeys(_DOCUMENT), **body.given(*_DOCUMENT)}
        for name in ("labels", "health_status_reason"):
            after[name] = after[name] or {}
        # An attribute that was taken away has its default.
        after["node_count"] = 1 if after["node_count"] is None else after["node_count"]
        self._check_flavors(after)
        changed = {name for name in _DOCUMENT if after[name] != before[name]}
        if changed - _MUTABLE:
            names = ", ".join(name for name in _DOCUMENT if name in changed - _MUTABLE)
            raise BadRequest(f"cannot change cluster property(ies) {names}.")
        if any(step.attribute == "node_count" for step in self.patch):
            self.node_count = after["node_count"]
        self.health_status = after["health_status"]
        self.health_status_reason = {
            key: str(value) for key, value in after["health_status_reason"].items()
        }

    def _check_flavors(self, after: dict[str, Any]) -> None:
        resources = Resources(self.call.cloud)
        default = self.call.parts.conf.cinder.default_boot_volume_size
        for name in ("flavor_id", "master_flavor_id"):
            resources.check_root_volume(after[name], after["labels"], default)

    def accept(self, *, rollback: bool) -> None:
        """Records the operation and wakes a conductor; an empty patch asks for nothing.

        Args:
            rollback: go back to the state before if the update fails.
        """
        if not self.patch:
            return
        parts, row = self.call.parts, self.row
        arguments: dict[str, Any] = {
            "node_count": self.node_count,
            "health_status": self.health_status,
            "health_status_reason": self.health_status_reason,
            "rollback": rollback,
        }

        def accept(session: Session) -> tuple[int, str]:
            groups = queries.nodegroups_of(session, row.uuid, {"is_default": True})
            workers = [group.node_count for group in groups if group.role != "master"]
            if self.node_count not in (None, *workers[:1]):
                now = queries.find_cluster(session, row.uuid)
                checks.check_status(parts.conf, now, COMPLETE, "Updating")
            operation = parts.operations.record(
                session, self.call.context, "cluster_update", row.uuid, arguments
            )
            return (workers or [0])[0] or 0, operation

        current, operation = parts.accept(accept)
        parts.conductor.cluster_update(
            self.call.context,
            objects.Cluster.from_row(row),
            current if self.node_count is None else self.node_count,
            self.health_status,
            self.health_status_reason,
            rollback,
            operation=operation,
        )
