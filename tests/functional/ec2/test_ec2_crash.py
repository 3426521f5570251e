"""A process that is killed in the middle of an action, and the one that finishes it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.ports import free_port

FLAVOR = "m1.tiny"
#: Eight are created at the same time: the launch has rounds to go when the first are seen.
COUNT = 32
# Of the one that dies, because the patience with it follows from them: 4 * (2 + 8) seconds.
TIMEOUTS = {"trimaran__connect_timeout": 2.0, "trimaran__read_timeout": 8.0}


@pytest.fixture
def processes(
    cloud_env: CloudEnv, tmp_path: Path, mariadb_url: str, migrated: Callable[[str, str], str]
) -> Iterator[tuple[Daemon, Daemon]]:
    """One that will be killed, and one that stays, on one database."""
    database = migrated(mariadb_url, "ec2")

    def conf(name: str, **more: float) -> tuple[Path, int]:
        home = tmp_path / name
        home.mkdir()
        port = free_port()
        # With EC2-Classic a launch without subnet goes into the project's own network.
        options = {"ec2api_listen_port": port, "disable_ec2_classic": False, **more}
        return write_conf(home, cloud_env, database, **options), port

    with (
        running("ec2-api", *conf("stays")) as other,
        running("ec2-api", *conf("dies", **TIMEOUTS), dies=True) as victim,
    ):
        yield victim, other


@pytest.fixture
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    """A project with a quota that lets the launch begin."""
    with tenant(cloud_env) as made:
        made.project.own_network()
        made.nova_quota(instances=-1, cores=-1, ram=-1)
        yield made


def _kill(pid: int) -> None:
    """Kills a daemon with its workers, as the end of a host would."""
    daemon = psutil.Process(pid)
    for each in (daemon, *daemon.children(recursive=True)):
        each.kill()


def test_a_launch_whose_process_is_killed_is_undone_by_another(
    processes: tuple[Daemon, Daemon], mine: Tenant
) -> None:
    victim, other = processes
    ec2 = other.client(mine.keys)
    named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
    [image] = ec2.describe_images(Filters=named)["Images"]
    key = f"crash-{uuid.uuid4().hex[:8]}"
    request = {
        "ImageId": image["ImageId"],
        "InstanceType": FLAVOR,
        "MinCount": COUNT,
        "MaxCount": COUNT,
        "ClientToken": key,
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "crash", "Value": key}]}
        ],
    }
    only = {"Filters": [{"Name": "client-token", "Values": [key]}]}

    def shown() -> list[Any]:
        """The launch's reservations."""
        return list(ec2.describe_instances(**only)["Reservations"])

    with ThreadPoolExecutor(1) as pool:
        launch = pool.submit(victim.client(mine.keys).run_instances, **request)
        until(mine.servers, pause=0.1)
        _kill(victim.process.pid)
        with pytest.raises(BotoCoreError):
            launch.result()
    # Until another process does something about it, the launch is what it is.
    assert shown()
    until(lambda: shown() == [], 300)
    until(lambda: not mine.servers(), 300)
    tags = ec2.describe_tags(Filters=[{"Name": "key", "Values": ["crash"]}])["Tags"]
    assert tags == []
    # The client's retry is a launch of its own.
    again = ec2.run_instances(**{**request, "MinCount": 1, "MaxCount": 1})
    [made] = again["Instances"]
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
