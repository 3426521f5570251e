"""A process that is killed in the middle of a launch with interfaces, and the one that ends it."""

from __future__ import annotations

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

COUNT = 4
# Of the one that dies, because the patience with it follows from them: 4 * (2 + 15) seconds.
TIMEOUTS = {"trimaran__connect_timeout": 2.0, "trimaran__read_timeout": 15.0}


@pytest.fixture
def processes(
    cloud_env: CloudEnv, tmp_path: Path, mariadb_url: str, migrated: Callable[[str, str], str]
) -> Iterator[tuple[Daemon, Daemon]]:
    """One that will be killed, and one that stays, on one database."""
    database = migrated(mariadb_url, "ec2")

    def start(name: str, *, dies: bool = False, **more: float) -> Any:
        home = tmp_path / name
        home.mkdir()
        port = free_port()
        conf = write_conf(home, cloud_env, database, ec2api_listen_port=port, **more)
        return running("ec2-api", conf, port, dies=dies)

    with start("stays") as other, start("dies", dies=True, **TIMEOUTS) as victim:
        yield victim, other


@pytest.fixture
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


def _kill(daemon: Daemon) -> None:
    """Kills a daemon with its workers, as the end of a host would."""
    process = psutil.Process(daemon.process.pid)
    for each in (process, *process.children(recursive=True)):
        each.kill()


def test_a_launch_with_interfaces_whose_process_is_killed_is_undone(
    processes: tuple[Daemon, Daemon], mine: Tenant
) -> None:
    victim, other = processes
    ec2 = other.client(mine.keys)
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.1.0/24")["Subnet"]["SubnetId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
    [image] = ec2.describe_images(Filters=named)["Images"]
    before = mine.left()
    interfaces = [
        {"DeviceIndex": 0, "SubnetId": subnet, "AssociatePublicIpAddress": True},
        {"DeviceIndex": 1, "SubnetId": subnet, "DeleteOnTermination": False},
    ]
    request = {
        "ImageId": image["ImageId"],
        "InstanceType": "cirros256",
        "MinCount": COUNT,
        "MaxCount": COUNT,
        "ClientToken": "crash",
        "NetworkInterfaces": interfaces,
    }
    with ThreadPoolExecutor(1) as pool:
        launch = pool.submit(victim.client(mine.keys).run_instances, **request)
        until(lambda: mine.rows("floatingips"))
        _kill(victim)
        with pytest.raises(BotoCoreError):
            launch.result()
    assert mine.left() != before
    until(lambda: mine.left() == before, 400)
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert ec2.describe_addresses()["Addresses"] == []
    assert ec2.describe_instances()["Reservations"] == []
    # The client's retry is a launch of its own.
    [made] = ec2.run_instances(**{**request, "MinCount": 1, "MaxCount": 1})["Instances"]
    assert len(made["NetworkInterfaces"]) == 2
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    until(lambda: not mine.servers())
