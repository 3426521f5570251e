"""The sandbox driver: the calls of the interface, noted, steered and carried out."""

from __future__ import annotations

from typing import Any

from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers.base import Driver
from trimaran.magnum.drivers.k8s_monitor import KubernetesMonitor
from trimaran.magnum.drivers.monitor import Monitor
from trimaran.magnum.drivers.sandbox import journal
from trimaran.magnum.drivers.sandbox.labels import Labels
from trimaran.magnum.drivers.sandbox.scripted import Scripted
from trimaran.magnum.drivers.sandbox.servers import Servers
from trimaran.magnum.drivers.scale import ScaleManager
from trimaran.magnum.objects import Cluster, ClusterTemplate, NodeGroup


class FixedMonitor(Monitor):
    """Says what the label ``sandbox_health`` says."""

    def poll_health_status(self) -> None:
        """Fills ``data``."""
        journal.event("health", self.cluster.uuid)
        wanted = Labels(self.cluster.labels).text("health")
        self.data = {
            "health_status": wanted,
            "health_status_reason": {"api": "ok" if wanted == "HEALTHY" else "sandbox"},
        }


class AskingMonitor(KubernetesMonitor):
    """Asks the API address, as drivers of real clusters do."""

    def poll_health_status(self) -> None:
        """Fills ``data``."""
        journal.event("health", self.cluster.uuid)
        super().poll_health_status()


class SandboxDriver(Driver):
    """What the four drivers have in common."""

    @classmethod
    def offered(cls) -> bool:
        """Only where the environment names the driver's directory."""
        return journal.directory() is not None

    def create_cluster(
        self, context: RequestContext, cluster: Cluster, cluster_create_timeout: int | None
    ) -> None:
        """See the base class."""
        self._begin("create", cluster, timeout=cluster_create_timeout)
        self._cloud(cluster).create(context, cluster)
        cluster.stack_id = f"sandbox-{cluster.uuid}"
        journal.event("create-done", cluster.uuid)

    def update_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        scale_manager: ScaleManager | None = None,
        rollback: bool = False,
    ) -> None:
        """See the base class."""
        self._begin(
            "update",
            cluster,
            node_count=cluster.default_ng_worker.node_count,
            rollback=rollback,
            scale_manager=repr(scale_manager),
        )
        self._cloud(cluster).begin(context, cluster)

    def delete_cluster(self, context: RequestContext, cluster: Cluster) -> None:
        """See the base class."""
        self._begin("delete", cluster)
        if Labels(cluster.labels):
            Scripted().begin(context, cluster)
        else:
            Servers().delete(context, cluster)

    def resize_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        resize_manager: ScaleManager | None,
        node_count: int,
        nodes_to_remove: list[str] | None,
        nodegroup: NodeGroup | None = None,
    ) -> None:
        """See the base class."""
        group = nodegroup or cluster.default_ng_worker
        self._begin(
            "resize",
            cluster,
            node_count=node_count,
            nodes_to_remove=nodes_to_remove,
            nodegroup=group.name,
        )
        if Labels(cluster.labels):
            Scripted().begin(context, cluster)
        else:
            Servers().apply(context, cluster, (), first_out=nodes_to_remove or ())

    def upgrade_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        cluster_template: ClusterTemplate,
        max_batch_size: int | None,
        nodegroup: NodeGroup,
        scale_manager: ScaleManager | None = None,
        rollback: bool = False,
    ) -> None:
        """See the base class."""
        self._begin(
            "upgrade",
            cluster,
            template=cluster_template.uuid,
            max_batch_size=max_batch_size,
            nodegroup=nodegroup.name,
            scale_manager=repr(scale_manager),
            rollback=rollback,
        )
        cluster.cluster_template_id = cluster_template.uuid
        self._cloud(cluster).begin(context, cluster)

    def create_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """See the base class."""
        self._begin("nodegroup-create", cluster, nodegroup=nodegroup.name)
        nodegroup.stack_id = f"sandbox-{nodegroup.uuid}"
        self._cloud(cluster).begin(context, cluster)

    def update_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """See the base class."""
        self._begin("nodegroup-update", cluster, nodegroup=nodegroup.name)
        self._cloud(cluster).begin(context, cluster)

    def delete_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """See the base class; the status is the conductor's business."""
        self._begin("nodegroup-delete", cluster, nodegroup=nodegroup.name)
        self._cloud(cluster).remove(context, cluster, nodegroup)

    def update_cluster_status(
        self, context: RequestContext, cluster: Cluster, use_admin_ctx: bool = False
    ) -> None:
        """See the base class."""
        journal.poll(cluster.uuid, cluster.status)
        self._cloud(cluster).poll(context, cluster)

    def get_monitor(self, context: RequestContext, cluster: Cluster) -> Monitor | None:
        """See the base class."""
        wanted = Labels(cluster.labels).text("health")
        if wanted == "k8s":
            return AskingMonitor(context, cluster)
        return FixedMonitor(context, cluster) if wanted in ("HEALTHY", "UNHEALTHY") else None

    @staticmethod
    def _begin(operation: str, cluster: Cluster, **more: Any) -> None:
        journal.event(operation, cluster.uuid, **more)
        Labels(cluster.labels).obey(operation)

    @staticmethod
    def _cloud(cluster: Cluster) -> Scripted | Servers:
        return Scripted() if Labels(cluster.labels) else Servers()


def _type(distro: str) -> list[dict[str, str]]:
    return [{"server_type": "vm", "os": distro, "coe": "kubernetes"}]


class UbuntuDriver(SandboxDriver):
    """``sandbox_ubuntu``: rotates nothing and resizes no masters."""

    @property
    def provides(self) -> list[dict[str, str]]:
        """See the base class."""
        return _type("ubuntu")


class FedoraCoreOSDriver(SandboxDriver):
    """``sandbox_fcos``: rotates, and resizes masters to odd counts."""

    @property
    def provides(self) -> list[dict[str, str]]:
        """See the base class."""
        return _type("fedora-coreos")

    def validate_master_resize(self, node_count: int) -> None:
        """See the base class."""
        self.validate_master_size(node_count)

    def rotate_ca_certificate(self, context: RequestContext, cluster: Cluster) -> None:
        """See the base class."""
        self._begin("rotate-ca", cluster, ca=cluster.ca_cert_ref)
        self._cloud(cluster).begin(context, cluster)

    def rotate_credential(self, context: RequestContext, cluster: Cluster) -> None:
        """See the base class."""
        self._begin("rotate-credential", cluster)


class BetaDriver(SandboxDriver):
    """``sandbox_beta``: a beta driver."""

    beta = True

    @property
    def provides(self) -> list[dict[str, str]]:
        """See the base class."""
        return _type("debian")


class DisabledDriver(SandboxDriver):
    """``sandbox_disabled``: meant to be named in ``[drivers] disabled_drivers``."""

    @property
    def provides(self) -> list[dict[str, str]]:
        """See the base class."""
        return _type("rocky")
