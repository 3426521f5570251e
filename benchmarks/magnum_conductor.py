"""What a fleet costs: poll cycles of many clusters in progress, a burst of messages, and idleness.

    python -m benchmarks.magnum_conductor [--clusters 2000] [--conductors 3] [--call 0.1]
        [--casts 1000] [--idle 10000] [--mysql URL]

Conductors are processes with their default concurrency, the database is
MariaDB, the broker RabbitMQ.  The driver is the sandbox driver's script: a
status poll sleeps --call seconds and writes down when it was.  To be run from
the top of the repository, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.support.magnum_conductor import NO_BROKER, Deployment, conductor
from tests.support.processes import Fleet
from trimaran import work
from trimaran.db.models.magnum import Cluster, NodeGroup
from trimaran.magnum import objects, rpc
from trimaran.magnum.conductor.crew import Crew
from trimaran.magnum.conductor.periodic import HealthSync, StatusSync
from trimaran.magnum.operations import KINDS

INTERVAL = 10.0
BATCH = 500
#: the defaults, instead of the tests' short ones
SETTINGS = {"trimaran__work_lease_seconds": "30", "trimaran__work_poll_seconds": "1.0"}


@contextmanager
def database(server: str) -> Iterator[str]:
    """A database of its own, dropped at the end."""
    name = f"trimaran_bench_{uuid.uuid4().hex[:8]}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
    try:
        url = sa.make_url(server).set(database=name)
        yield url.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name}"))
        engine.dispose()


def fill(magnum: Deployment, number: int, status: str, labels: dict[str, str]) -> list[str]:
    """Inserts clusters with their node groups; returns their UUIDs."""
    template = magnum.template()
    uuids = []
    for start in range(0, number, BATCH):
        clusters, groups = [], []
        for index in range(start, min(number, start + BATCH)):
            row = magnum.new_cluster(labels, template=template, name=f"c{index}", status=status)
            sizes = row.pop("_sizes")
            row.pop("_template")
            row["api_address"] = "https://192.0.2.1:6443"
            clusters.append(row)
            groups += [
                {**group, "status": status}
                for group in objects.default_nodegroups(row, template, *sizes)
            ]
            uuids.append(row["uuid"])
        _insert(magnum, Cluster, clusters)
        _insert(magnum, NodeGroup, groups)
    return uuids


def _insert(magnum: Deployment, table: Any, rows: list[dict[str, Any]]) -> None:
    magnum.db.write(lambda session: session.execute(sa.insert(table), rows))


def start(magnum: Deployment, fleet: Fleet, number: int, transport: str | None) -> None:
    """Starts conductors and waits until they receive (those that have a broker)."""
    for index in range(number):
        name = f"c{index}-no-broker" if transport == NO_BROKER else f"c{index}"
        conf = magnum.write_conf(name, transport, **SETTINGS)
        fleet.start(conductor, conf, str(magnum.sandbox), INTERVAL)
    fleet.until(lambda events: len([e for e in events if e.name == "ready"]) == number, 120)


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a log of the driver."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def cycles(magnum: Deployment, number: int, conductors: int, call: float, rounds: int = 4) -> None:
    """Measures poll cycles."""
    uuids = fill(
        magnum,
        number,
        "CREATE_IN_PROGRESS",
        {"sandbox_hang": "create", "sandbox_poll_sleep": str(call)},
    )
    log = magnum.sandbox / "polls.log"
    with Fleet() as fleet:
        began = time.time()
        start(magnum, fleet, conductors, NO_BROKER)
        limit = time.monotonic() + 60 * rounds
        while time.monotonic() < limit:
            time.sleep(2)
            with log.open() if log.exists() else tempfile.TemporaryFile("r") as lines:
                if sum(1 for _ in lines) >= number * rounds:
                    break
        seconds = time.time() - began
    times: dict[str, list[float]] = {name: [] for name in uuids}
    by_process: dict[int, int] = {}
    for poll in records(log):
        times[poll["cluster"]].append(poll["t"])
        by_process[poll["pid"]] = by_process.get(poll["pid"], 0) + 1
    print(f"{number} clusters in progress, {call * 1000:.0f} ms a call, {conductors} conductors")
    for index in range(min(len(found) for found in times.values())):
        turn = [found[index] for found in times.values()]
        print(f"  turn {index + 1}: first to last cluster {max(turn) - min(turn):5.1f} s")
    gaps = [b - a for found in times.values() for a, b in itertools.pairwise(found)]
    if gaps:
        print(
            f"  between two polls of a cluster: median {statistics.median(gaps):.1f} s, "
            f"least {min(gaps):.1f} s, most {max(gaps):.1f} s"
        )
    counts = [len(found) for found in times.values()]
    print(f"  polls of a cluster in {seconds:.0f} s: {min(counts)} to {max(counts)}")
    print(f"  polls by conductor: {sorted(by_process.values())}")


def burst(magnum: Deployment, number: int, conductors: int) -> None:
    """Measures how long a burst of messages takes to be recorded and begun."""
    uuids = fill(magnum, number, "CREATE_COMPLETE", {"sandbox_hang": "update"})
    log = magnum.sandbox / "events.log"
    with Fleet() as fleet:
        start(magnum, fleet, conductors, None)
        client = rpc.ConductorClient.from_conf(magnum.conf)
        assert client.ping_conductor()
        workers = magnum.db.read(
            lambda s: {
                group.cluster_id: group
                for group in s.scalars(sa.select(NodeGroup).where(NodeGroup.role == "worker"))
            }
        )
        began = time.time()
        # As an upstream API sends them: nothing is recorded before a conductor has the message.
        caller = client._rpc.prepare()
        for name in uuids:
            caller.cast(
                magnum.context,
                "cluster_resize",
                cluster=objects.Cluster(None, uuid=name),
                node_count=2,
                nodes_to_remove=[],
                nodegroup=objects.NodeGroup(None, uuid=workers[name].uuid),
            )
        sent = time.time() - began
        recorded = 0.0
        while True:
            time.sleep(0.5)
            if not recorded:
                asked = magnum.db.read(
                    lambda s: s.scalar(sa.select(sa.func.count()).select_from(work_jobs_of()))
                )
                recorded = time.time() - began if asked is not None and asked >= number else 0.0
            begun = [event for event in records(log) if event["event"] == "resize"]
            if len(begun) >= number or time.time() - began > 300:
                break
        last = max(event["t"] for event in begun) - began
    print(f"{number} messages in a burst, {conductors} conductors")
    print(f"  sent in {sent:.1f} s, all recorded after {recorded:.1f} s")
    print(f"  {len(begun)} begun, the last after {last:.1f} s; each once: {each_once(begun)}")


def work_jobs_of() -> sa.Subquery:
    """The operations' rows."""
    from trimaran.db.models.work import Job

    return sa.select(Job.id).where(Job.kind.in_(KINDS)).subquery()


