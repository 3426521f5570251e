"""A process that is killed in the middle of an action, and the one that finishes it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.support.cloud import DEMO, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ports import free_port
from tests.support.quotas import quota

FLAVOR = "m1.tiny"
#: Eight are created at the same time: the launch has rounds to go when the first are seen.
COUNT = 32
# Short, because the patience with a silent process follows from them: 4 * (2 + 8) seconds.
TIMEOUTS = {"trimaran__connect_timeout": 2.0, "trimaran__read_timeout": 8.0}


@pytest.fixture
def processes(
    cloud_env: CloudEnv, tmp_path: Path, mariadb_url: str, migrated: Callable[[str, str], str]
) -> Iterator[tuple[Daemon, Daemon]]:
    """One that will be killed, and one that stays, on one database."""
    database = migrated(mariadb_url, "ec2")

    def conf(name: str) -> tuple[Path, int]:
        home = tmp_path / name
        home.mkdir()
        port = free_port()
        # With EC2-Classic a launch without subnet goes into the project's own network.
        options = {"ec2api_listen_port": port, "disable_ec2_classic": False, **TIMEOUTS}
        return write_conf(home, cloud_env, database, **options), port

    with (
        running("ec2-api", *conf("stays")) as other,
        running("ec2-api", *conf("dies"), dies=True) as victim,
    ):
        yield victim, other


@pytest.fixture
def _room(cloud_env: CloudEnv) -> Iterator[None]:
    """A quota that lets the launch begin."""
    with quota(cloud_env, "compute", instances=-1, cores=-1, ram=-1):
        yield


def _servers(cloud: CloudEnv, key: str) -> list[str]:
    """Nova ids of the launch's servers, which its key pair tells apart."""
    rows = cloud.call(DEMO, "compute", "GET", "/servers/detail")["servers"]
    return [row["id"] for row in rows if row["key_name"] == key]


def _kill(pid: int) -> None:
    """Kills a daemon with its workers, as the end of a host would."""
    daemon = psutil.Process(pid)
    for each in (daemon, *daemon.children(recursive=True)):
        each.kill()


def _until(question: Callable[[], Any], seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


def _shown(ec2: Any, mine: dict[str, Any]) -> list[Any] | None:
    """The launch's reservations; None while the cloud is too busy with it to say in time."""
    try:
        rows: list[Any] = ec2.describe_instances(**mine)["Reservations"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "Unavailable":
            raise
        return None
    return rows


@pytest.mark.usefixtures("_room")
def test_a_launch_whose_process_is_killed_is_undone_by_another(
    processes: tuple[Daemon, Daemon], cloud_env: CloudEnv
) -> None:
    victim, other = processes
    keys = keys_of(cloud_env)
    ec2 = other.client(keys)
    images = ec2.describe_images(ExecutableUsers=["all"])["Images"]
    key = f"crash-{uuid.uuid4().hex[:8]}"
    ec2.create_key_pair(KeyName=key)
    request = {
        "ImageId": images[0]["ImageId"],
        "InstanceType": FLAVOR,
        "KeyName": key,
        "MinCount": COUNT,
        "MaxCount": COUNT,
        "ClientToken": key,
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "crash", "Value": key}]}
        ],
    }
    mine = {"Filters": [{"Name": "client-token", "Values": [key]}]}
    try:
        with ThreadPoolExecutor(1) as pool:
            launch = pool.submit(victim.client(keys).run_instances, **request)
            _until(lambda: _servers(cloud_env, key), 60)
            _kill(victim.process.pid)
            with pytest.raises(BotoCoreError):
                launch.result()
        # Until another process does something about it, the launch is what it is.
        assert _until(lambda: _shown(ec2, mine), 30)
        _until(lambda: _shown(ec2, mine) == [], 120)
        _until(lambda: not _servers(cloud_env, key), 60)
        tags = ec2.describe_tags(Filters=[{"Name": "key", "Values": ["crash"]}])["Tags"]
        assert tags == []
        # The client's retry is a launch of its own.
        again = ec2.run_instances(**{**request, "MinCount": 1, "MaxCount": 1})
        [made] = again["Instances"]
        ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    finally:
        ec2.delete_key_pair(KeyName=key)
        for server in _servers(cloud_env, key):
            cloud_env.call(DEMO, "compute", "DELETE", f"/servers/{server}", raise_exc=False)
