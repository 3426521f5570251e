"""ModifyVolume: Cinder's extend and retype, and what is remembered of them."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock as mocking

from tests.support.ec2_jobs import finish, jobs_of
from tests.support.ec2_openstack import Caller
from tests.support.ec2_storage import Storage
from trimaran.ec2 import journal
from trimaran.ec2.kinds.volumes.volume import describe_volumes
from trimaran.ec2.kinds.volumes.volume_create import create_volume
from trimaran.ec2.kinds.volumes.volume_modify import describe_volumes_modifications, modify_volume
from trimaran.ec2.protocol.errors import to_ec2
from trimaran.errors import TrimaranError


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


def _last(me: Caller, **request: Any) -> dict[str, Any]:
    [row] = me(describe_volumes_modifications, **request)["VolumesModifications"]
    return dict(row)


def test_a_volume_grows(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    answer = me(modify_volume, VolumeId=volume_id, Size=5)["VolumeModification"]
    expected = {
        "VolumeId": volume_id,
        "ModificationState": "modifying",
        "OriginalSize": 2,
        "TargetSize": 5,
        "OriginalVolumeType": "plain",
        "TargetVolumeType": "plain",
        "Progress": 0,
    }
    assert {name: answer[name] for name in expected} == expected
    assert openstack.bodies[-1][2] == {"os-extend": {"new_size": 5}}
    assert _last(me)["ModificationState"] == "modifying"
    again = {"VolumeId": volume_id, "Size": 6}
    assert _code(me, modify_volume, **again) == "IncorrectModificationState"
    volume["status"] = "available"
    done = _last(me, VolumeIds=[volume_id])
    assert (done["ModificationState"], done["Progress"]) == ("completed", 100)
    # The end does not move: it is noted when it is seen first.
    volume["size"] = 4
    ended = _last(me)
    assert (ended["ModificationState"], ended["EndTime"][:16]) == (
        "completed",
        done["EndTime"][:16],
    )


BOTH = {"VolumeType": "shared", "Size": 9}


def test_size_and_type_are_changed_by_one_call(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    answer = me(modify_volume, VolumeId=volume_id, **BOTH)["VolumeModification"]
    expected = {
        "ModificationState": "modifying",
        "OriginalSize": 2,
        "TargetSize": 9,
        "OriginalVolumeType": "plain",
        "TargetVolumeType": "shared",
    }
    assert {name: answer[name] for name in expected} == expected
    # It has grown and waits for its type: still going on, and not to be changed.
    volume["status"] = "available"
    assert _last(me)["ModificationState"] == "modifying"
    assert _code(me, modify_volume, VolumeId=volume_id, Size=10) == "IncorrectModificationState"
    [job] = finish(me, journal.RETYPE)
    assert job.state == "done"
    assert (volume["size"], volume["volume_type"]) == (9, "shared")
    assert [list(body) for _, _, body in openstack.bodies[-2:]] == [["os-extend"], ["os-retype"]]
    volume["status"] = "available"
    assert _last(me)["ModificationState"] == "completed"


def test_a_type_that_cannot_follow_fails_the_change(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    me(modify_volume, VolumeId=volume_id, **BOTH)
    volume["status"] = "available"
    openstack.fail = {f"volumes/{volume['id']}/action": 400}
    [job] = finish(me, journal.RETYPE)
    assert job.state == "failed"
    assert _last(me)["ModificationState"] == "failed"
    openstack.fail = {}
    me(modify_volume, VolumeId=volume_id, VolumeType="shared")
    assert volume["volume_type"] == "shared"


def test_a_volume_that_did_not_grow_keeps_its_type(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    me(modify_volume, VolumeId=volume_id, **BOTH)
    volume |= {"status": "error_extending", "size": 2}
    [job] = finish(me, journal.RETYPE)
    assert (job.state, volume["volume_type"]) == ("failed", "plain")
    assert _last(me)["ModificationState"] == "failed"


def test_a_refusal_to_grow_leaves_nothing_behind(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    openstack.fail = {f"volumes/{volume['id']}/action": 409}
    assert _code(me, modify_volume, VolumeId=volume_id, **BOTH) == "IncorrectState"
    openstack.fail = {}
    assert me(describe_volumes_modifications)["VolumesModifications"] == []
    assert not [job for job in jobs_of(me.db, journal.RETYPE) if job.state != "cancelled"]


def test_an_attached_volume_grows_as_well(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    openstack.attach(volume, openstack.server(), "/dev/vdb")
    me(modify_volume, VolumeId=volume_id, Size=3)
    volume["status"] = "error_extending"
    failed = _last(me)
    assert (failed["ModificationState"], failed["Progress"]) == ("completed", 100)


def test_a_change_that_failed(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    me(modify_volume, VolumeId=volume_id, Size=3)
    volume["status"], volume["size"] = "error_extending", 2
    failed = _last(me)
    assert (failed["ModificationState"], failed["Progress"]) == ("failed", 0)
    assert failed["StatusMessage"]


def test_types_are_changed_and_named_as_asked(
    openstack: Storage, me: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    answer = me(modify_volume, VolumeId=volume_id, VolumeType="shared")["VolumeModification"]
    assert (answer["OriginalVolumeType"], answer["TargetVolumeType"]) == ("plain", "shared")
    retype = {"new_type": "shared", "migration_policy": "on-demand"}
    assert openstack.bodies[-1][2] == {"os-retype": retype}
    volume["status"] = "available"
    assert _last(me)["ModificationState"] == "completed"
    # EC2's own names mean the default type.
    me(modify_volume, VolumeId=volume_id, VolumeType="gp3")
    assert volume["volume_type"] == "plain"
    volume["status"] = "available"
    assert me(describe_volumes)["Volumes"][0]["VolumeType"] == "gp3"
    count = len(openstack.bodies)
    answer = me(modify_volume, VolumeId=volume_id, VolumeType="gp2")["VolumeModification"]
    assert (answer["ModificationState"], answer["TargetVolumeType"]) == ("completed", "gp2")
    assert (answer["OriginalVolumeType"], len(openstack.bodies)) == ("gp3", count)
    assert me(describe_volumes)["Volumes"][0]["VolumeType"] == "gp2"
    # What is as it is asked for does not count, and no figure is no promise.
    me(modify_volume, VolumeId=volume_id, VolumeType="gp2", Size=3, Iops=0)
    assert volume["size"] == 3


def test_mistakes(
    openstack: Storage, me: Caller, them: Caller, volume: dict[str, Any], volume_id: str
) -> None:
    def code(**changes: Any) -> str:
        return _code(me, modify_volume, **{"VolumeId": volume_id, **changes})

    assert code() == "InvalidParameterCombination"
    assert code(Size=1) == code(Size=0) == code(Size=65537) == "InvalidParameterValue"
    assert code(VolumeType="odd") == "InvalidParameterValue"
    assert code(Iops=100) == code(Throughput=125) == "UnsupportedOperation"
    assert code(MultiAttachEnabled=True) == "UnsupportedOperation"
    assert code(Size=3, DryRun=True) == "DryRunOperation"
    assert code(Size=3, VolumeId="vol-00000001") == "InvalidVolume.NotFound"
    assert _code(them, modify_volume, VolumeId=volume_id, Size=3) == "InvalidVolume.NotFound"
    for status in ("creating", "error", "deleting"):
        volume["status"] = status
        assert code(Size=3) == "IncorrectState"
    assert openstack.bodies == []
    assert me(describe_volumes_modifications)["VolumesModifications"] == []
    volume["status"] = "available"
    none = {"VolumeIds": [volume_id]}
    unknown = "InvalidVolumeModification.NotFound"
    assert _code(me, describe_volumes_modifications, **none) == unknown
    openstack.fail["action$"] = 400
    assert code(Size=3) == "IncorrectState"
    assert _code(me, describe_volumes_modifications, **none) == unknown


def test_filters_and_pages(openstack: Storage, me: Caller) -> None:
    for number in range(6):
        made = me(create_volume, Size=number + 1)
        list(openstack.volumes.values())[-1]["status"] = "available"
        me(modify_volume, VolumeId=made["VolumeId"], Size=number + 2)
    by_size = [{"Name": "target-size", "Values": ["3", "4"]}]
    found = me(describe_volumes_modifications, Filters=by_size)["VolumesModifications"]
    assert sorted(row["OriginalSize"] for row in found) == [2, 3]
    first = me(describe_volumes_modifications, MaxResults=5)
    rest = me(describe_volumes_modifications, NextToken=first["NextToken"])
    assert len(first["VolumesModifications"]) == 5
    assert len(rest["VolumesModifications"]) == 1
