"""Keeps the health of clusters up to date, where their driver has a monitor."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trimaran import work
from trimaran.db.queries import magnum as queries
from trimaran.errors import TrimaranError
from trimaran.magnum.conductor.crew import Crew
from trimaran.magnum.conductor.periodic.calls import Calls
from trimaran.magnum.conductor.periodic.share import share
from trimaran.magnum.drivers import Monitor
from trimaran.magnum.objects import Cluster

LOG = logging.getLogger(__name__)

PREFIX = "magnum.health/"
PARALLEL = 16
TIMEOUT = 60.0
#: spec/magnum.md, seed: the nine states in which a cluster is looked at
STATES = (
    "CREATE_IN_PROGRESS",
    "CREATE_FAILED",
    "CREATE_COMPLETE",
    "UPDATE_IN_PROGRESS",
    "UPDATE_FAILED",
    "UPDATE_COMPLETE",
    "DELETE_IN_PROGRESS",
    "DELETE_FAILED",
    "ROLLBACK_IN_PROGRESS",
)


class HealthSync:
    """The periodic function.

    Args:
        crew: the conductor's parts.
        runner: keeps the leases.
        interval: asked at each turn; zero or less means switched off.
    """

    def __init__(self, crew: Crew, runner: work.Runner, interval: Callable[[], float]) -> None:
        self._crew = crew
        self._runner = runner
        self._interval = interval
        self._calls = Calls(PARALLEL, TIMEOUT, task="health")

    def __call__(self) -> None:
        """One cycle."""
        context = self._crew.admin()
        monitors: dict[str, Monitor] = {}

        for row in self._crew.db.read(
            lambda s: queries.list_clusters(s, queries.EVERYTHING, filters={"status": STATES})
        ):
            cluster = Cluster.from_row(row, context)
            monitor = self._monitor(cluster)
            if monitor is not None:
                monitors[cluster.uuid] = monitor

        def look(uuid: str) -> None:
            self._look(monitors[uuid])

        share(
            self._runner,
            self._calls,
            PREFIX,
            sorted(monitors),
            self._interval(),
            look,
        )

    def _monitor(self, cluster: Cluster) -> Monitor | None:
        try:
            driver = self._crew.drivers.for_template(cluster.cluster_template)
            return driver.get_monitor(self._crew.admin(), cluster)
        except TrimaranError as problem:
            LOG.debug("Cluster %s has no monitor: %s", cluster.uuid, problem)
            return None

    def _look(self, monitor: Monitor) -> None:
        monitor.poll_health_status()
        status = monitor.data.get("health_status")
        if not status:
            return
        found = {
            "health_status": status,
            "health_status_reason": {
                str(name): str(text)
                for name, text in (monitor.data.get("health_status_reason") or {}).items()
            },
        }
        uuid = monitor.cluster.uuid
        self._crew.db.write(lambda s: queries.update_cluster(s, uuid, found))
