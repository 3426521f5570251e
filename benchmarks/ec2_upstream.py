"""DescribeInstances and DescribeVolumes beside ec2-api 17, on the same cloud in the same run.

    python benchmarks/ec2_upstream.py --upstream VENV --paste API-PASTE.INI \
        [--instances 150 500 1000] [--rounds 5] [--latency 0.05] [--per-row 0.001]

Both services run as daemons with one process and SQLite in front of the cloud
of prepared answers (`ec2_cloud`); a boto3 client asks each in turn for all
instances, for one of them, and for all volumes.  Printed are the median of the
wall times, the backend calls of one request (token check included), and how
many times faster ours is.  ``--upstream`` is a virtual environment with
ec2-api 17.0.0 and the libraries of its time; without it only ours is measured.
``TRIMARAN_BENCHMARK_VERBOSE=1`` also prints which calls those are.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from ec2_cloud import cloud

CONF = """
[DEFAULT]
state_path = {home}
api_paste_config = {paste}
my_ip = 127.0.0.1
ec2api_listen = 127.0.0.1
ec2api_listen_port = {port}
ec2api_workers = 1
ec2_host = 127.0.0.1
keystone_ec2_tokens_url = {cloud}/v3/ec2tokens
disable_ec2_classic = False
[database]
connection = sqlite:///{home}/ec2.sqlite
[keystone_authtoken]
auth_type = password
auth_url = {cloud}/v3
username = ec2api
password = x
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne
[oslo_concurrency]
lock_path = {home}
"""
#: Issue's goals: how many times faster than upstream.
GOALS = {"all instances": 2.5, "one instance": 5.0, "all volumes": 3.0}


@dataclass(frozen=True)
class Figure:
    """What one question cost."""

    seconds: float
    calls: int


@contextlib.contextmanager
def daemon(
    name: str, home: Path, cloud_url: str, paste: str, migrate: Sequence[str], serve: Sequence[str]
) -> Iterator[Any]:
    """Runs an EC2 API; yields a boto3 client of it.

    Args:
        name: for messages.
        home: its directory.
        cloud_url: the cloud.
        paste: upstream's paste file.
        migrate: command that makes the schema, in front of ``--config-file``.
        serve: the daemon's command.
    """
    home.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    conf = home / "ec2api.conf"
    conf.write_text(CONF.format(home=home, port=port, cloud=cloud_url, paste=paste))
    env = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    log = home / "log"
    with log.open("wb") as output:
        at = {"stdout": output, "stderr": subprocess.STDOUT, "env": env}
        command = [*migrate[:1], "--config-file", str(conf), *migrate[1:]]
        subprocess.run(command, check=True, timeout=120, **at)
        process = subprocess.Popen([*serve, "--config-file", str(conf)], **at)
    try:
        _wait(name, port, process, log)
        yield boto3.client(
            "ec2",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="RegionOne",
            aws_access_key_id="a",
            aws_secret_access_key="s",
            config=Config(retries={"max_attempts": 0}, read_timeout=300, proxies={}),
        )
    except BaseException:
        print(f"--- {name}\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
        raise
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(name: str, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{name} did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.1)


def asked(cloud_url: str) -> list[str]:
    """The cloud's requests since the last time."""
    with urllib.request.urlopen(f"{cloud_url}/control", timeout=60) as answer:
        return list(json.load(answer))


def measure(client: Any, cloud_url: str, instances: int, rounds: int) -> dict[str, Figure]:
    """The figures of one service; its first describes, which store the items, are not counted."""
    rows = client.describe_instances()["Reservations"]
    found = [each["InstanceId"] for row in rows for each in row["Instances"]]
    assert len(found) == instances, len(found)
    assert len(client.describe_volumes()["Volumes"]) == instances

    def figure(run: Callable[[], Any]) -> Figure:
        run()
        asked(cloud_url)
        run()
        calls = asked(cloud_url)
        if os.environ.get("TRIMARAN_BENCHMARK_VERBOSE"):
            print("\n".join(calls), file=sys.stderr)
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        return Figure(statistics.median(times), len(calls))

    return {
        "all instances": figure(client.describe_instances),
        "one instance": figure(lambda: client.describe_instances(InstanceIds=found[:1])),
        "all volumes": figure(client.describe_volumes),
    }


def compare(arguments: argparse.Namespace, instances: int) -> None:
    """Prints the rows of one size."""
    with (
        cloud(instances, arguments.latency, arguments.per_row) as cloud_url,
        tempfile.TemporaryDirectory() as directory,
    ):
        home = Path(directory)
        python = [sys.executable, "-m", "trimaran"]
        manage = [str(Path(sys.executable).parent / "ec2-api-manage"), "db_sync"]
        with daemon("ours", home / "ours", cloud_url, "", manage, [*python, "ec2-api"]) as client:
            ours = measure(client, cloud_url, instances, arguments.rounds)
        theirs: Mapping[str, Figure] = {}
        if arguments.upstream:
            place = Path(arguments.upstream).absolute() / "bin"
            manage = [str(place / "ec2-api-manage"), "db_sync"]
            command = [str(place / "ec2-api")]
            paste = str(Path(arguments.paste).absolute())
            with daemon("upstream", home / "theirs", cloud_url, paste, manage, command) as client:
                theirs = measure(client, cloud_url, instances, arguments.rounds)
        slowest = arguments.latency + arguments.per_row * instances
        for name, mine in ours.items():
            line = f"{instances:>9}  {name:<14} {mine.seconds * 1000:>8.0f} {mine.calls:>6}"
            if name in theirs:
                other = theirs[name]
                ratio = other.seconds / mine.seconds
                line += f" {other.seconds * 1000:>10.0f} {other.calls:>6}"
                line += f" {ratio:>6.1f} x (goal {GOALS[name]})"
            print(line)
        allowed = 1.3 * slowest + 0.001 * instances
        whole = ours["all instances"].seconds
        print(f"{instances:>9}  all / (1.3 x slowest listing + 1 ms each) = {whole / allowed:.2f}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Describes beside ec2-api 17.")
    parser.add_argument("--upstream", help="virtual environment with ec2-api 17.0.0")
    parser.add_argument("--paste", default="", help="its etc/ec2api/api-paste.ini")
    parser.add_argument("--instances", type=int, nargs="+", default=[150, 500, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds per answer")
    parser.add_argument("--per-row", type=float, default=0.001, help="seconds per listed row")
    arguments = parser.parse_args()
    print("instances  what            ours ms  calls  theirs ms  calls  times faster")
    for instances in arguments.instances:
        compare(arguments, instances)


if __name__ == "__main__":
    main()
