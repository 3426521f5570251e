"""Conductors among servers that restart, clocks that differ and files that change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import amqp
import pytest
import sqlalchemy as sa

from tests.support.magnum_conductor import LEASE, NO_BROKER, Deployment, conductor
from tests.support.own_mariadb import OwnMariaDB
from tests.support.processes import PATIENCE, Fleet, Link
from tests.support.servers import AMQP_URL
from trimaran.config import magnum as options
from trimaran.db.models.magnum import X509KeyPair
from trimaran.db.queries import magnum as queries
from trimaran.errors import Unavailable
from trimaran.magnum import objects, rpc
from trimaran.magnum.conductor import service

AHEAD = 300.0
INTERVAL = 1.0


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


def test_a_database_that_is_killed_in_the_middle_loses_nothing(
    tmp_path: Path, free_port: Callable[[], int], fleet: Fleet
) -> None:
    with OwnMariaDB(tmp_path, free_port()) as server:
        magnum = Deployment(tmp_path, server.database("magnum"))
        for name in ("one-no-broker", "two-no-broker"):
            magnum.start(fleet, name, NO_BROKER)
        labels = {"sandbox_polls": "1", "sandbox_sleep": "create:2, resize:2, delete:2"}
        clusters = [magnum.create(labels) for _ in range(3)]

        def cut(event: str) -> None:
            """Kills the server in the middle of the driver's calls."""
            magnum.until(lambda: all(magnum.events(cluster, event) for cluster in clusters))
            server.kill()
            with pytest.raises(Unavailable):
                magnum.db.read(queries.list_services)
            server.start()

        cut("create")
        for cluster in clusters:
            magnum.until_status(cluster, "CREATE_COMPLETE")
            worker = magnum.groups(cluster)["default-worker"].uuid
            magnum.ask(
                "cluster_resize", cluster, node_count=3, nodes_to_remove=[], nodegroup=worker
            )
        cut("resize")
        for cluster in clusters:
            magnum.until_status(cluster, "UPDATE_COMPLETE")
            assert magnum.groups(cluster)["default-worker"].node_count == 3
        count = sa.select(sa.func.count()).select_from(X509KeyPair)
        assert magnum.db.read(lambda s: s.scalar(count)) == 4 * len(clusters)
        for cluster in clusters:
            magnum.delete(cluster)
        cut("delete")
        for cluster in clusters:
            magnum.until_status(cluster, None)
        magnum.until(lambda: magnum.db.read(lambda s: s.scalar(count)) == 0)
        magnum.db.dispose()


def ahead(link: Link, conf_file: str, folder: str, interval: float) -> None:
    """A conductor on a host whose clock is five minutes ahead."""
    from trimaran.db.models import magnum as models
    from trimaran.magnum.certificates import x509
    from trimaran.magnum.notifications import cadf

    real = time.time

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=AHEAD)

    time.time = lambda: real() + AHEAD
    for module in (models, x509, cadf):
        module.datetime = Ahead  # type: ignore[attr-defined]
    assert models.utcnow() - datetime.now(UTC).replace(tzinfo=None) > timedelta(minutes=4)
    conductor(link, conf_file, folder, interval)


def test_a_clock_that_is_five_minutes_ahead_changes_nothing(
    tmp_path: Path, mariadb_url: str, fleet: Fleet
) -> None:
    magnum = Deployment(tmp_path, mariadb_url, lease=LEASE)
    right = magnum.start(fleet, "right-no-broker", NO_BROKER, interval=INTERVAL)
    wrong = fleet.start(
        ahead, magnum.write_conf("wrong-no-broker", NO_BROKER), str(magnum.sandbox), INTERVAL
    )
    fleet.until(lambda events: any(e.pid == wrong.pid for e in events if e.name == "ready"))
    template = magnum.template()
    slow = [
        magnum.create({"sandbox_sleep": f"create:{LEASE + 2}"}, template=template, timeout=1)
        for _ in range(4)
    ]
    watched = [
        magnum.create({"sandbox_hang": "create"}, template=template, timeout=3) for _ in range(12)
    ]

    def times(cluster: str) -> list[float]:
        """When it was polled, by the right clock."""
        return [
            poll["t"] - (AHEAD if poll["pid"] == wrong.pid else 0)
            for poll in magnum.log("polls.log", cluster)
        ]

    def both_have_polled() -> bool:
        return {poll["pid"] for poll in magnum.log("polls.log")} == {right.pid, wrong.pid}

    def span(cluster: str) -> float:
        polls = sorted(times(cluster))
        return polls[-1] - polls[0] if polls else 0.0

    magnum.until(lambda: all(span(cluster) >= 6 * INTERVAL for cluster in watched))
    magnum.until(both_have_polled)
    for cluster in watched:
        polls = sorted(times(cluster))
        # Neither takes the other's lease for one that ended long ago: that would be twice as many.
        # A poll is noted a moment after it was due, and this moment is not always the same.
        assert len(polls) <= (polls[-1] - polls[0]) / (0.8 * INTERVAL) + 3, polls
        # Three minutes are not over, though the clocks are five apart.
        assert magnum.cluster(cluster).status == "CREATE_IN_PROGRESS"
    for cluster in slow:
        magnum.until_status(cluster, "CREATE_COMPLETE")
        # The lease was kept for a call that takes longer, and nobody else took it.
        assert len(magnum.events(cluster, "create")) == 1
    now = magnum.db.read(queries.now)
    for host in magnum.db.read(queries.list_services):
        age = queries.service_age(host, now)
        assert age is not None
        # It is told every minute; five more would be the wrong clock's.
        assert age < timedelta(seconds=200)
    magnum.db.dispose()