def each_once(events: list[dict[str, Any]]) -> bool:
    """Whether no cluster is named twice."""
    return len({event["cluster"] for event in events}) == len(events)


def idle(magnum: Deployment, number: int) -> None:
    """Counts the statements of one cycle of an idle fleet."""
    fill(magnum, number, "CREATE_COMPLETE", {})
    crew = Crew.from_conf(magnum.conf)
    runner = work.Runner(crew.db, own=crew.own, name="bench")
    statements: list[str] = []

    def count(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        statements.append(statement.split()[0])

    sa.event.listen(crew.db.engine, "before_cursor_execute", count)
    print(f"{number} clusters at rest, one conductor")
    for name, task in (
        ("status", StatusSync(crew, runner)),
        ("health", HealthSync(crew, runner, lambda: 60.0)),
    ):
        task()
        statements.clear()
        began, cpu = time.perf_counter(), time.process_time()
        task()
        wall, busy = time.perf_counter() - began, time.process_time() - cpu
        print(
            f"  one {name} cycle: {len(statements)} statements, {wall * 1000:.0f} ms, "
            f"{busy * 1000:.0f} ms of CPU"
        )
    crew.close()


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=2000)
    parser.add_argument("--conductors", type=int, default=3)
    parser.add_argument("--call", type=float, default=0.1)
    parser.add_argument("--casts", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--mysql", default="mysql+pymysql://root@127.0.0.1:3306/")
    given = parser.parse_args()
    parts = [
        (given.idle, lambda magnum: idle(magnum, given.idle)),
        (given.casts, lambda magnum: burst(magnum, given.casts, given.conductors)),
        (
            given.clusters,
            lambda magnum: cycles(magnum, given.clusters, given.conductors, given.call),
        ),
    ]
    for number, part in parts:
        if number:
            with tempfile.TemporaryDirectory() as folder, database(given.mysql) as url:
                magnum = Deployment(Path(folder), url)
                part(magnum)
                magnum.db.dispose()


if __name__ == "__main__":
    main()
