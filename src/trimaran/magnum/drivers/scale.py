"""What picks the nodes that leave when a node group shrinks (spec/magnum.md 8.3).

The old and the new size are given, not read again: by the time a driver asks,
the new size is saved and a second look could never see a difference (F-61).
"""

from __future__ import annotations

import abc
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimaran.magnum.context import RequestContext
    from trimaran.magnum.objects import Cluster

LOG = logging.getLogger(__name__)


class ScaleManager(abc.ABC):
    """Base of scale managers.

    Args:
        context: who asks.
        osclient: whatever a driver hands over.
        cluster: that shrinks.
        old_count: nodes before.
        new_count: nodes wanted.
    """

    def __init__(
        self,
        context: RequestContext,
        osclient: Any,
        cluster: Cluster,
        *,
        old_count: int | None = None,
        new_count: int | None = None,
    ) -> None:
        self.context = context
        self.osclient = osclient
        self.cluster = cluster
        self.old_count = old_count
        self.new_count = new_count

    def get_removal_nodes(self, hosts: Collection[str]) -> list[str]:
        """Returns the hosts to remove: those without containers first."""
        leaving = (self.old_count or 0) - (self.new_count or 0)
        if leaving <= 0:
            return []
        busy = self._get_hosts_with_container(self.context, self.cluster)
        idle = [host for host in hosts if host not in busy]
        if len(idle) < leaving:
            LOG.warning(
                "Cluster %s loses %d nodes, only %d of them are idle",
                self.cluster.uuid,
                leaving,
                len(idle),
            )
        return idle[:leaving]

    @abc.abstractmethod
    def _get_hosts_with_container(self, context: RequestContext, cluster: Cluster) -> set[str]:
        """Returns the hosts that run containers."""
