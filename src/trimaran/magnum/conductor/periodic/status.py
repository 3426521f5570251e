"""Asks drivers how operations in progress go, and ends deletions.

The lease of a cluster is the one that handlers hold too, so a poll never sees
half an operation; a cluster whose operation is recorded and not yet run is
left alone, because its driver has not been asked yet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import magnum as queries
from trimaran.magnum.certificates import references_of
from trimaran.magnum.conductor.crew import LEASE, Crew
from trimaran.magnum.conductor.handlers.rotation import forget
from trimaran.magnum.conductor.periodic.calls import Calls
from trimaran.magnum.conductor.periodic.share import longest_ago_first, share
from trimaran.magnum.objects import Cluster, ClusterTemplate
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

        def look(session: Session) -> tuple[list[str], dict[str, ClusterTemplate], datetime]:
            rows = queries.clusters_to_poll(session)
            if not rows:
                return [], {}, datetime.min
            busy = queries.clusters_in_operation(session, KINDS)
            wanted = {template for template in rows.values() if template}
            templates = {
                uuid: ClusterTemplate.from_row(row, context)
                for uuid, row in queries.templates_by_uuid(session, wanted).items()
            }
            return (
                [uuid for uuid in rows if uuid not in busy],
                templates,
                queries.now(session),
            )

        context = self._crew.admin()
        asked = time.monotonic()
        fleet, templates, at = self._crew.db.read(look)
        if not fleet:
            return

        def poll(uuid: str) -> None:
            self._poll(uuid, templates, at + timedelta(seconds=time.monotonic() - asked))

        order = longest_ago_first(self._crew.db, LEASE, fleet)
        share(self._runner, self._calls, LEASE, order, self._interval, poll)

    def _poll(self, uuid: str, templates: Mapping[str, ClusterTemplate], now: datetime) -> None:
        crew = self._crew

        def look(session: Session) -> Cluster | None:
            row = queries.cluster_at_rest(session, KINDS, uuid)
            return None if row is None else Cluster.from_row(row, crew.admin())

        cluster = crew.db.read(look)
        if cluster is None:
            return
        template = templates.get(cluster.cluster_template_id)
        if template is not None:
            cluster.cluster_template = template
        if _is_late(cluster, now):
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


def _is_late(cluster: Cluster, now: datetime) -> bool:
    """Whether a creation takes longer than its user gave it."""
    began, minutes = cluster.created_at, cluster.create_timeout
    return (
        cluster.status == "CREATE_IN_PROGRESS"
        and bool(minutes)
        and began is not None
        and now - began > timedelta(minutes=minutes)
    )
