"""CreateVolume and CreateSnapshot when processes race or die, on each database server.

The cloud is one of dictionaries, so that a request can be stopped between any
two of its steps; the database is real.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests_mock as mocking

from tests.support import keystone
from tests.support.ec2_openstack import MINE, Caller
from tests.support.ec2_storage import Storage
from trimaran.cloud import Cloud
from trimaran.cloud.volume import Volume
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.tag import describe_tags
from trimaran.ec2.kinds.volumes import volume_attach
from trimaran.ec2.kinds.volumes.snapshot import create_snapshot, describe_snapshots
from trimaran.ec2.kinds.volumes.volume import describe_volumes
from trimaran.ec2.kinds.volumes.volume_attach import attach_volume
from trimaran.ec2.kinds.volumes.volume_create import create_volume

AT_ONCE = 6
TAGS = [{"ResourceType": "volume", "Tags": [{"Key": "k", "Value": "v"}]}]


class Died(BaseException):
    """A process that ends where it stands: no handler of the request runs."""


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Storage:
    return Storage(requests_mock)


@pytest.fixture
def me(
    openstack: Storage, db_url: str, migrated: Callable[[str, str], str], tmp_path: Path
) -> Iterator[Caller]:
    db = Database(migrated(db_url, "ec2"), pool_size=AT_ONCE)
    cloud = Cloud(keystone.identity(), region=keystone.REGION)
    yield Caller(cloud, db, keystone.token(), tmp_path)
    db.dispose()


def items(me: Caller, kind: str) -> list[queries.Item]:
    return me.db.read(lambda s: queries.items_of(s, MINE, [kind]))


def at_once(action: Callable[[], Any]) -> list[Any]:
    barrier = threading.Barrier(AT_ONCE)

    def run(_: int) -> Any:
        barrier.wait(30)
        return action()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(AT_ONCE)))


def test_one_token_makes_one_volume(openstack: Storage, me: Caller) -> None:
    answers = at_once(lambda: me(create_volume, Size=1, ClientToken="t", TagSpecifications=TAGS))
    assert len({answer["VolumeId"] for answer in answers}) == 1
    assert len(openstack.volumes) == len(items(me, "vol")) == 1
    assert len(me(describe_tags)["Tags"]) == 1


def test_describes_during_creates_make_no_second_item(openstack: Storage, me: Caller) -> None:
    made = at_once(lambda: (me(create_volume, Size=1)["VolumeId"], me(describe_volumes)))
    names = {row["name"] for row in openstack.volumes.values()}
    assert {volume for volume, _ in made} == names
    assert {item.id: item.os_id for item in items(me, "vol")} == {
        row["name"]: row["id"] for row in openstack.volumes.values()
    }


def test_all_see_a_new_volume_under_one_id(openstack: Storage, me: Caller) -> None:
    openstack.snapshot(openstack.free_volume())
    seen = at_once(lambda: (me(describe_volumes)["Volumes"], me(describe_snapshots)["Snapshots"]))
    assert len({(v[0]["VolumeId"], s[0]["SnapshotId"], s[0]["VolumeId"]) for v, s in seen}) == 1
    assert seen[0][0][0]["VolumeId"] == seen[0][1][0]["VolumeId"]


@pytest.mark.parametrize("answered", [False, True], ids=["before Cinder", "after Cinder"])
def test_a_death_while_making_a_volume(
    openstack: Storage, me: Caller, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    wanted = {"Size": 3, "VolumeType": "gp3", "ClientToken": "t", "TagSpecifications": TAGS}
    whole = Volume.create_volume

    def die(self: Volume, body: Any, **more: Any) -> Any:
        if answered:
            whole(self, body, **more)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "create_volume", die)
        with pytest.raises(Died):
            me(create_volume, **wanted)
    [left] = items(me, "vol")
    again = me(create_volume, **wanted)
    assert again["VolumeId"] == left.id, "the client's retry gets what was begun"
    told = (again["State"], again["Tags"], again["VolumeType"])
    assert told == ("creating", TAGS[0]["Tags"], "gp3")
    assert len(openstack.volumes) == answered
    if answered:
        [item] = items(me, "vol")
        assert item.os_id == next(iter(openstack.volumes))
        assert item.data == {"client_token": "t", "type": {"alias": "gp3", "name": "plain"}}


def test_a_death_while_taking_a_snapshot(
    openstack: Storage, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    openstack.free_volume()
    volume = me(describe_volumes)["Volumes"][0]["VolumeId"]
    whole = Volume.create_snapshot

    def die(self: Volume, body: Any) -> Any:
        whole(self, body)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Volume, "create_snapshot", die)
        with pytest.raises(Died):
            me(create_snapshot, VolumeId=volume)
    [left] = items(me, "snap")
    [shown] = me(describe_snapshots)["Snapshots"]
    assert (shown["SnapshotId"], shown["VolumeId"]) == (left.id, volume)
    [snapshot] = openstack.snapshots.values()
    assert items(me, "snap")[0].os_id == snapshot["id"]


def test_a_death_after_attaching(
    openstack: Storage, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, volume = openstack.server(), openstack.free_volume()
    instance = me(describe_instances)["Reservations"][0]["Instances"][0]["InstanceId"]
    wanted = {"VolumeId": me(describe_volumes)["Volumes"][0]["VolumeId"]}

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(volume_attach, "note_attachment", die)
        with pytest.raises(Died):
            me(attach_volume, **wanted, InstanceId=instance, Device="/dev/sdh")
    openstack.attach(volume, server, "/dev/sdh")
    [shown] = me(describe_volumes)["Volumes"]
    told = {name: shown["Attachments"][0][name] for name in ("InstanceId", "Device", "State")}
    assert told == {"InstanceId": instance, "Device": "/dev/sdh", "State": "attached"}
