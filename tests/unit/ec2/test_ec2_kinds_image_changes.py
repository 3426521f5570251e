"""Making, changing, sharing and removing images."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests_mock as mocking

from tests.support.ec2_jobs import finish, jobs_of
from tests.support.ec2_openstack import MINE, OPERATOR, THEIRS, Caller, instances_of
from tests.support.ec2_workshop import Workshop
from trimaran.db.models import work as states
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.kinds.images import image_reserve, image_snapshot
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_attribute import (
    describe_image_attribute,
    reset_image_attribute,
)
from trimaran.ec2.kinds.images.image_copy import copy_image
from trimaran.ec2.kinds.images.image_create import create_image
from trimaran.ec2.kinds.images.image_modify import deregister_image, modify_image_attribute
from trimaran.ec2.kinds.images.image_register import register_image
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.volumes.snapshot import describe_snapshots
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Conflict, Forbidden, Unavailable


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Workshop:
    return Workshop(requests_mock)


def _refused(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        me(action, **request)
    return str(caught.value.code)


def _shown(me: Caller, image_id: str) -> dict[str, Any]:
    [found] = me(describe_images, ImageIds=[image_id])["Images"]
    made: dict[str, Any] = found
    return made


def _id_of(me: Caller, image: dict[str, Any]) -> str:
    images = me(describe_images)["Images"]
    return str(next(row["ImageId"] for row in images if row["Name"] == image["name"]))


def _items(me: Caller) -> list[Item]:
    return me.db.read(lambda s: queries.items_of(s, MINE, ids.IMAGE_PREFIXES))


@pytest.fixture
def mine(openstack: Workshop, me: Caller) -> str:
    return _id_of(me, openstack.image(MINE, name="mine", description="old"))


@pytest.fixture
def public(openstack: Workshop, me: Caller) -> str:
    return _id_of(me, openstack.image(name="public"))


# -- attributes ---------------------------------------------------------------


def test_attributes_are_shown(openstack: Workshop, me: Caller, mine: str) -> None:
    def look(name: str) -> dict[str, Any]:
        answer: dict[str, Any] = me(describe_image_attribute, ImageId=mine, Attribute=name)
        assert answer.pop("ImageId") == mine
        return answer

    assert look("description") == {"Description": {"Value": "old"}}
    assert look("kernel") == look("ramdisk") == {}
    assert look("launchPermission") == {"LaunchPermissions": []}
    assert look("blockDeviceMapping") == {"BlockDeviceMappings": []}
    assert look("productCodes") == {"ProductCodes": []}


def test_the_order_of_refusals(openstack: Workshop, me: Caller, public: str) -> None:
    look = {"ImageId": public, "Attribute": "unsupported"}
    assert _refused(me, describe_image_attribute, **look) == "InvalidRequest"
    look["Attribute"] = "description"
    assert _refused(me, describe_image_attribute, **look) == "AuthFailure"
    reset = {"ImageId": public, "Attribute": "fake"}
    assert _refused(me, reset_image_attribute, **reset) == "InvalidRequest"
    reset["Attribute"] = "launchPermission"
    assert _refused(me, reset_image_attribute, **reset) == "AuthFailure"
    assert _refused(me, deregister_image, ImageId=public) == "AuthFailure"
    assert _refused(me, deregister_image, ImageId="ami-1") == "InvalidAMIID.NotFound"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({}, "InvalidParameterCombination"),
        ({"Attribute": "unsupported"}, "InvalidParameterCombination"),
        ({"Attribute": "blockDeviceMapping"}, "InvalidParameter"),
        ({"ProductCodes": ["x"]}, "InvalidParameter"),
        ({"Attribute": "description"}, "MissingParameter"),
        ({"Description": {"Value": ""}}, "MissingParameter"),
        ({"Description": {"Value": "x" * 256}}, "ValidationError"),
        ({"Attribute": "launchPermission"}, "InvalidParameterCombination"),
        (
            {"Description": {"Value": "x"}, "LaunchPermission": {"Add": [{"Group": "all"}]}},
            "InvalidParameterCombination",
        ),
        ({"LaunchPermission": {"Add": [{"Group": "some"}]}}, "InvalidParameterValue"),
        ({"LaunchPermission": {"Add": [{"UserId": "no such"}]}}, "InvalidParameterValue"),
        ({"UserGroups": ["all"]}, "MissingParameter"),
        ({"UserGroups": ["all"], "OperationType": "toggle"}, "InvalidParameterValue"),
        (
            {"UserGroups": ["all", "others"], "OperationType": "add"},
            "InvalidParameterValue",
        ),
        ({"ImdsSupport": {"Value": "v2.0"}}, "UnsupportedOperation"),
        ({"Description": {"Value": "fake"}}, "AuthFailure"),
        ({"LaunchPermission": {"Add": [{"Group": "all"}]}}, "AuthFailure"),
    ],
)
def test_what_cannot_be_modified(
    openstack: Workshop, me: Caller, public: str, request_: dict[str, Any], code: str
) -> None:
    assert _refused(me, modify_image_attribute, ImageId=public, **request_) == code


def test_the_description_is_the_items(openstack: Workshop, me: Caller, mine: str) -> None:
    me(modify_image_attribute, ImageId=mine, Description={"Value": "007"})
    assert _shown(me, mine)["Description"] == "007"
    me(modify_image_attribute, ImageId=mine, Attribute="description", Value="new")
    assert _shown(me, mine)["Description"] == "new"


# -- launch permissions -------------------------------------------------------


@pytest.mark.parametrize(
    "grant",
    [
        {"Attribute": "launchPermission", "OperationType": "add", "UserGroups": ["all"]},
        {"LaunchPermission": {"Add": [{"Group": "all"}]}},
    ],
)
def test_an_image_is_published_and_taken_back(
    openstack: Workshop, me: Caller, them: Caller, mine: str, grant: dict[str, Any]
) -> None:
    openstack.may_publish.add(MINE)
    me(modify_image_attribute, ImageId=mine, **grant)
    # In the database at once, not only after the next describe.
    assert [item.is_public for item in _items(me)] == [True]
    assert _shown(me, mine)["Public"] is True
    look = {"ImageId": mine, "Attribute": "launchPermission"}
    assert me(describe_image_attribute, **look)["LaunchPermissions"] == [{"Group": "all"}]
    assert _id_of(them, {"name": "mine"}) == mine
    me(reset_image_attribute, **look)
    assert [item.is_public for item in _items(me)] == [False]
    assert _shown(me, mine)["Public"] is False
    assert me(describe_image_attribute, **look)["LaunchPermissions"] == []
    assert them(describe_images)["Images"] == []


def test_who_may_not_publish_in_glance_may_not_here(
    openstack: Workshop, me: Caller, mine: str
) -> None:
    with pytest.raises(Forbidden):
        me(modify_image_attribute, ImageId=mine, LaunchPermission={"Add": [{"Group": "all"}]})
    assert _shown(me, mine)["Public"] is False


def test_an_image_is_shared_with_a_project(
    openstack: Workshop, me: Caller, them: Caller, mine: str
) -> None:
    me(modify_image_attribute, ImageId=mine, LaunchPermission={"Add": [{"UserId": THEIRS}]})
    look = {"ImageId": mine, "Attribute": "launchPermission"}
    assert me(describe_image_attribute, **look)["LaunchPermissions"] == [{"UserId": THEIRS}]
    [seen] = them(describe_images, ExecutableUsers=["self"])["Images"]
    assert (seen["ImageId"], seen["OwnerId"], seen["Public"]) == (mine, MINE, False)
    assert _refused(them, describe_image_attribute, **look) == "AuthFailure"
    # Twice is as good as once.
    me(modify_image_attribute, ImageId=mine, LaunchPermission={"Add": [{"UserId": THEIRS}]})
    me(
        modify_image_attribute,
        ImageId=mine,
        OperationType="remove",
        UserIds=[THEIRS, "never-had-it"][:1],
    )
    assert them(describe_images)["Images"] == []
    assert me(describe_image_attribute, **look)["LaunchPermissions"] == []


def test_reset_ends_the_sharing(openstack: Workshop, me: Caller, them: Caller, mine: str) -> None:
    me(modify_image_attribute, ImageId=mine, OperationType="add", UserIds=[THEIRS])
    me(reset_image_attribute, ImageId=mine, Attribute="launchPermission")
    assert them(describe_images)["Images"] == []


def test_a_public_image_has_no_members(openstack: Workshop, me: Caller, mine: str) -> None:
    openstack.may_publish.add(MINE)
    both = {"LaunchPermission": {"Add": [{"Group": "all"}, {"UserId": THEIRS}]}}
    assert _refused(me, modify_image_attribute, ImageId=mine, **both) == "UnsupportedOperation"
    me(modify_image_attribute, ImageId=mine, LaunchPermission={"Add": [{"Group": "all"}]})
    swap = {"LaunchPermission": {"Remove": [{"Group": "all"}], "Add": [{"UserId": THEIRS}]}}
    me(modify_image_attribute, ImageId=mine, **swap)
    look = {"ImageId": mine, "Attribute": "launchPermission"}
    assert me(describe_image_attribute, **look)["LaunchPermissions"] == [{"UserId": THEIRS}]


# -- deregistering ------------------------------------------------------------


def test_deregistering_takes_item_and_tags_along(
    openstack: Workshop, me: Caller, mine: str
) -> None:
    tag = tag_queries.Tag(mine, "a", "b")
    me.db.write(lambda s: tag_queries.set_tags(s, MINE, [tag]))
    assert _refused(me, deregister_image, ImageId=mine, DryRun=True) == "DryRunOperation"
    assert me(deregister_image, ImageId=mine)["Return"] is True
    assert openstack.images == {}
    assert _items(me) == []
    assert me.db.read(lambda s: tag_queries.tags_of(s, MINE)) == []
    assert _refused(me, deregister_image, ImageId=mine) == "InvalidAMIID.NotFound"


def test_an_image_that_a_job_makes_cannot_be_deregistered_before_it_failed(me: Caller) -> None:
    def put(data: dict[str, Any]) -> str:
        new = NewItem("ami", None, MINE, data)
        [item] = me.db.write(lambda s: queries.add_items(s, [new], ids.mint))
        return item.id

    pending, failed = put({"description": "x"}), put({"state": "failed"})
    assert _refused(me, deregister_image, ImageId=pending) == "IncorrectState"
    look = {"ImageId": pending, "Attribute": "description"}
    assert _refused(me, describe_image_attribute, **look) == "IncorrectState"
    me(deregister_image, ImageId=failed)
    assert [item.id for item in _items(me)] == [pending]


# -- registering --------------------------------------------------------------


@pytest.fixture
def snapshot(openstack: Workshop, me: Caller) -> str:
    openstack.snapshot(openstack.free_volume(size=2))
    [found] = me(describe_snapshots)["Snapshots"]
    return str(found["SnapshotId"])


def _register(me: Caller, snapshot: str, **request: Any) -> str:
    root = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot}}
    request = {"RootDeviceName": "/dev/vda", "BlockDeviceMappings": [root], **request}
    return str(me(register_image, Name="made", **request)["ImageId"])


def test_an_image_is_registered_of_a_snapshot(
    openstack: Workshop, me: Caller, snapshot: str
) -> None:
    data = {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 5, "DeleteOnTermination": False}}
    root = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot}}
    tags = [{"ResourceType": "image", "Tags": [{"Key": "a", "Value": "b"}]}]
    image_id = _register(
        me,
        snapshot,
        BlockDeviceMappings=[root, data],
        Description="123",
        Architecture="arm64",
        TagSpecifications=tags,
    )
    shown = _shown(me, image_id)
    assert (shown["Name"], shown["Description"], shown["State"]) == ("made", "123", "available")
    assert (shown["RootDeviceType"], shown["RootDeviceName"]) == ("ebs", "/dev/vda")
    assert (shown["Architecture"], shown["Public"]) == ("arm64", False)
    assert shown["Tags"] == [{"Key": "a", "Value": "b"}]
    devices = {row["DeviceName"]: row["Ebs"] for row in shown["BlockDeviceMappings"]}
    assert devices["/dev/vda"]["SnapshotId"] == snapshot
    assert (devices["/dev/vda"]["VolumeSize"], devices["/dev/vdb"]["VolumeSize"]) == (2, 5)
    assert devices["/dev/vdb"]["DeleteOnTermination"] is False
    # In the words that Nova boots from.
    [image] = openstack.images.values()
    first = json.loads(image["block_device_mapping"])[0]
    assert first["boot_index"] == 0
    assert first["snapshot_id"] in openstack.snapshots
    assert (image["bdm_v2"], image["architecture"]) == ("True", "aarch64")
    [job] = jobs_of(me.db, journal.IMAGE)
    assert job.state == states.CANCELLED


def test_what_an_image_was_registered_with_is_shown(
    openstack: Workshop, me: Caller, snapshot: str
) -> None:
    rows = [
        {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot, "VolumeType": "gp3"}},
        {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 5, "VolumeType": "shared"}},
        {"DeviceName": "/dev/vdc", "Ebs": {"VolumeSize": 5}},
    ]
    more = {"EnaSupport": False, "SriovNetSupport": "simple"}
    shown = _shown(me, _register(me, snapshot, BlockDeviceMappings=rows, **more))
    assert {name: shown[name] for name in more} == more
    kinds = {row["DeviceName"]: row["Ebs"]["VolumeType"] for row in shown["BlockDeviceMappings"]}
    assert kinds == {"/dev/vda": "gp3", "/dev/vdb": "shared", "/dev/vdc": "standard"}
    [image] = openstack.images.values()
    told = [row.get("volume_type") for row in json.loads(image["block_device_mapping"])]
    assert told == [None, "shared", None]
    # One of which nothing else was said.
    plain = _shown(me, _register(me, snapshot))
    assert (plain["EnaSupport"], "SriovNetSupport" in plain) == (True, False)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        # The name is the location then, and is none.
        ({"RootDeviceName": None}, "InvalidParameterValue"),
        ({"ImageLocation": "bucket/manifest.xml"}, "InvalidParameterCombination"),
        ({"Architecture": "vax"}, "InvalidParameterValue"),
        ({"BootMode": "uefi-preferred"}, "UnsupportedOperation"),
        ({"TpmSupport": "v2.0"}, "UnsupportedOperation"),
        ({"BlockDeviceMappings": []}, "InvalidBlockDeviceMapping"),
        ({"RootDeviceName": "/dev/sda"}, "InvalidBlockDeviceMapping"),
        ({"KernelId": "aki-1"}, "InvalidAMIID.NotFound"),
        ({"KernelId": "ami-1"}, "InvalidParameterValue"),
        (
            {"TagSpecifications": [{"ResourceType": "instance", "Tags": []}]},
            "InvalidParameterValue",
        ),
    ],
)
def test_what_cannot_be_registered(
    openstack: Workshop, me: Caller, snapshot: str, request_: dict[str, Any], code: str
) -> None:
    with pytest.raises(EC2Error) as caught:
        _register(me, snapshot, **request_)
    assert caught.value.code == code
    assert openstack.images == {}
    assert _items(me) == []


@pytest.mark.parametrize(
    ("ebs", "code"),
    [
        ({"SnapshotId": "snap-1"}, "InvalidSnapshot.NotFound"),
        ({"SnapshotId": "ami-1"}, "InvalidSnapshotID.Malformed"),
        ({"VolumeSize": 1}, "InvalidBlockDeviceMapping"),
        ({"Encrypted": True}, "UnsupportedOperation"),
    ],
)
def test_devices_that_cannot_be_registered(
    openstack: Workshop, me: Caller, snapshot: str, ebs: dict[str, Any], code: str
) -> None:
    root = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot, **ebs}}
    with pytest.raises(EC2Error) as caught:
        _register(me, snapshot, BlockDeviceMappings=[root])
    assert caught.value.code == code


def test_another_projects_snapshot_is_as_good_as_none(
    openstack: Workshop, me: Caller, them: Caller, snapshot: str
) -> None:
    with pytest.raises(EC2Error) as caught:
        _register(them, snapshot)
    assert caught.value.code == "InvalidSnapshot.NotFound"


def test_a_refused_upload_leaves_nothing(openstack: Workshop, me: Caller, snapshot: str) -> None:
    openstack.fail = {r"/file$": 409}
    with pytest.raises(Conflict):
        _register(me, snapshot)
    assert openstack.images == {}
    assert _items(me) == []
    [job] = jobs_of(me.db, journal.IMAGE)
    assert job.state == states.CANCELLED


def _die(*args: Any, **kwargs: Any) -> None:
    raise KeyboardInterrupt


def test_death_before_the_upload_undoes_the_image(
    openstack: Workshop, me: Caller, snapshot: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimaran.cloud.image.Image.upload_image", _die)
        with pytest.raises(KeyboardInterrupt):
            _register(me, snapshot)
    assert [row["status"] for row in openstack.images.values()] == ["queued"]
    # A describe pairs the two, and the journal is not misled by that.
    assert [row["State"] for row in me(describe_images)["Images"]] == ["pending"]
    finish(me, journal.IMAGE)
    assert openstack.images == {}
    assert _items(me) == []


def test_death_after_the_upload_completes_the_image(
    openstack: Workshop, me: Caller, snapshot: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_reserve, "_link", _die)
        with pytest.raises(KeyboardInterrupt):
            _register(me, snapshot)
    [item] = _items(me)
    assert item.os_id is None
    finish(me, journal.IMAGE)
    [item] = _items(me)
    assert item.os_id in openstack.images
    assert "stage" not in item.data
    assert _shown(me, item.id)["State"] == "available"


def test_death_before_glance_leaves_nothing(openstack: Workshop, me: Caller, snapshot: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimaran.cloud.image.Image.create_image", _die)
        with pytest.raises(KeyboardInterrupt):
            _register(me, snapshot)
    [pending] = me(describe_images)["Images"]
    assert pending["State"] == "pending"
    # Somebody else's image that claims the id is none of ours.
    openstack.image(THEIRS, ec2_id=pending["ImageId"])
    finish(me, journal.IMAGE)
    assert _items(me) == []
    assert len(openstack.images) == 1


def test_images_of_snapshots_are_not_copied(openstack: Workshop, me: Caller, snapshot: str) -> None:
    source = _register(me, snapshot)
    request = {"Name": "copy", "SourceRegion": "RegionOne", "SourceImageId": source}
    assert _refused(me, copy_image, **request) == "UnsupportedOperation"
    request["SourceRegion"] = "elsewhere"
    assert _refused(me, copy_image, **request) == "InvalidParameterValue"
    request |= {"SourceRegion": "RegionOne", "SourceImageId": "ami-1"}
    assert _refused(me, copy_image, **request) == "InvalidAMIID.NotFound"


# -- of an instance -----------------------------------------------------------


@pytest.fixture
def server(openstack: Workshop) -> dict[str, Any]:
    """A stopped server whose root and data are volumes."""
    made = openstack.server(**{"OS-EXT-STS:vm_state": "stopped"})
    openstack.volume(made, "/dev/vda", size=2)
    openstack.volume(made, "/dev/vdb", size=3)
    return made


@pytest.fixture
def instance(me: Caller, server: dict[str, Any]) -> str:
    [found] = instances_of(me(describe_instances))
    return str(found["InstanceId"])


def test_an_image_of_a_stopped_instance(openstack: Workshop, me: Caller, instance: str) -> None:
    tags = [
        {"ResourceType": "image", "Tags": [{"Key": "a", "Value": "image"}]},
        {"ResourceType": "snapshot", "Tags": [{"Key": "a", "Value": "snapshot"}]},
    ]
    image_id = me(
        create_image, InstanceId=instance, Name="backup", Description="d", TagSpecifications=tags
    )["ImageId"]
    shown = _shown(me, image_id)
    assert (shown["Name"], shown["Description"], shown["State"]) == ("backup", "d", "available")
    assert shown["RootDeviceType"] == "ebs"
    assert shown["Tags"] == [{"Key": "a", "Value": "image"}]
    sizes = [row["Ebs"]["VolumeSize"] for row in shown["BlockDeviceMappings"]]
    assert sizes == [2, 3]
    snapshots = me(describe_snapshots)["Snapshots"]
    assert [row["Tags"][0]["Value"] for row in snapshots] == ["snapshot", "snapshot"]
    # Glance is told as well (F57).
    assert [row["description"] for row in openstack.images.values()] == ["d"]


def test_the_devices_of_the_image_follow_the_request(
    openstack: Workshop, me: Caller, instance: str
) -> None:
    mappings = [
        {"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 9, "DeleteOnTermination": False}},
        {"DeviceName": "/dev/vdb", "NoDevice": ""},
        {"DeviceName": "/dev/vdc", "Ebs": {"VolumeSize": 4}},
    ]
    request = {"InstanceId": instance, "Name": "backup", "BlockDeviceMappings": mappings}
    image_id = me(create_image, **request)["ImageId"]
    devices = {row["DeviceName"]: row["Ebs"] for row in _shown(me, image_id)["BlockDeviceMappings"]}
    assert set(devices) == {"/dev/vda", "/dev/vdc"}
    assert (devices["/dev/vda"]["VolumeSize"], devices["/dev/vdc"]["VolumeSize"]) == (9, 4)
    assert devices["/dev/vda"]["DeleteOnTermination"] is False
    # The snapshot that Nova made in vain is gone.
    left = [row["status"] for row in openstack.snapshots.values()]
    assert sorted(left) == ["available", "deleting"]


def test_snapshots_that_an_image_tells_of_can_be_looked_up(
    openstack: Workshop, me: Caller, them: Caller, instance: str
) -> None:
    image_id = me(create_image, InstanceId=instance, Name="backup")["ImageId"]
    devices = _shown(me, image_id)["BlockDeviceMappings"]
    for device in devices:
        wanted = {"SnapshotIds": [device["Ebs"]["SnapshotId"]]}
        assert _refused(them, describe_snapshots, **wanted) == "InvalidSnapshot.NotFound"
        [found] = me(describe_snapshots, **wanted)["Snapshots"]
        assert found["OwnerId"] == MINE
        assert _refused(them, describe_snapshots, **wanted) == "InvalidSnapshot.NotFound"


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ({"DeviceName": "/dev/vda", "NoDevice": ""}, "InvalidBlockDeviceMapping"),
        ({"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 1}}, "InvalidBlockDeviceMapping"),
        ({"DeviceName": "/dev/vdb", "VirtualName": "ephemeral0"}, "InvalidBlockDeviceMapping"),
        ({"DeviceName": "/dev/vdc", "Ebs": {"SnapshotId": "snap-1"}}, "InvalidSnapshot.NotFound"),
        ({"DeviceName": "/dev/vdc", "Ebs": {}}, "MissingParameter"),
    ],
)
def test_devices_that_an_image_cannot_have(
    openstack: Workshop, me: Caller, instance: str, mapping: dict[str, Any], code: str
) -> None:
    request = {"InstanceId": instance, "Name": "x", "BlockDeviceMappings": [mapping]}
    assert _refused(me, create_image, **request) == code
    assert openstack.images == {}
    assert _items(me) == []
    assert {row["status"] for row in openstack.snapshots.values()} <= {"deleting"}


def test_a_running_instance_without_a_reboot(
    openstack: Workshop, me: Caller, server: dict[str, Any], instance: str
) -> None:
    server["OS-EXT-STS:vm_state"] = "active"
    assert me(create_image, InstanceId=instance, Name="x", NoReboot=True)["ImageId"]
    server["OS-EXT-STS:vm_state"] = "error"
    assert _refused(me, create_image, InstanceId=instance, Name="x") == "IncorrectState"


def test_an_instance_store_root_makes_no_image(openstack: Workshop, me: Caller) -> None:
    openstack.server(**{"OS-EXT-STS:vm_state": "stopped"})
    [found] = instances_of(me(describe_instances))
    request = {"InstanceId": found["InstanceId"], "Name": "x"}
    assert _refused(me, create_image, **request) == "InvalidParameterValue"


def test_a_dry_run_makes_no_image(openstack: Workshop, me: Caller, instance: str) -> None:
    request = {"InstanceId": instance, "Name": "x", "DryRun": True}
    assert _refused(me, create_image, **request) == "DryRunOperation"
    assert openstack.images == {}
    assert openstack.snapshots == {}


def test_what_fails_after_the_snapshot_takes_everything_back(
    openstack: Workshop, me: Caller, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise EC2Error("InvalidParameterValue", "no")

    monkeypatch.setattr(image_snapshot, "complete", fail)
    request = {"InstanceId": instance, "Name": "x"}
    assert _refused(me, create_image, **request) == "InvalidParameterValue"
    assert openstack.images == {}
    assert {row["status"] for row in openstack.snapshots.values()} == {"deleting"}
    assert _items(me) == []


def test_an_image_that_nova_did_not_answer_for_is_found(
    openstack: Workshop, me: Caller, instance: str
) -> None:
    openstack.quiet = ["POST .*/action$"]
    with pytest.raises(Unavailable):
        me(create_image, InstanceId=instance, Name="backup")
    openstack.quiet = []
    finish(me, journal.IMAGE)
    [item] = _items(me)
    assert _shown(me, item.id)["Name"] == "backup"


def test_a_dry_run_of_a_change_changes_nothing(
    openstack: Workshop, me: Caller, snapshot: str, mine: str
) -> None:
    root = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot}}
    seen, items = len(openstack.seen), {item.id: item.version for item in _items(me)}
    for action, request in (
        (
            register_image,
            {"Name": "x", "RootDeviceName": "/dev/vda", "BlockDeviceMappings": [root]},
        ),
        (modify_image_attribute, {"ImageId": mine, "Description": {"Value": "x"}}),
        (modify_image_attribute, {"ImageId": mine, "OperationType": "add", "UserIds": [THEIRS]}),
        (reset_image_attribute, {"ImageId": mine, "Attribute": "launchPermission"}),
        (deregister_image, {"ImageId": mine}),
    ):
        assert _refused(me, action, DryRun=True, **request) == "DryRunOperation"
    assert {method for method, _ in openstack.seen[seen:]} == {"GET"}
    assert {item.id: item.version for item in _items(me)} == items
    assert jobs_of(me.db, journal.IMAGE) == []


def test_foreign_images_keep_their_owner(openstack: Workshop, me: Caller, public: str) -> None:
    assert _shown(me, public)["OwnerId"] == OPERATOR
