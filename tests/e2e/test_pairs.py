"""Two processes of each daemon on one MariaDB and one broker, as they are deployed.

A pair is one service: what one process accepted, the other knows at once, and
when one is killed, the other goes on with what it had begun.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.conftest import _database
from tests.support import ec2 as ec2_support
from tests.support import magnum_daemons
from tests.support.cloud import DEMO, CloudEnv
from tests.support.console_service import SECRET, Console, eventually
from tests.support.ec2 import Daemon, keys_of, running
from tests.support.magnum_daemons import LATEST, Magnum, image
from tests.support.ports import free_port
from tests.support.servers import AMQP_URL
from trimaran.db import migrate

NAMES = ("one", "two")


@dataclass
class Deployment:
    """Every daemon twice.

    Attributes:
        consoles, ec2, metadata, s3, magnum: the two processes of each.
        conductors: the two conductors.
    """

    cloud: CloudEnv
    consoles: list[Console]
    ec2: list[Daemon]
    metadata: list[Daemon]
    s3: list[Daemon]
    magnum: list[Daemon]
    conductors: list[subprocess.Popen[bytes]]
    logs: list[Path]

    def client(self, daemon: Daemon, service: str = "ec2") -> Any:
        options = {"s3": {"addressing_style": "path"}} if service == "s3" else {}
        return daemon.client(keys_of(self.cloud), service, **options)

    def of_magnum(self, which: int) -> Magnum:
        """One of the two APIs, as something to ask."""
        url = self.magnum[which].url
        return Magnum(f"{url}/v1", self.logs[0].parent, self.cloud, Path(), {}, {})


@pytest.fixture(scope="module")
def pairs(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    home = tmp_path_factory.mktemp("pairs")
    database = contextlib.contextmanager(_database)
    with database("mariadb", home) as url, contextlib.ExitStack() as on:
        migrate.upgrade(url, "all")
        yield _start(on, home, cloud_env, url)


def _start(on: contextlib.ExitStack, home: Path, cloud: CloudEnv, url: str) -> Deployment:
    topic = f"magnum-pairs-{uuid.uuid4().hex}"
    places = [home / name for name in NAMES]
    for place in places:
        place.mkdir()
    skyline = {
        "default": {"database_url": url, "secret_key": SECRET, "log_file": "/dev/stdout"},
        "openstack": {
            "keystone_url": cloud.auth_url,
            "system_user_password": "password",
            "default_region": cloud.region,
        },
        "trimaran": {"threads": 8},
    }
    consoles = [Console(place / "console", free_port(), skyline, 1) for place in places]
    for console in consoles:
        on.callback(console.kill)
    found: dict[str, list[Daemon]] = {}
    options = {"ec2-api": "ec2api_listen_port", "ec2-metadata": "metadata_listen_port"}
    with ThreadPoolExecutor(8) as pool:
        begun = []
        for place in places:
            for command in (*options, "ec2-s3", "magnum-api"):
                # Ends what has begun, also when another one does not begin.
                stack = on.enter_context(contextlib.ExitStack())
                folder = place / command
                folder.mkdir()
                port = free_port()
                if command == "magnum-api":
                    conf = magnum_daemons.write_conf(
                        folder, cloud, url, AMQP_URL, port, conductor__topic=topic
                    )
                else:
                    # A launch without subnet goes into the project's own network.
                    more = {
                        options.get(command, "s3_listen_port"): port,
                        "disable_ec2_classic": False,
                    }
                    conf = ec2_support.write_conf(folder, cloud, url, state_path=str(home), **more)
                begun.append((command, pool.submit(_enter, stack, command, conf, port, home)))
        for command, future in begun:
            found.setdefault(command, []).append(future.result())
    conductors, logs = [], []
    for place in places:
        folder = place / "conductor"
        folder.mkdir()
        conf = magnum_daemons.write_conf(folder, cloud, url, AMQP_URL, 0, conductor__topic=topic)
        logs.append(folder / "log")
        conductors.append(on.enter_context(_conductor(conf, logs[-1], home)))
    for console in consoles:
        console.wait_until_ready()
    return Deployment(
        cloud,
        consoles,
        found["ec2-api"],
        found["ec2-metadata"],
        found["ec2-s3"],
        found["magnum-api"],
        conductors,
        logs,
    )


def _enter(stack: contextlib.ExitStack, command: str, conf: Path, port: int, home: Path) -> Daemon:
    # Magnum's API and conductors load the same drivers.
    driver = {"MAGNUM_SANDBOX_DIR": str(home / "driver")}
    return stack.enter_context(running(command, conf, port, **driver))


@contextlib.contextmanager
def _conductor(conf: Path, log: Path, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "trimaran", "magnum-conductor", "--config-file", str(conf)]
    environment = {**os.environ, "MAGNUM_SANDBOX_DIR": str(home / "driver")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(120)


def _events(log: Path, cluster: str) -> list[dict[str, Any]]:
    """What the driver was asked to do for a cluster."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [row for row in map(json.loads, lines) if row["cluster"] == cluster]


