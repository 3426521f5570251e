"""Keeps the health of clusters up to date, where their driver has a monitor."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import magnum as queries
from trimaran.errors import TrimaranError
from trimaran.magnum.conductor.crew import Crew
from trimaran.magnum.conductor.periodic.calls import Calls
from trimaran.magnum.conductor.periodic.share import longest_ago_first, share
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers import Driver, Monitor
from trimaran.magnum.objects import Cluster, ClusterTemplate

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
        drivers: dict[str, Driver | None] = {}

        def read(session: Session) -> list[Cluster]:
            # Two statements, however large the fleet.
            filters = {"status": STATES}
            rows = queries.list_clusters(session, queries.EVERYTHING, filters=filters)
            templates = queries.templates_by_uuid(
                session, {row.cluster_template_id or "" for row in rows}
            )
            found = []
            for row in rows:
                template = templates.get(row.cluster_template_id or "")
                if template is not None and self._driver(drivers, template) is not None:
                    cluster = Cluster.from_row(row, context)
                    cluster.cluster_template = ClusterTemplate.from_row(template, context)
                    found.append(cluster)
            return found

        monitors: dict[str, Monitor] = {}
        for cluster in self._crew.db.read(read):
            driver = drivers[cluster.cluster_template_id]
            assert driver is not None
            monitor = self._monitor(driver, cluster, context)
            if monitor is not None:
                monitors[cluster.uuid] = monitor

        def look(uuid: str) -> None:
            self._look(monitors[uuid])

        share(
            self._runner,
            self._calls,
            PREFIX,
            longest_ago_first(self._crew.db, PREFIX, monitors),
            self._interval(),
            look,
        )

    def _driver(self, known: dict[str, Driver | None], template: Any) -> Driver | None:
        """Returns the template's driver when it has monitors at all."""
        if template.uuid not in known:
            known[template.uuid] = None
            try:
                driver = self._crew.drivers.for_template(template)
            except TrimaranError as problem:
                LOG.debug("Template %s has no driver: %s", template.uuid, problem)
            else:
                if type(driver).get_monitor is not Driver.get_monitor:
                    known[template.uuid] = driver
        return known[template.uuid]

    @staticmethod
    def _monitor(driver: Driver, cluster: Cluster, context: RequestContext) -> Monitor | None:
        try:
            return driver.get_monitor(context, cluster)
        except Exception:
            LOG.exception("Cluster %s has no monitor", cluster.uuid)
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
