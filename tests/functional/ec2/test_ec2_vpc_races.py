"""The default VPC with two processes on one database: asked for at once, and one of them killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError

from tests.conftest import _database
from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_project import Project, fresh_project
from tests.support.ec2_tenant import until
from tests.support.ports import free_port
from trimaran.db import migrate

LOOKS = 20


@pytest.fixture
def project(cloud_env: CloudEnv) -> Iterator[Project]:
    with fresh_project(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def processes(
    cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Daemon, Daemon]]:
    """One process that stays and one that the last test kills, on one database."""
    home = tmp_path_factory.mktemp("ec2-vpc-races")

    def start(name: str, *, dies: bool = False) -> Any:
        (home / name).mkdir()
        port = free_port()
        options = {"ec2api_listen_port": port, "trimaran__threads": 20}
        conf = write_conf(home / name, cloud_env, database, **options)
        return running("ec2-api", conf, port, dies=dies)

    with contextlib.contextmanager(_database)("mariadb", home) as database:
        migrate.upgrade(database, "ec2")
        with start("stays") as other, start("dies", dies=True) as victim:
            yield other, victim


def _kill(daemon: Daemon) -> None:
    process = psutil.Process(daemon.process.pid)
    for each in (process, *process.children(recursive=True)):
        each.kill()


def _is_whole(client: Any, project: Project) -> str:
    """One default VPC, with all that belongs to it and nothing else in Neutron; its id."""
    [vpc] = client.describe_vpcs()["Vpcs"]
    [subnet] = client.describe_subnets()["Subnets"]
    [igw] = client.describe_internet_gateways()["InternetGateways"]
    [table] = client.describe_route_tables()["RouteTables"]
    assert vpc["IsDefault"]
    assert {subnet["VpcId"], table["VpcId"], igw["Attachments"][0]["VpcId"]} == {vpc["VpcId"]}
    assert [route["State"] for route in table["Routes"]] == ["active", "active"]
    left = project.left()
    assert (left["routers"], left["subnets"]) == ({vpc["VpcId"]}, {subnet["SubnetId"]})
    assert left["networks"] == {subnet["SubnetId"]}
    assert left["ports"] == {subnet["SubnetId"]}
    assert left["security-groups"] == {"default", vpc["VpcId"]}
    return str(vpc["VpcId"])


def test_twenty_first_looks_at_two_processes_make_one(
    processes: tuple[Daemon, Daemon], project: Project
) -> None:
    clients = [daemon.client(project.keys) for daemon in processes]

    def look(number: int) -> list[str]:
        client = clients[number % 2]
        if number % 4 < 2:
            return [row["VpcId"] for row in client.describe_vpcs()["Vpcs"]]
        return [row["VpcId"] for row in client.describe_subnets()["Subnets"]]

    with ThreadPoolExecutor(LOOKS) as pool:
        seen = list(pool.map(look, range(LOOKS)))
    vpc = _is_whole(clients[0], project)
    assert seen == [[vpc]] * LOOKS


def test_what_a_killed_process_began_is_finished_by_the_other(
    processes: tuple[Daemon, Daemon], project: Project
) -> None:
    other, victim = processes
    with ThreadPoolExecutor(1) as pool:
        look = pool.submit(victim.client(project.keys).describe_vpcs)
        until(lambda: project.listed("networks"), pause=0.05)
        _kill(victim)
        with contextlib.suppress(BotoCoreError):
            pytest.fail(f"the victim answered: {look.result()}")
    _is_whole(other.client(project.keys), project)
