"""What tells a cluster's health (spec/magnum.md 8.3)."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimaran.magnum.context import RequestContext
    from trimaran.magnum.objects import Cluster


class Monitor(abc.ABC):
    """Base of monitors.

    Args:
        context: of the periodic work.
        cluster: to look at.

    Attributes:
        data: after ``poll_health_status``: ``health_status`` and
            ``health_status_reason``, a dict of strings.
    """

    def __init__(self, context: RequestContext, cluster: Cluster) -> None:
        self.context = context
        self.cluster = cluster
        self.data: dict[str, Any] = {}

    @abc.abstractmethod
    def poll_health_status(self) -> None:
        """Looks at the cluster and fills ``data``."""
