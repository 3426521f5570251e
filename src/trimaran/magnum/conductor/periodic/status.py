"""Asks drivers how operations in progress go, and ends deletions.

The lease of a cluster is the one that handlers hold too, so a poll never sees
half an operation; a cluster whose operation is recorded and not yet run is
left alone, because its driver has not been asked yet.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import magnum as queries
from trimaran.magnum.certificates import references_of
from trimaran.magnum.conductor.crew import LEASE, Crew
from trimaran.magnum.conductor.handlers.rotation import forget
from trimaran.magnum.conductor.periodic.calls import Calls
from trimaran.magnum.conductor.periodic.share import share
from trimaran.magnum.objects import Cluster
from trimaran.magnum.operations import KINDS

LOG = logging.getLogger(__name__)

#: seconds between two polls of a cluster (upstream's, not configurable there)
INTERVAL = 10.0
#: driver calls of one conductor at the same time
PARALLEL = 16
#: seconds that a driver may take to answer
TIMEOUT = 120.0


class StatusSync:
    """The periodic function.

    Args:
        crew: the conductor's parts.
        runner: keeps the leases.
        interval: seconds between two polls of a cluster.
    """

    def __init__(self, crew: Crew, runner: work.Runner, interval: float = INTERVAL) -> None:
        self._crew = crew
        self._runner = runner
        self._interval = interval
        self._calls = Calls(PARALLEL, TIMEOUT)

    def __call__(self) -> None:
        """One cycle."""

        def look(session: Session) -> list[str]:
            rows = queries.clusters_to_poll(session)
            if not rows:
                return []
            busy = queries.clusters_in_operation(session, KINDS)
            return [row.uuid for row in rows if row.uuid not in busy]

        fleet = self._crew.db.read(look)
        share(self._runner, self._calls, LEASE, fleet, self._interval, self._poll)

    def _poll(self, uuid: str) -> None:
        crew = self._crew

        def look(session: Session) -> tuple[Cluster | None, bool]:
            row = queries.find_cluster(session, uuid)
            if row is None or queries.in_operation(session, KINDS, uuid):
                return None, False
            began = row.created_at
            minutes = row.create_timeout
            late = (
                row.status == "CREATE_IN_PROGRESS"
                and bool(minutes)
                and began is not None
                and queries.now(session) - began > timedelta(minutes=minutes or 0)
            )
            return Cluster.from_row(row, crew.admin()), late

        cluster, late = crew.db.read(look)
        if cluster is None:
            return
        if late:
            self._too_late(cluster)
            return
        if cluster.status != "DELETE_COMPLETE":
            driver = crew.drivers.for_template(cluster.cluster_template)
            driver.update_cluster_status(crew.admin(), cluster)
        # A driver may leave it to us to save what it found; saving tells, too.
        cluster.save()
        if cluster.status == "DELETE_COMPLETE":
            self._remove(cluster)

    def _too_late(self, cluster: Cluster) -> None:
        """Ends a creation that takes longer than its user gave it (F-64)."""
        reason = f"The cluster was not created within {cluster.create_timeout} minutes."
        LOG.warning("Cluster %s: %s", cluster.uuid, reason)
        context = self._crew.admin()

        def unit(session: Session) -> None:
            if queries.fail_cluster(session, cluster.uuid, "CREATE", reason):
                self._crew.notifier.record(session, context, cluster.uuid, "create", "failure")

        self._crew.db.write(unit)

    def _remove(self, cluster: Cluster) -> None:
        """Removes certificates, node groups and row; what cannot go now goes later (F-8)."""
        left = self._crew.certificates.delete(references_of(cluster))

        def unit(session: Session) -> None:
            if queries.destroy_cluster(session, cluster.uuid):
                forget(session, list(left))

        self._crew.db.write(unit)
        LOG.info("Cluster %s (%s) is deleted", cluster.uuid, cluster.name)