def test_every_process_finds_its_parts(pairs: Deployment) -> None:
    bases = [console.base for console in pairs.consoles]
    bases += [d.url for d in (*pairs.ec2, *pairs.metadata, *pairs.s3, *pairs.magnum)]
    for base in bases:
        answer = requests.get(f"{base}/healthcheck?detailed", timeout=120)
        assert answer.status_code == 200, (base, answer.text)


def test_a_session_ends_in_both_consoles(pairs: Deployment) -> None:
    one, two = pairs.consoles
    cookie = one.login().cookies["session"]
    assert [each.profile(cookie).status_code for each in (one, two)] == [200, 200]
    assert two.logout(cookie).status_code == 200
    assert [each.profile(cookie).status_code for each in (one, two)] == [401, 401]


def test_an_instance_has_one_id_everywhere(pairs: Deployment) -> None:
    one, two = (pairs.client(each) for each in pairs.ec2)
    named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
    images = one.describe_images(Filters=named)["Images"]
    launched = one.run_instances(
        ImageId=images[0]["ImageId"], InstanceType="m1.tiny", MinCount=1, MaxCount=1
    )["Instances"][0]
    identifier = launched["InstanceId"]
    two.get_waiter("instance_running").wait(
        InstanceIds=[identifier], WaiterConfig={"Delay": 1, "MaxAttempts": 300}
    )
    [shown] = two.describe_instances(InstanceIds=[identifier])["Reservations"][0]["Instances"]
    address = shown["PrivateIpAddress"]
    servers = pairs.cloud.call(DEMO, "compute", "GET", f"/servers?name=^{identifier}$")["servers"]
    server = servers[0]["id"]
    headers = {
        "X-Instance-ID": server,
        "X-Tenant-ID": str(pairs.cloud.session(DEMO).get_project_id()),
        "X-Instance-ID-Signature": hmac.new(b"s3cret", server.encode(), hashlib.sha256).hexdigest(),
        "X-Forwarded-For": address,
    }
    path = "/latest/meta-data/instance-id"
    told = [
        requests.get(f"{each.url}{path}", headers=headers, timeout=60).text
        for each in pairs.metadata
    ]
    assert told == [identifier, identifier]
    two.terminate_instances(InstanceIds=[identifier])
    one.get_waiter("instance_terminated").wait(
        InstanceIds=[identifier], WaiterConfig={"Delay": 1, "MaxAttempts": 300}
    )


def test_an_object_is_in_both_stores(pairs: Deployment) -> None:
    one, two = (pairs.client(each, "s3") for each in pairs.s3)
    bucket = f"pairs-{uuid.uuid4().hex[:8]}"
    one.create_bucket(Bucket=bucket)
    two.put_object(Bucket=bucket, Key="key", Body=b"data")
    assert one.get_object(Bucket=bucket, Key="key")["Body"].read() == b"data"
    one.delete_object(Bucket=bucket, Key="key")
    two.delete_bucket(Bucket=bucket)


def test_a_killed_process_of_each_leaves_a_service(pairs: Deployment) -> None:
    """Last: it kills."""
    first, second = pairs.of_magnum(0), pairs.of_magnum(1)
    driver_log = pairs.logs[0].parents[2] / "driver" / "events.log"
    with image(pairs.cloud) as distro:
        template = first.call(
            "POST",
            "/clustertemplates",
            json={
                "name": "pairs",
                "coe": "kubernetes",
                "image_id": distro,
                "flavor_id": "m1.tiny",
                "master_flavor_id": "m1.tiny",
                "external_network_id": "public",
                "labels": {"sandbox_sleep": "create:3"},
            },
        )
        assert template.status_code == 201, template.text
        template_id = template.json()["uuid"]
        made = first.call(
            "POST", "/clusters", json={"cluster_template_id": template_id, "name": "pairs"}
        )
        assert made.status_code == 202, made.text
        cluster = made.json()["uuid"]
        # A conductor is killed in the middle of the create, whichever took it.
        eventually(lambda: _events(driver_log, cluster), "the driver is asked to create")
        owner = next(
            process
            for process in pairs.conductors
            if any(row["pid"] == process.pid for row in _events(driver_log, cluster))
        )
        owner.kill()
        owner.wait(60)
        for daemon in (pairs.ec2[0], pairs.metadata[0], pairs.s3[0], pairs.magnum[0]):
            daemon.kill()
        pairs.consoles[0].kill()

        assert pairs.consoles[1].profile(pairs.consoles[1].login().cookies["session"]).ok
        assert pairs.client(pairs.ec2[1]).describe_instances()["Reservations"] is not None
        assert requests.get(f"{pairs.metadata[1].url}/", timeout=60).text.endswith("latest")
        assert pairs.client(pairs.s3[1], "s3").list_buckets()["Buckets"] == []
        second.wait_for(cluster, "CREATE_COMPLETE")
        assert second.call("DELETE", f"/clusters/{cluster}").status_code == 204
        second.wait_for(cluster, "gone")
        headers = {"X-Auth-Token": pairs.cloud.session(DEMO).get_token(), **LATEST}
        url = f"{second.url}/clustertemplates/{template_id}"
        assert requests.delete(url, headers=headers, timeout=60).status_code == 204
