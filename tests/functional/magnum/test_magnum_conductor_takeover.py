"""Conductors that are killed, brokers that are away: nothing that was accepted is lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.magnum_conductor import NO_BROKER, Deployment, cuttable_broker
from tests.support.processes import Fleet
from trimaran.config import magnum as options
from trimaran.db.models.magnum import X509KeyPair
from trimaran.db.models.work import Job
from trimaran.magnum import objects, rpc


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


@pytest.fixture
def magnum(tmp_path: Path, magnum_url: str) -> Iterator[Deployment]:
    made = Deployment(tmp_path, magnum_url)
    yield made
    made.db.dispose()


@pytest.fixture
def magnum_on_mariadb(tmp_path: Path, magnum_mariadb_url: str) -> Iterator[Deployment]:
    made = Deployment(tmp_path, magnum_mariadb_url)
    yield made
    made.db.dispose()


def count(magnum: Deployment, model: Any) -> int:
    return int(
        magnum.db.read(lambda s: s.scalar(sa.select(sa.func.count()).select_from(model))) or 0
    )


def killed_during(magnum: Deployment, fleet: Fleet, cluster: str, event: str) -> int:
    """Kills the conductor that is in this call of the driver; returns its process id."""
    begun = magnum.until(lambda: magnum.events(cluster, event))
    victim = next(child for child in fleet.children if child.pid == begun[0]["pid"])
    victim.kill()
    return victim.pid


def test_create_goes_on_when_its_conductor_is_killed(magnum: Deployment, fleet: Fleet) -> None:
    magnum.start(fleet, "one")
    magnum.start(fleet, "two")
    cluster = magnum.create({"sandbox_sleep": "create:60"})
    dead = killed_during(magnum, fleet, cluster, "create")
    magnum.relabel(cluster, sandbox_polls="1")

    row = magnum.until_status(cluster, "CREATE_COMPLETE")

    done = magnum.events(cluster, "create-done")
    assert [e["pid"] == dead for e in done] == [False]
    assert row.stack_id == f"sandbox-{cluster}"
    assert {g.status for g in magnum.groups(cluster).values()} == {"CREATE_COMPLETE"}
    assert count(magnum, X509KeyPair) == 4
    jobs = magnum.db.read(lambda s: s.scalars(sa.select(Job)).all())
    assert [(j.kind, j.state, j.payload["token"]) for j in jobs] == [
        ("magnum.cluster_create", "done", None)
    ]


def test_delete_goes_on_when_its_conductor_is_killed(
    magnum_on_mariadb: Deployment, fleet: Fleet
) -> None:
    magnum = magnum_on_mariadb
    magnum.start(fleet, "one")
    magnum.start(fleet, "two")
    cluster = magnum.create({"sandbox_sleep": "delete:60"})
    magnum.until_status(cluster, "CREATE_COMPLETE")

    magnum.delete(cluster)
    dead = killed_during(magnum, fleet, cluster, "delete")
    magnum.relabel(cluster, sandbox_polls="1")
    magnum.until_status(cluster, None)

    calls = magnum.events(cluster, "delete")
    assert calls[-1]["pid"] != dead
    finished = magnum.events(cluster, "finish")[-1]
    assert (finished["pid"] != dead, finished["status"]) == (True, "DELETE_COMPLETE")
    assert magnum.groups(cluster) == {}
    assert count(magnum, X509KeyPair) == 0


def test_operations_run_and_hints_cost_nothing_without_a_broker(
    magnum_on_mariadb: Deployment, fleet: Fleet
) -> None:
    magnum = magnum_on_mariadb
    magnum.start(fleet, "no-broker", NO_BROKER)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"rabbit://guest:guest@127.0.0.1:{silent.getsockname()[1]}/"
        client = rpc.ConductorClient.from_conf(magnum.conf, rpc.open_transport(magnum.conf, url))
        cluster = magnum.create({"sandbox_polls": "1"})
        began = time.monotonic()
        for _ in range(10):
            client.cluster_create(
                magnum.context, objects.Cluster(None, uuid=cluster), 1, 1, 60, operation="op"
            )
        # Who waited for this broker would do so for five seconds, each time.
        assert time.monotonic() - began < 25
        magnum.until_status(cluster, "CREATE_COMPLETE")
        client.close()


def test_messages_arrive_again_when_the_broker_is_back(
    magnum_on_mariadb: Deployment, fleet: Fleet
) -> None:
    magnum = magnum_on_mariadb
    with cuttable_broker() as (way, url):
        magnum.start(fleet, "one", url)
        # What is lost on its way while the way is mended is soon asked again.
        hasty = options.load([magnum.write_conf("api", DEFAULT__rpc_response_timeout="20")])
        client = rpc.ConductorClient.from_conf(hasty)
        magnum.until(client.ping_conductor)

        way.cut()
        cluster = magnum.create({"sandbox_polls": "1"})
        magnum.until_status(cluster, "CREATE_COMPLETE")
        way.mend()

        magnum.until(client.ping_conductor)
        pem = client.get_ca_certificate(magnum.context, objects.Cluster(None, uuid=cluster))
        assert pem.startswith("-----BEGIN CERTIFICATE-----")
        client.close()


def test_a_stopping_conductor_hands_its_operation_over(
    magnum_on_mariadb: Deployment, fleet: Fleet
) -> None:
    magnum = magnum_on_mariadb
    first = magnum.start(fleet, "one")
    cluster = magnum.create({"sandbox_sleep": "create:1"})
    magnum.until(lambda: magnum.events(cluster, "create"))
    first.say("stop")
    fleet.until(lambda events: [e for e in events if e.name == "stopped"])

    magnum.start(fleet, "two")
    magnum.until_status(cluster, "CREATE_COMPLETE")
    assert len(magnum.events(cluster, "create-done")) == 1