def test_f20_sighup_makes_new_intervals_count_at_once(tmp_path: Path) -> None:
    magnum = Deployment(tmp_path, f"sqlite:///{tmp_path}/magnum.sqlite")
    magnum.settings = {"kubernetes__health_polling_interval": "3600"}
    conf = magnum.write_conf("one-no-broker", NO_BROKER)
    process = subprocess.Popen(
        [sys.executable, "-m", "trimaran", "magnum-conductor", "--config-file", conf],
        env={**os.environ, "MAGNUM_SANDBOX_DIR": str(magnum.sandbox)},
        stderr=subprocess.DEVNULL,
    )
    try:
        magnum.until(lambda: magnum.db.read(queries.list_services))
        cluster = magnum.create({"sandbox_health": "HEALTHY", "sandbox_hang": "create"})
        magnum.until(lambda: magnum.log("polls.log", cluster))
        assert magnum.events(cluster, "health") == []

        magnum.settings = {"kubernetes__health_polling_interval": "1"}
        magnum.write_conf("one-no-broker", NO_BROKER)
        process.send_signal(signal.SIGHUP)
        magnum.until(lambda: len(magnum.events(cluster, "health")) >= 3)
        magnum.until(lambda: magnum.cluster(cluster).health_status == "HEALTHY")
    finally:
        process.terminate()
        assert process.wait(60) == 0
    magnum.db.dispose()


@pytest.mark.rabbitmq
def test_quorum_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    magnum = Deployment(tmp_path, f"sqlite:///{tmp_path}/magnum.sqlite")
    monkeypatch.setenv("MAGNUM_SANDBOX_DIR", str(magnum.sandbox))
    conf = options.load(
        [
            magnum.write_conf(
                "quorum",
                oslo_messaging_rabbit__rabbit_quorum_queue="true",
                # A quorum queue outlives its consumers.
                oslo_messaging_rabbit__amqp_auto_delete="false",
            )
        ]
    )
    transport = rpc.open_transport(conf)
    running = service.build(conf, transport, sync_interval=0.4)
    client = rpc.ConductorClient.from_conf(conf)
    url = sa.make_url(AMQP_URL)
    broker = amqp.Connection(f"{url.host}:{url.port}", url.username, url.password)
    broker.connect()
    try:
        running.start()
        assert running.rpc.wait_started(PATIENCE)
        values = magnum.new_cluster({"sandbox_polls": "1"})
        values.pop("_template"), values.pop("_sizes")
        made = objects.Cluster(None, **values)
        client.cluster_create(magnum.context, made, 1, 1, 60)
        magnum.until_status(values["uuid"], "CREATE_COMPLETE")
        pem = client.get_ca_certificate(magnum.context, made)
        assert pem.startswith("-----BEGIN CERTIFICATE-----")
        # The broker refuses to declare a queue with another type than it has.
        with pytest.raises(amqp.PreconditionFailed, match="x-queue-type"):
            broker.channel().queue_declare(magnum.topic, durable=True, auto_delete=False)
    finally:
        client.close()
        running.stop(10)
        transport.cleanup()
        channel = broker.channel()
        for queue in (magnum.topic, f"{magnum.topic}.{running.rpc.name}"):
            channel.queue_delete(queue)
        broker.close()
    magnum.db.dispose()
