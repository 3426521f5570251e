"""A driver for docs/magnum-drivers.md: clusters are directories, nodes are files in them.

Small enough to read at one sitting, and complete: it makes, resizes, upgrades
and removes clusters and node groups, and tells how they go.
"""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

from trimaran.errors import BadRequest
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers import Driver, KubernetesMonitor, Monitor, ScaleManager
from trimaran.magnum.objects import Cluster, ClusterTemplate, NodeGroup


class DirectoryDriver(Driver):
    """Makes clusters below the directory that EXAMPLE_CLUSTERS names."""

    @property
    def provides(self) -> list[dict[str, str]]:
        return [{"server_type": "vm", "os": "example", "coe": "kubernetes"}]

    # Beginning: say yes or raise, and come back soon.

    def create_cluster(
        self, context: RequestContext, cluster: Cluster, cluster_create_timeout: int | None
    ) -> None:
        # The name is derived from the cluster, so a repeated call finds what the first one made.
        cluster.stack_id = f"example-{cluster.uuid}"
        home(cluster).mkdir(parents=True, exist_ok=True)

    def update_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        scale_manager: ScaleManager | None = None,
        rollback: bool = False,
    ) -> None:
        require(cluster)

    def resize_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        resize_manager: ScaleManager | None,
        node_count: int,
        nodes_to_remove: list[str] | None,
        nodegroup: NodeGroup | None = None,
    ) -> None:
        require(cluster)
        group = nodegroup or cluster.default_ng_worker
        for node in nodes_of(cluster, group):
            if node.name in (nodes_to_remove or []):
                node.unlink(missing_ok=True)

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
        require(cluster)
        cluster.cluster_template_id = cluster_template.uuid

    def create_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        require(cluster)

    def update_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        require(cluster)

    def delete_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        require(cluster)

    def delete_cluster(self, context: RequestContext, cluster: Cluster) -> None:
        # What is gone already is no error: the call may be the second one.
        shutil.rmtree(home(cluster), ignore_errors=True)

    # Telling: called every few seconds while the cluster or a node group is in progress.

    def update_cluster_status(
        self, context: RequestContext, cluster: Cluster, use_admin_ctx: bool = False
    ) -> None:
        action, _, _ = (cluster.status or "").partition("_")
        if action == "DELETE":
            cluster.status = "DELETE_COMPLETE"
        elif not home(cluster).is_dir():
            cluster.status = f"{action}_FAILED"
            cluster.status_reason = "The directory is gone."
        else:
            for group in NodeGroup.list(context, cluster.uuid):
                settle(cluster, group)
            cluster.api_address = f"https://192.0.2.1/{cluster.stack_id}"
            cluster.status = f"{action}_COMPLETE"
            cluster.status_reason = None
        cluster.save()

    # What else it can do.

    def validate_master_resize(self, node_count: int) -> None:
        if node_count > 5:
            raise BadRequest("This driver makes five masters at most.")
        self.validate_master_size(node_count)

    def get_monitor(self, context: RequestContext, cluster: Cluster) -> Monitor | None:
        return KubernetesMonitor(context, cluster)


def home(cluster: Cluster) -> Path:
    return Path(os.environ["EXAMPLE_CLUSTERS"]) / str(cluster.uuid)


def require(cluster: Cluster) -> None:
    if not home(cluster).is_dir():
        raise BadRequest(f"The cluster {cluster.name} has no directory any more.")


def nodes_of(cluster: Cluster, group: NodeGroup) -> list[Path]:
    folder = home(cluster) / str(group.uuid)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def settle(cluster: Cluster, group: NodeGroup) -> None:
    """Makes or removes the files of a node group, and says so on its row."""
    action, _, state = (group.status or "").partition("_")
    folder = home(cluster) / str(group.uuid)
    if action == "DELETE":
        shutil.rmtree(folder, ignore_errors=True)
        group.destroy()
        return
    folder.mkdir(exist_ok=True)
    nodes = nodes_of(cluster, group)
    for surplus in nodes[group.node_count :]:
        surplus.unlink(missing_ok=True)
    names = (f"{group.name}-{number}" for number in itertools.count())
    for _ in range(group.node_count - len(nodes)):
        next(folder / name for name in names if not (folder / name).exists()).touch()
    group.node_addresses = [node.name for node in nodes_of(cluster, group)]
    if state == "IN_PROGRESS":
        group.status = f"{action}_COMPLETE"
    group.save()
