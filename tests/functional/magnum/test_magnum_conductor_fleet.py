"""Several conductors share the watch over a fleet; each cluster is polled once a cycle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.magnum_conductor import LEASE, NO_BROKER, Deployment
from tests.support.processes import Fleet
from trimaran.db.queries import magnum as queries

INTERVAL = 1.0
#: seconds for which the polls of a cluster are counted
SPAN = 6.0


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


@pytest.fixture
def magnum(tmp_path: Path, magnum_mariadb_url: str) -> Iterator[Deployment]:
    made = Deployment(tmp_path, magnum_mariadb_url)
    yield made
    made.db.dispose()


def polls_of(magnum: Deployment, cluster: str, since: float) -> list[float]:
    return [p["t"] for p in magnum.log("polls.log", cluster) if p["t"] >= since]


@pytest.mark.parametrize("conductors", [1, 2, 3])
def test_f1_each_cluster_in_progress_is_polled_once_a_cycle(
    magnum: Deployment, fleet: Fleet, conductors: int
) -> None:
    template = magnum.template()
    clusters = [magnum.create({"sandbox_hang": "create"}, template=template) for _ in range(8)]
    for number in range(conductors):
        magnum.start(fleet, f"c{number}-no-broker", NO_BROKER, interval=INTERVAL)
    magnum.until(lambda: len(magnum.log("events.log")) >= 2 * len(clusters))
    began = time.time()

    def span(cluster: str) -> float:
        times = polls_of(magnum, cluster, began)
        return times[-1] - times[0] if times else 0.0

    magnum.until(lambda: all(span(cluster) >= SPAN for cluster in clusters))

    for cluster in clusters:
        times = polls_of(magnum, cluster, began)
        # 0.8 of an interval makes a cluster due again, however many conductors there are;
        # two that do not share would make it twice as many.  A poll is noted a moment
        # after it was due, and this moment is not always the same.
        assert len(times) <= (times[-1] - times[0]) / (0.8 * INTERVAL) + 3


def test_a_dead_conductors_share_moves_to_the_others(magnum: Deployment, fleet: Fleet) -> None:
    template = magnum.template()
    clusters = [magnum.create({"sandbox_hang": "create"}, template=template) for _ in range(4)]
    first = magnum.start(fleet, "one-no-broker", NO_BROKER, interval=INTERVAL)
    magnum.until(lambda: all(polls_of(magnum, c, 0) for c in clusters))
    magnum.start(fleet, "two-no-broker", NO_BROKER, interval=INTERVAL)
    first.kill()
    killed = time.time()

    # Two cycles and the time that the dead one's leases last, on a machine with nothing else to do.
    magnum.until(
        lambda: all(polls_of(magnum, c, killed) for c in clusters),
        timeout=10 * (2 * INTERVAL + LEASE),
    )


def test_a_slow_cluster_delays_no_other(magnum: Deployment, fleet: Fleet) -> None:
    template = magnum.template()
    slow = magnum.create({"sandbox_poll_sleep": "100"}, template=template)
    magnum.start(fleet, "one-no-broker", NO_BROKER)
    magnum.until(lambda: polls_of(magnum, slow, 0))
    quick = magnum.create({"sandbox_polls": "1"}, template=template)
    # Two cycles, not the hundred seconds that the slow one takes.
    magnum.until_status(quick, "CREATE_COMPLETE", 60)


def test_f22_a_heartbeat_for_each_host(magnum: Deployment, fleet: Fleet) -> None:
    for name in ("one-no-broker", "two-no-broker"):
        magnum.start(fleet, name, NO_BROKER)
    rows = magnum.until(lambda: len(found := magnum.db.read(queries.list_services)) == 2 and found)
    assert sorted((r.host, r.binary) for r in rows) == [
        ("one-no-broker", "magnum-conductor"),
        ("two-no-broker", "magnum-conductor"),
    ]
    assert all(row.last_seen_up is not None and row.report_count >= 1 for row in rows)
