"""Several describes and launches at once on each database, over a cloud of dictionaries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests_mock as mocking

from tests.support import keystone
from tests.support.ec2_openstack import MINE, THEIRS, Caller, OpenStack, instances_of
from trimaran.cloud import Cloud
from trimaran.db import Database, migrate
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances.instance import describe_instances, terminate_instances
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.ec2.kinds.tag import create_tags, describe_tags


@pytest.fixture
def db(db_url: str) -> Iterator[Database]:
    migrate.upgrade(db_url, "ec2")
    made = Database(db_url, pool_size=12)
    yield made
    made.dispose()


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> OpenStack:
    return OpenStack(requests_mock)


@pytest.fixture
def me(openstack: OpenStack, db: Database, tmp_path: Path) -> Caller:
    cloud = Cloud(keystone.identity(), region=keystone.REGION)
    return Caller(cloud, db, keystone.token(), tmp_path)


@pytest.fixture
def them(openstack: OpenStack, db: Database, tmp_path: Path) -> Caller:
    project = {"id": THEIRS, "name": "theirs", "domain": {"id": "default", "name": "Default"}}
    cloud = Cloud(keystone.identity(), region=keystone.REGION)
    return Caller(cloud, db, keystone.token("their-token", project=project), tmp_path)


def _at_once(*jobs: Callable[[], Any]) -> list[Any]:
    start = threading.Barrier(len(jobs))
    results: list[Any] = [None] * len(jobs)
    failures: list[BaseException] = []

    def run(index: int, job: Callable[[], Any]) -> None:
        try:
            start.wait(30)
            results[index] = job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index, job)) for index, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    return results


def test_ten_first_describes_agree_on_every_id(
    openstack: OpenStack, me: Caller, them: Caller
) -> None:
    """Instances, their volumes, groups and images, in two projects that share images."""
    images = [openstack.image()["id"] for _ in range(3)]
    for number in range(15):
        project = THEIRS if number % 5 == 0 else MINE
        server = openstack.server(project, image={"id": images[number % 3]})
        openstack.volume(server, "/dev/vdb")

    def facts(caller: Caller) -> Callable[[], dict[str, tuple[Any, ...]]]:
        def describe() -> dict[str, tuple[Any, ...]]:
            return {
                each["PrivateDnsName"]: (
                    each["InstanceId"],
                    each["ImageId"],
                    each["BlockDeviceMappings"][0]["Ebs"]["VolumeId"],
                    each["SecurityGroups"][0]["GroupId"],
                )
                for each in instances_of(caller(describe_instances))
            }

        return describe

    def image_ids(caller: Caller) -> Callable[[], set[str]]:
        return lambda: {image["ImageId"] for image in caller(describe_images)["Images"]}

    results = _at_once(*[facts(me)] * 5, *[facts(them)] * 2, *[image_ids(me)] * 2, image_ids(them))
    mine, theirs, seen = results[:5], results[5:7], results[7:]
    assert all(answer == mine[0] for answer in mine)
    assert all(answer == theirs[0] for answer in theirs)
    assert all(answer == seen[0] for answer in seen)
    assert len(mine[0]) == 12
    assert len(theirs[0]) == 3
    used = {row[1] for row in (*mine[0].values(), *theirs[0].values())}
    assert used == seen[0]
    assert len({row[0] for row in (*mine[0].values(), *theirs[0].values())}) == 15
    # Later answers are the same ones.
    assert facts(me)() == mine[0]


def test_describes_during_launches_and_terminations_never_lose_or_double_an_id(
    openstack: OpenStack, me: Caller
) -> None:
    openstack.image()
    ami = me(describe_images)["Images"][0]["ImageId"]
    launched: list[str] = []

    def launch() -> None:
        for _ in range(4):
            answer = me(run_instances, ImageId=ami, MinCount=2, MaxCount=2)
            launched.extend(each["InstanceId"] for each in answer["Instances"])

    def describe() -> None:
        for _ in range(12):
            found = [each["InstanceId"] for each in instances_of(me(describe_instances))]
            assert len(found) == len(set(found))

    _at_once(launch, launch, describe, describe, describe)
    found = [each["InstanceId"] for each in instances_of(me(describe_instances))]
    assert sorted(found) == sorted(launched)
    assert len(openstack.servers) == 16
    me(create_tags, Resources=found, Tags=[{"Key": "k", "Value": "v"}])

    def terminate(some: list[str]) -> Callable[[], Any]:
        return lambda: me(terminate_instances, InstanceIds=some)

    _at_once(terminate(found[:8]), terminate(found[4:]), describe, describe)
    after = instances_of(me(describe_instances))
    assert {each["InstanceId"] for each in after} == set(launched)
    assert {each["State"]["Name"] for each in after} == {"terminated"}
    assert openstack.servers == {}
    assert len(me(describe_tags)["Tags"]) == 16


def test_a_vanished_instance_is_buried_once_by_many(openstack: OpenStack, me: Caller) -> None:
    for _ in range(6):
        openstack.server()
    before = [each["InstanceId"] for each in instances_of(me(describe_instances))]
    openstack.servers.clear()
    answers = _at_once(*[lambda: instances_of(me(describe_instances))] * 6)
    for answer in answers:
        assert [each["InstanceId"] for each in answer] == before
        assert {each["State"]["Name"] for each in answer} == {"terminated"}
    items = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert all(item.dead_for is not None and item.version == 1 for item in items)
