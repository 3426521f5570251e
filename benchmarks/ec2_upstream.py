"""DescribeInstances and DescribeVolumes beside ec2-api 17, on the same cloud in the same run.

    python -m benchmarks.ec2_upstream --upstream VENV --paste API-PASTE.INI \
        [--rounds 5] \
        (--state .sandbox --fleet FILE [--make | --remove] |
         [--instances 150 500 1000] [--latency 0.05] [--per-row 0.001])

Both services run as daemons with one process and SQLite; a client signs with
SigV4 and asks each in turn for all instances, for one of them, and for all
volumes.  Printed are the median of the times until the whole answer is here
(boto3's parsing of it, which takes as long as either service, is left out), the
backend calls of one request (token check included), and how many times faster
ours is.  With ``--state`` the cloud is a
real one with 150 servers and 150 volumes, which ``--make`` and ``--remove``
make and remove, and both services reach it by way of `ec2_between`; otherwise
it is one of prepared answers (`ec2_cloud`).  Without ``--upstream`` only ours is
measured.  ``TRIMARAN_BENCHMARK_VERBOSE=1`` also prints which calls those are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import requests
from benchmarks import ec2_fleet, ec2_peer
from benchmarks.ec2_between import between
from benchmarks.ec2_cloud import cloud
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from tests.support.cloud import CloudEnv

#: Issue's goals: how many times faster than upstream.
GOALS = {"all instances": 2.5, "one instance": 5.0, "all volumes": 3.0}
FLEET = 150

Told = Callable[[], list[str]]


@dataclass(frozen=True)
class Figure:
    """What one question cost."""

    seconds: float
    calls: int


def measure(
    url: str, keys: tuple[str, str], told: Told, count: int, rounds: int
) -> dict[str, Figure]:
    """The figures of one service; its first describes, which store the items, are not counted."""
    client = boto3.client(
        "ec2",
        endpoint_url=url,
        region_name="RegionOne",
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        config=Config(retries={"max_attempts": 0}, read_timeout=300, proxies={}),
    )
    rows = client.describe_instances()["Reservations"]
    found = [each["InstanceId"] for row in rows for each in row["Instances"]]
    assert len(found) == count, len(found)
    assert client.describe_volumes()["Volumes"]

    def figure(run: Callable[[], Any]) -> Figure:
        run()
        told()
        run()
        calls = told()
        if os.environ.get("TRIMARAN_BENCHMARK_VERBOSE"):
            print("\n".join(calls), file=sys.stderr)
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        return Figure(statistics.median(times), len(calls))

    with requests.Session() as session:
        session.trust_env = False

        def ask(action: str, **parameters: str) -> Callable[[], Any]:
            call = {"Action": action, "Version": "2016-11-15", **parameters}
            return lambda: _ask(session, url, keys, call)

        return {
            "all instances": figure(ask("DescribeInstances")),
            "one instance": figure(ask("DescribeInstances", **{"InstanceId.1": found[0]})),
            "all volumes": figure(ask("DescribeVolumes")),
        }


def _ask(session: requests.Session, url: str, keys: tuple[str, str], call: dict[str, str]) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    request = AWSRequest("POST", f"{url}/", data=dict(call), headers=form)
    SigV4Auth(Credentials(*keys), "ec2", "RegionOne").add_auth(request)
    ready = request.prepare()
    answer = session.post(ready.url, ready.body, headers=dict(ready.headers), timeout=300)
    answer.raise_for_status()


@dataclass(frozen=True)
class Place:
    """A cloud with instances.

    Attributes:
        cloud: how to log in.
        auth_url: the Keystone that the services ask.
        told: the cloud's requests since the last time.
        keys: of the project that has the instances.
        count: how many.
        options: of both services.
    """

    cloud: CloudEnv
    auth_url: str
    told: Told
    keys: tuple[str, str]
    count: int
    options: dict[str, Any]


class Prepared(CloudEnv):
    """A cloud of prepared answers, as the services are configured for it."""

    auth_url = ""
    region = "RegionOne"


@contextmanager
def prepared(count: int, latency: float, per_row: float) -> Iterator[Place]:
    """The cloud of prepared answers."""
    with cloud(count, latency, per_row) as url:

        def told() -> list[str]:
            with urllib.request.urlopen(f"{url}/control", timeout=60) as answer:
                return list(json.load(answer))

        options = {"disable_ec2_classic": False}
        yield Place(Prepared(Path()), f"{url}/v3", told, ("a", "s"), count, options)


@contextmanager
def real(env: CloudEnv, file: Path) -> Iterator[Place]:
    """A real cloud with a fleet in it."""
    mine = ec2_fleet.kept(env, file)
    with between(env) as way:
        options = {"disable_ec2_classic": False}
        count = len(mine.nova("GET", "/servers")["servers"])
        yield Place(env, way.auth_url, way.told, mine.keys, count, options)


def compare(place: Place, peer: ec2_peer.Upstream | None, rounds: int) -> dict[str, Figure]:
    """Prints the rows of one size, and returns ours."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)

        def figures(service: AbstractContextManager[str]) -> dict[str, Figure]:
            with service as url:
                return measure(url, place.keys, place.told, place.count, rounds)

        at: tuple[CloudEnv, str] = (place.cloud, place.auth_url)
        ours = figures(ec2_peer.ours(home / "ours", *at, **place.options))
        theirs = {}
        if peer:
            theirs = figures(ec2_peer.upstream(peer, home / "theirs", *at, **place.options))
    for name, mine in ours.items():
        line = f"{place.count:>9}  {name:<14} {mine.seconds * 1000:>8.0f} {mine.calls:>6}"
        if name in theirs:
            other = theirs[name]
            line += f" {other.seconds * 1000:>10.0f} {other.calls:>6}"
            line += f" {other.seconds / mine.seconds:>6.1f} x (goal {GOALS[name]})"
        print(line, flush=True)
    return ours


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Describes beside ec2-api 17.")
    parser.add_argument("--upstream", type=Path, help="virtual environment with ec2-api 17.0.0")
    parser.add_argument("--paste", type=Path, help="its etc/ec2api/api-paste.ini")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--state", type=Path, help="of a running sandbox")
    parser.add_argument("--fleet", type=Path, help="remembers the project with the servers")
    parser.add_argument("--make", action="store_true", help="make the servers, and no more")
    parser.add_argument("--remove", action="store_true", help="remove them, and no more")
    parser.add_argument("--instances", type=int, nargs="+", default=[150, 500, 1000])
    parser.add_argument("--latency", type=float, default=0.05, help="seconds per answer")
    parser.add_argument("--per-row", type=float, default=0.001, help="seconds per listed row")
    arguments = parser.parse_args()
    peer = None
    if arguments.upstream:
        peer = ec2_peer.Upstream(arguments.upstream, arguments.paste)
    head = "instances  what            ours ms  calls  theirs ms  calls  times faster"
    if arguments.state:
        env = CloudEnv(arguments.state)
        if arguments.make:
            ec2_fleet.make(env, arguments.fleet, FLEET)
        elif arguments.remove:
            ec2_fleet.remove(ec2_fleet.kept(env, arguments.fleet), arguments.fleet)
        else:
            print(head)
            with real(env, arguments.fleet) as place:
                compare(place, peer, arguments.rounds)
        return
    print(head)
    for instances in arguments.instances:
        with prepared(instances, arguments.latency, arguments.per_row) as place:
            ours = compare(place, peer, arguments.rounds)
        slowest = arguments.latency + arguments.per_row * instances
        allowed = 1.3 * slowest + 0.001 * instances
        ratio = ours["all instances"].seconds / allowed
        print(f"{instances:>9}  all / (1.3 x slowest listing + 1 ms each) = {ratio:.2f}")


if __name__ == "__main__":
    main()
