"""Poll cycles of one and two conductors, side by side with magnum 23.0.0.

    python -m benchmarks.magnum_conductor_peer --peer VENV --amqp URL [--clusters 300]
        [--call 0.05] [--conductors 1 2] [--seconds 90]

VENV is an environment with ``magnum==23.0.0`` and PyMySQL, URL a virtual host
of RabbitMQ that nobody else uses.  Both work on the same MariaDB database and
run the same driver, whose status poll sleeps --call seconds and writes down
when it was; clusters stay in progress.  Conductors are the daemons as an
operator starts them, with one RPC worker.  To be run from the top of the
repository with TRIMARAN_SANDBOX set, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from benchmarks.magnum_conductor import fill

from tests import conftest
from tests.support.cloud import CloudEnv
from tests.support.magnum_conductor import Deployment
from tests.support.magnum_upstream import Upstream, upstream
from tests.support.servers import STATE
from trimaran.magnum.conductor.periodic.status import INTERVAL


def cpu(made: Upstream) -> float:
    """CPU seconds of the running conductors until now."""
    total = 0.0
    for running in made.magnum.processes.values():
        parent = psutil.Process(running.pid)
        for process in (parent, *parent.children(recursive=True)):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def measure(
    made: Upstream, peer: str, number: int, seconds: float, clusters: list[str]
) -> dict[str, Any]:
    """Runs conductors of one kind for some time; what their polls tell."""
    log = made.driver / "polls.log"
    log.unlink(missing_ok=True)
    for index in range(number):
        host = f"{peer.split()[0]}-{number}-{index}"
        if peer == "ours":
            conf = str(made.write_conf(host))
            made.magnum.start(host, "-m", "trimaran", "magnum-conductor", "--config-file", conf)
        else:
            made.start_conductor(host)
    deadline = time.monotonic() + 120
    while not log.exists():
        made.magnum.check()
        assert time.monotonic() < deadline, made.magnum.said()
        time.sleep(0.1)
    before, began = cpu(made), time.monotonic()
    time.sleep(seconds)
    made.magnum.check()
    busy, took = cpu(made) - before, time.monotonic() - began
    polls = [json.loads(line) for line in log.read_text().splitlines()]
    made.stop()
    start = min(poll["t"] for poll in polls)
    times: dict[str, list[float]] = {name: [] for name in clusters}
    for poll in polls:
        if poll["t"] <= start + seconds:
            times[poll["cluster"]].append(poll["t"] - start)
    firsts = [min(found) for found in times.values() if found]
    gaps = [b - a for found in times.values() for a, b in itertools.pairwise(sorted(found))]
    # Polls that follow each other closely are of one cycle, by several conductors.
    cycles = [gap for gap in gaps if gap > INTERVAL / 2]
    total = sum(map(len, times.values()))
    return {
        "peer": peer,
        "conductors": number,
        "first": max(firsts) if len(firsts) == len(clusters) else float("nan"),
        "period": statistics.median(cycles) if cycles else float("nan"),
        "polls": total / max(1, len(firsts) + len(cycles)),
        "cpu": busy / took * 100,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Prints the table."""
    print("| conductors | | polls of a cluster in a cycle | first cycle s "
          "| from cycle to cycle s | CPU % |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for row in results:
        print(
            f"| {row['conductors']} | {row['peer']} | {row['polls']:.2f} | {row['first']:.1f} "
            f"| {row['period']:.1f} | {row['cpu']:.0f} |"
        )


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", required=True, help="environment of magnum 23.0.0")
    parser.add_argument("--amqp", required=True, help="URL of a virtual host of its own")
    parser.add_argument("--clusters", type=int, default=300)
    parser.add_argument("--call", type=float, default=0.05, help="seconds of a driver's call")
    parser.add_argument("--conductors", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=90.0, help="of each measurement")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        url = stack.enter_context(contextlib.contextmanager(conftest._database)("mariadb", folder))
        made = stack.enter_context(upstream(given.peer, given.amqp, folder, CloudEnv(STATE), url))
        (folder / "rows").mkdir()
        magnum = Deployment(folder / "rows", url)
        labels = {"sandbox_hang": "create", "sandbox_poll_sleep": str(given.call)}
        clusters = fill(magnum, given.clusters, "CREATE_IN_PROGRESS", labels)
        magnum.db.dispose()
        results = [
            measure(made, peer, number, given.seconds, clusters)
            for number in given.conductors
            for peer in ("ours", "magnum 23.0.0")
        ]
    print(
        f"{given.clusters} clusters in progress, a driver's call takes {given.call * 1000:.0f} ms"
    )
    show(results)


if __name__ == "__main__":
    main()
