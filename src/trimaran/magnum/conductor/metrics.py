"""What can be seen of a conductor from outside, beside the deck's metrics of jobs and leases.

Numbers of the whole deployment are read by each conductor once a minute, so
that any of them may be asked.
"""

from __future__ import annotations

import logging

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from trimaran.db import Database
from trimaran.db.queries import magnum as queries
from trimaran.magnum.operations import KINDS, name_of

LOG = logging.getLogger(__name__)

#: seconds between two readings of the database
EVERY = 60.0

CLUSTERS = Gauge(
    "trimaran_magnum_clusters",
    "Clusters of the deployment, by status.",
    ["status"],
    multiprocess_mode="livemostrecent",
)
OPERATIONS = Gauge(
    "trimaran_magnum_operations",
    "Operations in the database, by what was asked for and how far it is; done ones for 7 days, "
    "failed ones for 30.",
    ["operation", "state"],
    multiprocess_mode="livemostrecent",
)
POLLS = Counter(
    "trimaran_magnum_polls_total",
    "Questions about one cluster that this process asked, by task (status, health) and how they "
    "ended: done, error, late.",
    ["task", "outcome"],
)
POLL_SECONDS = Histogram(
    "trimaran_magnum_poll_seconds",
    "How long questions about one cluster took.",
    ["task"],
    buckets=(0.02, 0.1, 0.5, 1, 5, 15, 60, 120),
)
SHARE = Gauge(
    "trimaran_magnum_cycle_clusters",
    "Clusters that this process asked about in its last cycle.",
    ["task"],
    multiprocess_mode="livesum",
)


class Measure:
    """Reads the deployment's numbers into the metrics.

    Args:
        db: of the deployment.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def __call__(self) -> None:
        """Measures once."""
        clusters = self._db.read(queries.count_by_status)
        operations = self._db.read(lambda s: queries.count_operations(s, KINDS))
        # What is there no more must not stay as it was.
        CLUSTERS.clear()
        for status, number in clusters.items():
            CLUSTERS.labels(status).set(number)
        OPERATIONS.clear()
        for (kind, state), number in operations.items():
            OPERATIONS.labels(name_of(kind), state).set(number)


def serve(host: str, port: int) -> None:
    """Serves ``/metrics`` of this process over HTTP, in a thread; port 0 switches it off.

    A port that is taken is logged and no reason not to work.

    Args:
        host: to listen at.
        port: to listen at.
    """
    if not port:
        return
    try:
        start_http_server(port, host)
    except OSError as problem:
        LOG.error("No metrics are served at %s:%d: %s", host, port, problem)
    else:
        LOG.info("Metrics are served at http://%s:%d/metrics", host, port)
