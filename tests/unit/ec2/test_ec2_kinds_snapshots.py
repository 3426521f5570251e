"""Snapshots: taken, shown, deleted, and never shared."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests_mock as mocking

from tests.support.ec2_openstack import CINDER, MINE, THEIRS, Caller
from tests.support.ec2_storage import Storage
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.tag import create_tags
from trimaran.ec2.kinds.volumes.snapshot import (
    copy_snapshot,
    create_snapshot,
    delete_snapshot,
    describe_snapshot_tier_status,
    describe_snapshots,
)
from trimaran.ec2.kinds.volumes.snapshot_attribute import (
    describe_snapshot_attribute,
    modify_snapshot_attribute,
    reset_snapshot_attribute,
)
from trimaran.ec2.kinds.volumes.volume import describe_volumes
from trimaran.ec2.protocol.errors import to_ec2
from trimaran.errors import TrimaranError, Unavailable
from trimaran.identity import count_calls


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Storage:
    return Storage(requests_mock)


@pytest.fixture
def volume(openstack: Storage) -> dict[str, Any]:
    return openstack.free_volume(size=2)


@pytest.fixture
def volume_id(me: Caller, volume: dict[str, Any]) -> str:
    return str(me(describe_volumes)["Volumes"][0]["VolumeId"])


def _code(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(TrimaranError) as caught:
        me(action, **request)
    return to_ec2(caught.value).code


def _all(me: Caller, **request: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = me(describe_snapshots, **request)["Snapshots"]
    return rows


def test_a_snapshot_is_taken_under_its_id(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    tags = [{"ResourceType": "snapshot", "Tags": [{"Key": "k", "Value": "true"}]}]
    answer = me(create_snapshot, VolumeId=volume_id, Description="123", TagSpecifications=tags)
    expected = {
        "VolumeId": volume_id,
        "Description": "123",
        "State": "pending",
        "Progress": "0%",
        "OwnerId": MINE,
        "VolumeSize": 2,
        "Encrypted": False,
        "Tags": [{"Key": "k", "Value": "true"}],
    }
    assert {name: answer[name] for name in expected} == expected
    [snapshot] = openstack.snapshots.values()
    assert (snapshot["name"], snapshot["description"]) == (answer["SnapshotId"], "123")
    assert openstack.bodies[-1][2]["snapshot"]["force"] is True
    snapshot["status"] = "available"
    [shown] = _all(me, SnapshotIds=[answer["SnapshotId"]])
    assert (shown["State"], shown["Progress"]) == ("completed", "100%")
    assert (shown["Tags"], shown["StartTime"]) == (answer["Tags"], answer["StartTime"])


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("creating", "pending"),
        ("deleting", "pending"),
        ("available", "completed"),
        ("backing-up", "completed"),
        ("error", "error"),
        ("error_deleting", "error"),
        ("odd", "error"),
    ],
)
def test_states(
    openstack: Storage, me: Caller, volume: dict[str, Any], status: str, state: str
) -> None:
    openstack.snapshot(volume, status=status)
    assert _all(me)[0]["State"] == state


def test_what_cinder_still_lists_as_deleted_is_not_there(
    openstack: Storage, me: Caller, volume: dict[str, Any]
) -> None:
    snapshot = openstack.snapshot(volume)
    [shown] = _all(me)
    snapshot["status"] = "deleted"
    assert _all(me) == []
    wanted = {"SnapshotIds": [shown["SnapshotId"]]}
    assert _code(me, describe_snapshots, **wanted) == "InvalidSnapshot.NotFound"


def test_encryption_is_asked_for_once(openstack: Storage, me: Caller) -> None:
    for number in range(9):
        openstack.snapshot(openstack.free_volume(encrypted=number == 0))
    with count_calls() as calls:
        first = _all(me)
    assert calls.total == 2
    with count_calls() as calls:
        again = _all(me)
    assert calls.total == 1
    assert first == again
    assert sorted(row["Encrypted"] for row in again) == [False] * 8 + [True]
    by = [{"Name": "encrypted", "Values": ["true"]}]
    [one] = _all(me, Filters=by)
    with count_calls() as calls:
        assert _all(me, SnapshotIds=[one["SnapshotId"]]) == [one]
    assert calls.total == 1
    assert "snapshots/detail" not in openstack.calls(CINDER)[-1][1]


def test_filters_owners_and_pages(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    for number in range(6):
        openstack.snapshot(volume, description=f"d{number}", size=number)
    shown = {row["Description"]: row for row in _all(me)}
    me(create_tags, Resources=[shown["d1"]["SnapshotId"]], Tags=[{"Key": "n", "Value": "v"}])

    def by(name: str, value: str) -> list[str]:
        found = _all(me, Filters=[{"Name": name, "Values": [value]}])
        return sorted(row["Description"] for row in found)

    assert by("description", "d?") == sorted(shown)
    assert by("volume-size", "3") == ["d3"]
    assert by("tag:n", "v") == ["d1"]
    assert by("snapshot-id", shown["d2"]["SnapshotId"]) == ["d2"]
    assert by("volume-id", volume_id) == by("status", "completed") == by("progress", "100%")
    assert by("owner-id", MINE) == by("start-time", "2026-*") == sorted(shown)
    assert len(_all(me, OwnerIds=["self"])) == len(_all(me, OwnerIds=[MINE, "x"])) == 6
    assert _all(me, OwnerIds=["amazon"]) == _all(me, OwnerIds=[THEIRS]) == []
    assert len(_all(me, RestorableByUserIds=["self"])) == 6
    assert _all(me, RestorableByUserIds=["all"]) == []
    first = me(describe_snapshots, MaxResults=5)
    rest = me(describe_snapshots, NextToken=first["NextToken"])
    assert len({row["SnapshotId"] for row in first["Snapshots"] + rest["Snapshots"]}) == 6
    both = {"SnapshotIds": [shown["d1"]["SnapshotId"]], "MaxResults": 5}
    assert _code(me, describe_snapshots, **both) == "InvalidParameterCombination"
    tiers = me(describe_snapshot_tier_status)["SnapshotTierStatuses"]
    assert {row["StorageTier"] for row in tiers} == {"standard"}
    assert len(tiers) == 6


@pytest.mark.parametrize("status", ["creating", "error", "deleting", "reserved", "extending"])
def test_volumes_that_cannot_be_taken(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str, status: str
) -> None:
    volume["status"] = status
    assert _code(me, create_snapshot, VolumeId=volume_id) == "IncorrectState"
    assert openstack.snapshots == {}


def test_mistakes(
    openstack: Storage, me: Caller, them: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    good = {"VolumeId": volume_id}
    assert _code(me, create_snapshot) == "MissingParameter"
    assert _code(me, create_snapshot, VolumeId="snap-1") == "InvalidParameterValue"
    assert _code(me, create_snapshot, VolumeId="vol-00000001") == "InvalidVolume.NotFound"
    assert _code(them, create_snapshot, **good) == "InvalidVolume.NotFound"
    assert _code(me, create_snapshot, **good, Description="x" * 256) == "ValidationError"
    assert _code(me, create_snapshot, **good, Location="local") == "UnsupportedOperation"
    assert _code(me, create_snapshot, **good, DryRun=True) == "DryRunOperation"
    openstack.fail["snapshots$"] = 400
    assert _code(me, create_snapshot, **good) == "IncorrectState"
    openstack.fail["snapshots$"] = 413
    assert _code(me, create_snapshot, **good) == "ResourceLimitExceeded"
    assert me.db.read(lambda s: queries.items_of(s, MINE, ["snap"])) == []


def test_a_lost_answer_does_not_lose_the_snapshot(
    openstack: Storage, me: Caller, volume_id: str
) -> None:
    openstack.quiet = ["POST .*/snapshots$"]
    made = me(create_snapshot, VolumeId=volume_id)
    [snapshot] = openstack.snapshots.values()
    assert snapshot["name"] == made["SnapshotId"]
    openstack.fail["snapshots/detail"] = 503
    with pytest.raises(Unavailable):
        me(create_snapshot, VolumeId=volume_id, Description="later")
    openstack.fail.clear()
    second = next(row for row in openstack.snapshots.values() if row is not snapshot)
    shown = {row["SnapshotId"]: row for row in _all(me)}
    assert set(shown) == {made["SnapshotId"], second["name"]}
    assert shown[second["name"]]["VolumeId"] == volume_id


def test_while_it_is_being_made(openstack: Storage, me: Caller, volume_id: str) -> None:
    openstack.fail["snapshots"] = 503
    with pytest.raises(Unavailable):
        me(create_snapshot, VolumeId=volume_id, Description="d")
    openstack.fail.clear()
    [shown] = _all(me)
    told = (shown["State"], shown["VolumeId"], shown["VolumeSize"], shown["Description"])
    assert told == ("pending", volume_id, 2, "d")
    assert _code(me, delete_snapshot, SnapshotId=shown["SnapshotId"]) == "IncorrectState"


def test_deleting(openstack: Storage, me: Caller, them: Caller, volume: dict[str, Any]) -> None:
    snapshot = openstack.snapshot(volume)
    wanted = {"SnapshotId": _all(me)[0]["SnapshotId"]}
    assert _code(them, delete_snapshot, **wanted) == "InvalidSnapshot.NotFound"
    assert _code(me, delete_snapshot, **wanted, DryRun=True) == "DryRunOperation"
    assert snapshot["status"] == "available"
    assert me(delete_snapshot, **wanted) == {}
    assert _all(me)[0]["State"] == "pending"
    assert me(delete_snapshot, **wanted) == {}
    del openstack.snapshots[snapshot["id"]]
    assert _code(me, delete_snapshot, **wanted) == "InvalidSnapshot.NotFound"
    assert _code(me, delete_snapshot) == "MissingParameter"


def test_an_image_keeps_its_snapshot(
    openstack: Storage, me: Caller, volume: dict[str, Any]
) -> None:
    snapshot = openstack.snapshot(volume)
    mapping = {"device_name": "/dev/vda", "source_type": "snapshot", "snapshot_id": snapshot["id"]}
    image = openstack.image(
        MINE, bdm_v2="true", block_device_mapping=json.dumps([{**mapping, "boot_index": 0}])
    )
    [shown] = me(describe_images)["Images"]
    wanted = {"SnapshotId": _all(me)[0]["SnapshotId"]}
    assert shown["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"] == wanted["SnapshotId"]
    assert _code(me, delete_snapshot, **wanted) == "InvalidSnapshot.InUse"
    del openstack.images[image["id"]]
    assert me(delete_snapshot, **wanted) == {}


def test_nobody_else_may_use_a_snapshot(
    openstack: Storage, me: Caller, volume: dict[str, Any]
) -> None:
    openstack.snapshot(volume)
    one = {"SnapshotId": _all(me)[0]["SnapshotId"]}
    permission = {**one, "Attribute": "createVolumePermission"}
    assert me(describe_snapshot_attribute, **permission)["CreateVolumePermissions"] == []
    codes = me(describe_snapshot_attribute, **one, Attribute="productCodes")
    assert codes["ProductCodes"] == []
    bad = {**one, "Attribute": "odd"}
    assert _code(me, describe_snapshot_attribute, **bad) == "InvalidParameterValue"
    assert _code(me, describe_snapshot_attribute, **one) == "MissingParameter"
    add = {"CreateVolumePermission": {"Add": [{"Group": "all"}]}}
    assert _code(me, modify_snapshot_attribute, **one, **add) == "UnsupportedOperation"
    old = {**permission, "OperationType": "add", "UserIds": [THEIRS]}
    assert _code(me, modify_snapshot_attribute, **old) == "UnsupportedOperation"
    assert me(modify_snapshot_attribute, **{**old, "OperationType": "remove"}) == {}
    assert _code(me, modify_snapshot_attribute, **one) == "InvalidParameterCombination"
    odd = {**old, "OperationType": "odd"}
    assert _code(me, modify_snapshot_attribute, **odd) == "InvalidParameterValue"
    assert me(reset_snapshot_attribute, **permission) == {}
    assert _code(me, reset_snapshot_attribute, **permission, DryRun=True) == "DryRunOperation"
    unknown = {**permission, "SnapshotId": "snap-00000001"}
    assert _code(me, reset_snapshot_attribute, **unknown) == "InvalidSnapshot.NotFound"


def test_copies_are_refused(openstack: Storage, me: Caller, volume: dict[str, Any]) -> None:
    openstack.snapshot(volume)
    source = {"SourceSnapshotId": _all(me)[0]["SnapshotId"], "SourceRegion": "RegionOne"}
    assert _code(me, copy_snapshot, **source) == "UnsupportedOperation"
    absent = {**source, "SourceSnapshotId": "snap-00000001"}
    assert _code(me, copy_snapshot, **absent) == "InvalidSnapshot.NotFound"
    assert ids.is_id(source["SourceSnapshotId"], ["snap"])
