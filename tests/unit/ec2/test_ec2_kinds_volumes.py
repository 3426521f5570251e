"""Volumes: what Cinder has, made, shown and deleted as EC2 does it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests_mock as mocking
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tests.support.ec2_openstack import CINDER, MINE, NOVA, THEIRS, Caller
from tests.support.ec2_storage import Storage
from trimaran.db.models.ec2 import ItemRow
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.tag import create_tags, describe_tags
from trimaran.ec2.kinds.volumes import volume as volume_module
from trimaran.ec2.kinds.volumes.snapshot import describe_snapshots
from trimaran.ec2.kinds.volumes.volume import delete_volume, describe_volumes
from trimaran.ec2.kinds.volumes.volume_create import create_volume
from trimaran.ec2.kinds.volumes.volume_states import state_of
from trimaran.ec2.kinds.volumes.volume_status import (
    describe_volume_attribute,
    describe_volume_status,
    modify_volume_attribute,
)
from trimaran.ec2.protocol.errors import EC2Error, to_ec2
from trimaran.errors import TrimaranError, Unavailable
from trimaran.identity import count_calls

STATES = {"creating", "available", "in-use", "deleting", "deleted", "error"}


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Storage:
    return Storage(requests_mock)


def _code(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(TrimaranError) as caught:
        me(action, **request)
    told = to_ec2(caught.value)
    assert "host-1" not in told.message, "Cinder's words are not for the caller"
    return told.code


def _volumes(me: Caller, **request: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = me(describe_volumes, **request)["Volumes"]
    return rows


def _items(me: Caller) -> list[queries.Item]:
    return me.db.read(lambda s: queries.items_of(s, MINE, ["vol"]))


def _tags(**tags: str) -> list[dict[str, Any]]:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": "volume", "Tags": rows}]


# -- describe ------------------------------------------------------------------


def test_a_volume_shows_what_cinder_says(openstack: Storage, me: Caller) -> None:
    volume = openstack.free_volume(size=7, multiattach=True)
    [shown] = _volumes(me)
    assert ids.is_id(shown["VolumeId"], ["vol"])
    expected = {
        "State": "available",
        "Size": 7,
        "AvailabilityZone": "nova",
        "VolumeType": "plain",
        "Encrypted": False,
        "MultiAttachEnabled": True,
        "SnapshotId": "",
        "Attachments": [],
        "OwnerId": MINE,
    }
    assert {name: shown[name] for name in expected} == expected
    assert shown["CreateTime"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert "Tags" not in shown
    [item] = _items(me)
    assert item.os_id == volume["id"]
    assert _volumes(me) == [shown]
    assert _items(me)[0].version == 0, "a describe of an unchanged cloud writes nothing"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("creating", "creating"),
        ("downloading", "creating"),
        ("available", "available"),
        ("reserved", "in-use"),
        ("attaching", "in-use"),
        ("detaching", "in-use"),
        ("in-use", "in-use"),
        ("extending", "available"),
        ("retyping", "available"),
        ("backing-up", "available"),
        ("deleting", "deleting"),
        ("error", "error"),
        ("error_deleting", "error"),
        ("error_extending", "error"),
        ("odd", "error"),
        (None, "error"),
    ],
)
def test_only_states_of_ec2_are_shown(status: str | None, state: str) -> None:
    assert state_of({"status": status}) == state
    assert state_of({"status": status, "attachments": [{}]}) in STATES
    if state == "available" and status != "available":
        assert state_of({"status": status, "attachments": [{}]}) == "in-use"


def test_filters(openstack: Storage, me: Caller) -> None:
    source = openstack.snapshot(openstack.free_volume(name="src", size=9))
    made = openstack.free_volume(size=2, availability_zone="east", snapshot_id=source["id"])
    openstack.free_volume(size=3, status="error", encrypted=True)
    shown = {row["Size"]: row for row in _volumes(me)}
    me(create_tags, Resources=[shown[2]["VolumeId"]], Tags=[{"Key": "a:b", "Value": "x"}])

    def sizes(name: str, *values: str) -> list[int]:
        found = _volumes(me, Filters=[{"Name": name, "Values": list(values)}])
        return sorted(row["Size"] for row in found)

    assert sizes("size", "2", "3") == [2, 3]
    assert sizes("status", "err*") == sizes("encrypted", "true") == [3]
    assert sizes("availability-zone", "east") == sizes("tag:a:b", "x") == [2]
    assert sizes("volume-id", shown[9]["VolumeId"]) == [9]
    assert sizes("snapshot-id", shown[2]["SnapshotId"]) == [2]
    assert sizes("volume-type", "plain") == [2, 3, 9]
    assert sizes("create-time", "2026-01-02*") == [2, 3, 9]
    assert sizes("multi-attach-enabled", "false") == [2, 3, 9]
    assert sizes("attachment.status", "attached") == sizes("client-token", "*") == []
    odd = [{"Name": "odd", "Values": ["x"]}]
    assert _code(me, describe_volumes, Filters=odd) == "InvalidParameterValue"
    assert made["id"] not in str(shown)


def test_pages(openstack: Storage, me: Caller) -> None:
    for _ in range(7):
        openstack.free_volume()
    first = me(describe_volumes, MaxResults=5)
    rest = me(describe_volumes, NextToken=first["NextToken"])
    seen = [row["VolumeId"] for row in first["Volumes"] + rest["Volumes"]]
    assert seen == sorted({row["VolumeId"] for row in _volumes(me)})
    assert rest["NextToken"] is None
    both = {"VolumeIds": [seen[0]], "MaxResults": 5}
    assert _code(me, describe_volumes, **both) == "InvalidParameterCombination"
    assert _code(me, describe_volumes, NextToken="x") == "InvalidNextToken"


def test_ids_of_others_and_of_nothing(openstack: Storage, me: Caller, them: Caller) -> None:
    openstack.free_volume(THEIRS)
    [theirs] = _volumes(them)
    assert _volumes(me) == []
    for item_id in (theirs["VolumeId"], "vol-00000001"):
        for action in (describe_volumes, describe_volume_status):
            assert _code(me, action, VolumeIds=[item_id]) == "InvalidVolume.NotFound"
        assert _code(me, delete_volume, VolumeId=item_id) == "InvalidVolume.NotFound"
    for bad in ("i-00000001", "vol-x", "volume"):
        assert _code(me, describe_volumes, VolumeIds=[bad]) == "InvalidParameterValue"


def test_an_administrator_sees_no_other_project_by_an_old_id(
    openstack: Storage, me: Caller
) -> None:
    volume = openstack.free_volume()
    [shown] = _volumes(me)
    # Transferred to another project; Cinder shows it to administrators all the same.
    volume["os-vol-tenant-attr:tenant_id"] = THEIRS
    openstack.keystone.valid.add("user-token")
    assert _code(me, describe_volumes, VolumeIds=[shown["VolumeId"]]) == "InvalidVolume.NotFound"


def test_a_describe_costs_the_same_for_any_number(openstack: Storage, me: Caller) -> None:
    server = openstack.server()
    for number in range(30):
        openstack.attach(openstack.free_volume(), server, f"/dev/vd{chr(98 + number % 20)}")
    _volumes(me)
    with count_calls() as calls:
        shown = _volumes(me)
    assert len(shown) == 30
    assert calls.total == 1
    with count_calls() as calls:
        _volumes(me, VolumeIds=[shown[0]["VolumeId"]])
    assert calls.total == 1
    assert openstack.calls(CINDER)[-1][1].count("/detail") == 0


def test_a_listing_that_fails_deletes_nothing(openstack: Storage, me: Caller) -> None:
    openstack.free_volume()
    [shown] = _volumes(me)
    openstack.fail["volumes/detail"] = 503
    with pytest.raises(Unavailable):
        me(describe_volumes)
    openstack.fail.clear()
    assert _volumes(me) == [shown]


def test_what_vanished_goes_with_its_tags(openstack: Storage, me: Caller) -> None:
    volume = openstack.free_volume()
    [shown] = _volumes(me)
    me(create_tags, Resources=[shown["VolumeId"]], Tags=[{"Key": "k", "Value": "v"}])
    del openstack.volumes[volume["id"]]
    wanted = {"VolumeIds": [shown["VolumeId"]]}
    assert _code(me, describe_volumes, **wanted) == "InvalidVolume.NotFound"
    assert _items(me) == []
    assert me(describe_tags)["Tags"] == []


def test_ten_first_describes_agree(openstack: Storage, me: Caller) -> None:
    openstack.free_volume()
    barrier = threading.Barrier(4)

    def look(_: int) -> str:
        barrier.wait(60)
        return str(_volumes(me)[0]["VolumeId"])

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(look, range(4)))) == 1


# -- create --------------------------------------------------------------------


def test_a_volume_is_made_under_its_id(openstack: Storage, me: Caller) -> None:
    made = me(create_volume, Size=3, AvailabilityZone="nova", TagSpecifications=_tags(a="007"))
    assert made["State"] == "creating"
    assert made["Tags"] == [{"Key": "a", "Value": "007"}]
    assert made["Attachments"] == []
    [volume] = openstack.volumes.values()
    assert (volume["name"], volume["size"]) == (made["VolumeId"], 3)
    volume["status"] = "available"
    [shown] = _volumes(me, VolumeIds=[made["VolumeId"]])
    assert shown["State"] == "available"
    assert shown["Tags"] == made["Tags"]
    assert _items(me)[0].data == {}


def test_sizes_and_snapshots(openstack: Storage, me: Caller, them: Caller) -> None:
    source = openstack.free_volume(size=4)
    snapshot = openstack.snapshot(source)
    [seen] = me(describe_snapshots)["Snapshots"]
    snap = seen["SnapshotId"]
    assert me(create_volume, SnapshotId=snap)["Size"] == 4
    larger = me(create_volume, SnapshotId=snap, Size=9)
    assert (larger["Size"], larger["SnapshotId"]) == (9, snap)
    assert _code(me, create_volume, SnapshotId=snap, Size=3) == "InvalidParameterValue"
    assert _code(them, create_volume, SnapshotId=snap) == "InvalidSnapshot.NotFound"
    assert _code(me, create_volume) == "MissingParameter"
    for size in (0, -1, 65537):
        assert _code(me, create_volume, Size=size) == "InvalidParameterValue"
    snapshot["status"] = "creating"
    assert _code(me, create_volume, SnapshotId=snap) == "IncorrectState"
    # The id of the snapshot outlives the snapshot.
    del openstack.snapshots[snapshot["id"]]
    assert me(describe_snapshots)["Snapshots"] == []
    [shown] = _volumes(me, VolumeIds=[larger["VolumeId"]])
    assert shown["SnapshotId"] == snap


def test_types(openstack: Storage, me: Caller) -> None:
    def made(**request: Any) -> tuple[str, str]:
        answer = me(create_volume, Size=1, **request)
        [shown] = _volumes(me, VolumeIds=[answer["VolumeId"]])
        assert shown["VolumeType"] == answer["VolumeType"]
        return answer["VolumeType"], list(openstack.volumes.values())[-1]["volume_type"]

    assert made() == ("plain", "plain")
    assert made(VolumeType="safe") == ("safe", "safe")
    assert made(VolumeType="gp3") == ("gp3", "plain")
    assert made(Encrypted=True) == ("safe", "safe")
    assert made(Encrypted=True, VolumeType="gp2") == ("gp2", "safe")
    assert made(Encrypted=False) == ("plain", "plain")
    assert made(MultiAttachEnabled=True) == ("shared", "shared")
    before = len(openstack.volumes)
    refused = {"Size": 1, "VolumeType": "plain"}
    assert _code(me, create_volume, **refused, Encrypted=True) == "UnsupportedOperation"
    both = {"Encrypted": True, "MultiAttachEnabled": True}
    assert _code(me, create_volume, Size=1, **both) == "UnsupportedOperation"
    assert _code(me, create_volume, Size=1, VolumeType="odd") == "InvalidParameterValue"
    for promise in ({"Iops": 100}, {"Throughput": 125}, {"KmsKeyId": "k"}, {"OutpostArn": "o"}):
        assert _code(me, create_volume, Size=1, **promise) == "UnsupportedOperation"
    assert len(openstack.volumes) == before


def test_zones(openstack: Storage, me: Caller) -> None:
    assert me(create_volume, Size=1, AvailabilityZoneId="nova")["AvailabilityZone"] == "nova"
    missing = {"Size": 1, "AvailabilityZone": "mars"}
    assert _code(me, create_volume, **missing) == "InvalidAvailabilityZone.NotFound"


def test_a_dry_run_makes_nothing(openstack: Storage, me: Caller) -> None:
    good = {"Size": 1, "AvailabilityZone": "nova", "ClientToken": "t"}
    assert _code(me, create_volume, **good, DryRun=True) == "DryRunOperation"
    bad = {"Size": 1, "AvailabilityZone": "mars", "DryRun": True}
    assert _code(me, create_volume, **bad) == "InvalidAvailabilityZone.NotFound"
    assert openstack.volumes == {}
    assert _items(me) == []
    me(create_volume, **good)


def test_a_client_token_makes_one_volume(openstack: Storage, me: Caller, them: Caller) -> None:
    first = me(create_volume, Size=1, ClientToken="t")
    again = me(create_volume, Size=1, ClientToken="t")
    assert first["VolumeId"] == again["VolumeId"]
    assert len(openstack.volumes) == 1
    other = {"Size": 2, "ClientToken": "t"}
    assert _code(me, create_volume, **other) == "IdempotentParameterMismatch"
    assert them(create_volume, Size=2, ClientToken="t")["VolumeId"] != first["VolumeId"]
    by_token = [{"Name": "client-token", "Values": ["t"]}]
    assert [row["VolumeId"] for row in _volumes(me, Filters=by_token)] == [first["VolumeId"]]
    assert _code(me, create_volume, Size=1, ClientToken="x" * 65) == "ValidationError"


def test_two_requests_with_one_token_at_once(openstack: Storage, me: Caller) -> None:
    barrier = threading.Barrier(4)

    def create(_: int) -> str:
        barrier.wait(60)
        return str(me(create_volume, Size=1, ClientToken="t")["VolumeId"])

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(create, range(4)))) == 1
    assert len(openstack.volumes) == 1


@pytest.mark.parametrize(
    ("status", "code"), [(413, "ResourceLimitExceeded"), (400, "InvalidParameterValue")]
)
def test_what_cinder_refuses_leaves_nothing(
    openstack: Storage, me: Caller, status: int, code: str
) -> None:
    openstack.refuse = lambda body: status
    assert _code(me, create_volume, Size=1, ClientToken="t") == code
    assert _items(me) == []
    openstack.refuse = lambda body: None
    assert me(create_volume, Size=1, ClientToken="t")["State"] == "creating"


def test_a_lost_answer_is_found_by_name(openstack: Storage, me: Caller) -> None:
    openstack.quiet = ["POST .*/volumes$"]
    made = me(create_volume, Size=1)
    [volume] = openstack.volumes.values()
    assert volume["name"] == made["VolumeId"]
    assert _items(me)[0].os_id == volume["id"]


def test_an_answer_that_never_comes(openstack: Storage, me: Caller) -> None:
    openstack.quiet = ["POST .*/volumes$"]
    openstack.fail["volumes/detail"] = 503
    with pytest.raises(Unavailable):
        me(create_volume, Size=1, TagSpecifications=_tags(a="b"))
    openstack.fail.clear()
    [volume] = openstack.volumes.values()
    [shown] = _volumes(me)
    assert shown["VolumeId"] == volume["name"]
    assert shown["Tags"] == [{"Key": "a", "Value": "b"}]
    assert _items(me)[0].data == {}


def test_what_is_being_made_is_shown_and_goes_after_the_deadline(
    openstack: Storage, me: Caller
) -> None:
    openstack.fail["volumes$"] = 503
    openstack.fail["volumes/detail"] = 503
    with pytest.raises(Unavailable):
        me(create_volume, Size=5, VolumeType="gp3", AvailabilityZone="nova", ClientToken="t")
    openstack.fail.clear()
    [shown] = _volumes(me)
    told = {name: shown[name] for name in ("State", "Size", "VolumeType", "AvailabilityZone")}
    assert told == {
        "State": "creating",
        "Size": 5,
        "VolumeType": "gp3",
        "AvailabilityZone": "nova",
    }
    wanted = {"VolumeIds": [shown["VolumeId"]]}
    assert _volumes(me, **wanted) == [shown]
    assert _code(me, delete_volume, VolumeId=shown["VolumeId"]) == "IncorrectState"
    again = {"Size": 5, "VolumeType": "gp3", "AvailabilityZone": "nova", "ClientToken": "t"}
    assert me(create_volume, **again)["VolumeId"] == shown["VolumeId"]
    me.db.write(lambda s: _age(s, shown["VolumeId"]))
    assert _code(me, describe_volumes, **wanted) == "InvalidVolume.NotFound"
    assert _items(me) == []


def _age(session: Session, item_id: str) -> None:
    session.execute(sa.update(ItemRow).where(ItemRow.id == item_id).values(created_at=1.0))


def test_a_renamed_stranger_is_not_taken_for_a_waiting_item(
    openstack: Storage, me: Caller, them: Caller
) -> None:
    [mine] = me.db.write(
        lambda s: queries.add_items(
            s, [NewItem("vol", None, MINE, {"stage": "making", "draft": {}})], ids.mint
        )
    )
    openstack.free_volume(THEIRS, name=mine.id)
    [theirs] = _volumes(them)
    assert theirs["VolumeId"] != mine.id
    assert (_volumes(me)[0]["VolumeId"], _items(me)[0].os_id) == (mine.id, None)


# -- delete --------------------------------------------------------------------


def test_deleting(openstack: Storage, me: Caller) -> None:
    volume = openstack.free_volume()
    [shown] = _volumes(me)
    wanted = {"VolumeId": shown["VolumeId"]}
    assert _code(me, delete_volume, **wanted, DryRun=True) == "DryRunOperation"
    assert volume["status"] == "available"
    assert me(delete_volume, **wanted) == {}
    assert _volumes(me)[0]["State"] == "deleting"
    assert me(delete_volume, **wanted) == {}
    del openstack.volumes[volume["id"]]
    assert _code(me, delete_volume, **wanted) == "InvalidVolume.NotFound"
    assert _code(me, delete_volume) == "MissingParameter"


def test_volumes_that_cannot_be_deleted(openstack: Storage, me: Caller) -> None:
    volume = openstack.free_volume()
    [shown] = _volumes(me)
    wanted = {"VolumeId": shown["VolumeId"]}
    openstack.attach(volume, openstack.server(), "/dev/vdb")
    assert _code(me, delete_volume, **wanted) == "VolumeInUse"
    openstack.detach(volume)
    volume["status"] = "reserved"
    assert _code(me, delete_volume, **wanted) == "VolumeInUse"
    volume["status"] = "creating"
    assert _code(me, delete_volume, **wanted) == "IncorrectState"
    volume["status"] = "available"
    snapshot = openstack.snapshot(volume)
    assert _code(me, delete_volume, **wanted) == "IncorrectState"
    del openstack.snapshots[snapshot["id"]]
    volume["status"] = "error"
    assert me(delete_volume, **wanted) == {}


def test_a_volume_waits_for_snapshots_that_are_being_deleted(
    openstack: Storage, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = openstack.free_volume()
    wanted = {"VolumeId": _volumes(me)[0]["VolumeId"]}
    first = openstack.snapshot(volume, status="deleting")
    second = openstack.snapshot(volume)
    # One that stays is no reason to wait.
    assert _code(me, delete_volume, **wanted) == "IncorrectState"
    second["status"] = "deleting"
    monkeypatch.setattr(volume_module, "WAIT", 0.0)
    assert _code(me, delete_volume, **wanted) == "VolumeInUse"
    assert volume["status"] == "available"
    monkeypatch.undo()

    def vanish(seconds: float) -> None:
        for row in (first, second):
            openstack.snapshots.pop(row["id"], None)

    monkeypatch.setattr("trimaran.ec2.kinds.volumes.volume.time.sleep", vanish)
    assert me(delete_volume, **wanted) == {}
    assert volume["status"] == "deleting"


# -- status and attributes -----------------------------------------------------


def test_status(openstack: Storage, me: Caller) -> None:
    for status in ("available", "creating", "error"):
        openstack.free_volume(name=status, status=status)
    rows = me(describe_volume_status)["VolumeStatuses"]
    seen = sorted(row["VolumeStatus"]["Status"] for row in rows)
    assert seen == ["impaired", "insufficient-data", "ok"]
    well = [{"Name": "volume-status.status", "Values": ["ok"]}]
    [row] = me(describe_volume_status, Filters=well)["VolumeStatuses"]
    assert row["VolumeStatus"]["Details"][0] == {"Name": "io-enabled", "Status": "passed"}


def test_attributes(openstack: Storage, me: Caller) -> None:
    openstack.free_volume()
    wanted = {"VolumeId": _volumes(me)[0]["VolumeId"]}

    def io() -> Any:
        return me(describe_volume_attribute, **wanted, Attribute="autoEnableIO")["AutoEnableIO"]

    assert io() == {"Value": False}
    change = {**wanted, "AutoEnableIO": {"Value": True}}
    assert _code(me, modify_volume_attribute, **change, DryRun=True) == "DryRunOperation"
    assert io() == {"Value": False}
    me(modify_volume_attribute, **change)
    assert io() == {"Value": True}
    codes = me(describe_volume_attribute, **wanted, Attribute="productCodes")
    assert codes["ProductCodes"] == []
    bad = {**wanted, "Attribute": "odd"}
    assert _code(me, describe_volume_attribute, **bad) == "InvalidParameterValue"
    assert _code(me, describe_volume_attribute, **wanted) == "MissingParameter"
    assert _code(me, modify_volume_attribute, **wanted) == "InvalidParameterCombination"


def test_nova_is_not_asked_about_volumes_that_nothing_has(openstack: Storage, me: Caller) -> None:
    openstack.free_volume()
    _volumes(me)
    assert openstack.calls(NOVA) == []
    with pytest.raises(EC2Error):
        me(describe_volumes, VolumeIds=["vol-00000009"])
