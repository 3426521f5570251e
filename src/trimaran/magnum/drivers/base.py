"""What a driver is (spec/magnum.md 8.1).

Signatures are upstream's, so that drivers written for upstream's base class
need no change.  Every call may be repeated: a conductor that is killed in the
middle of one leaves the operation to another conductor, which makes the call
again.  A call raises to refuse; what it cannot do at once it begins, and
``update_cluster_status`` tells how it went.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from trimaran.errors import BadRequest
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers.monitor import Monitor
from trimaran.magnum.drivers.scale import ScaleManager
from trimaran.magnum.objects import Cluster, ClusterTemplate, NodeGroup


def not_supported(text: str) -> BadRequest:
    """Returns upstream's NotSupported with a text for the user."""
    return BadRequest(text, code="NotSupported")


class Driver(abc.ABC):
    """Base of all drivers; one is made for each call, so constructors must be cheap."""

    #: a beta driver must be named in [drivers] enabled_beta_drivers
    beta: ClassVar[bool] = False

    @classmethod
    def offered(cls) -> bool:
        """Whether the driver exists for users of this deployment at all."""
        return True

    @property
    @abc.abstractmethod
    def provides(self) -> list[dict[str, str]]:
        """The cluster types: a list of dicts with ``server_type``, ``os`` and ``coe``."""

    @abc.abstractmethod
    def create_cluster(
        self, context: RequestContext, cluster: Cluster, cluster_create_timeout: int | None
    ) -> None:
        """Begins to make a cluster; usually sets ``stack_id``.

        Args:
            context: who asks.
            cluster: with its default node groups in the database.
            cluster_create_timeout: minutes; the conductor enforces it too.
        """

    @abc.abstractmethod
    def update_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        scale_manager: ScaleManager | None = None,
        rollback: bool = False,
    ) -> None:
        """Begins to give the default workers the size that their node group has now."""

    @abc.abstractmethod
    def delete_cluster(self, context: RequestContext, cluster: Cluster) -> None:
        """Begins to remove what the cluster has; the rows are removed by the conductor."""

    @abc.abstractmethod
    def resize_cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        resize_manager: ScaleManager | None,
        node_count: int,
        nodes_to_remove: list[str] | None,
        nodegroup: NodeGroup | None = None,
    ) -> None:
        """Begins to give a node group another size.

        Args:
            context: who asks.
            cluster: of the node group.
            resize_manager: picks nodes to remove, or None.
            node_count: the new size; the node group has it already.
            nodes_to_remove: ids of servers, or indexes.
            nodegroup: which; None means the default workers.
        """

    @abc.abstractmethod
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
        """Begins the upgrade of a node group; sets the cluster's ``cluster_template_id``."""

    @abc.abstractmethod
    def create_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """Begins to make the nodes of a new node group."""

    @abc.abstractmethod
    def update_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """Begins to apply changed limits, labels or taints of a node group."""

    @abc.abstractmethod
    def delete_nodegroup(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """Begins to remove the nodes of a node group; its row goes when they are gone."""

    def create_federation(self, context: RequestContext, federation: Any) -> None:
        """Never called."""
        raise not_supported("Federations are not supported by this driver.")

    update_federation = create_federation
    delete_federation = create_federation

    def update_cluster_status(
        self, context: RequestContext, cluster: Cluster, use_admin_ctx: bool = False
    ) -> None:
        """Looks how an operation in progress goes and saves what it finds.

        Called again and again while the cluster or one of its node groups is
        in progress, by one conductor at a time.
        """
        return

    def pre_delete_cluster(self, context: RequestContext, cluster: Cluster) -> None:
        """Kept for drivers that call it themselves; the conductor does not."""
        return

    def validate_master_size(self, node_count: int) -> None:
        """Refuses a number of masters; runs in the API.

        Raises:
            BadRequest: the number is even, or below 1.
        """
        if node_count < 1 or node_count % 2 == 0:
            raise BadRequest(
                f"master nodegroup size of {node_count} is invalid, size cannot be an even number.",
                code="MasterNGSizeInvalid",
            )

    def validate_master_resize(self, node_count: int) -> None:
        """Refuses another number of masters; runs in the API.

        Raises:
            BadRequest: always, unless a driver can do it.
        """
        raise BadRequest(
            "Resizing the master nodegroup is not supported by this driver.",
            code="MasterNGResizeNotSupported",
        )

    def rotate_ca_certificate(self, context: RequestContext, cluster: Cluster) -> None:
        """Begins to roll new authorities out.

        Raises:
            BadRequest: unless a driver can do it.
        """
        raise not_supported("'rotate_ca_certificate' is not supported by this driver.")

    def rotate_credential(self, context: RequestContext, cluster: Cluster) -> None:
        """Gives the cluster another credential of the cloud.

        Raises:
            BadRequest: unless a driver can do it.
        """
        raise not_supported("Credential rotation is not supported by driver.")

    def get_monitor(self, context: RequestContext, cluster: Cluster) -> Monitor | None:
        """Returns what can tell the cluster's health, or None."""
        return None

    def get_scale_manager(
        self, context: RequestContext, osclient: Any, cluster: Cluster
    ) -> ScaleManager | None:
        """Returns what picks the nodes to remove, or None."""
        return None

    def can(self, method: str) -> bool:
        """Whether the driver overrides a method, so that the API can refuse early (F-6)."""
        return getattr(type(self), method) is not getattr(Driver, method)
