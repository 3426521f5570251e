"""DescribeImages: what Glance shows, whose it is, what it brings."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any

import pytest

from tests.support.ec2_openstack import GLANCE, MINE, OPERATOR, THEIRS, Caller, OpenStack
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_devices import devices, root_device_name
from trimaran.ec2.kinds.tag import create_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Unavailable
from trimaran.identity import count_calls


def _names(answer: dict[str, Any]) -> set[str]:
    return {image["Name"] for image in answer["Images"]}


def _id(me: Caller, name: str) -> str:
    found = me(describe_images, Filters=[{"Name": "name", "Values": [name]}])["Images"]
    return str(found[0]["ImageId"])


def test_an_image_shows_what_glance_says(openstack: OpenStack, me: Caller) -> None:
    openstack.image(name="cirros", hw_architecture="aarch64", os_type="windows")
    [image] = me(describe_images)["Images"]
    assert image["ImageId"].startswith("ami-")
    expected = {
        "Name": "cirros",
        "OwnerId": OPERATOR,
        "Public": True,
        "State": "available",
        "ImageType": "machine",
        "Architecture": "arm64",
        "Platform": "windows",
        "CreationDate": "2026-01-01T00:00:00.000Z",
        "ImageLocation": "None (cirros)",
        "RootDeviceType": "instance-store",
        "BlockDeviceMappings": [],
        "ImageOwnerAlias": "amazon",
    }
    assert {name: image[name] for name in expected} == expected
    assert "Tags" not in image
    assert "Description" not in image


@pytest.mark.parametrize(
    ("container", "prefix", "kind"),
    [
        ("aki", "aki", "kernel"),
        ("kernel", "aki", "kernel"),
        ("ari", "ari", "ramdisk"),
        ("ramdisk", "ari", "ramdisk"),
        ("bare", "ami", "machine"),
        (None, "ami", "machine"),
    ],
)
def test_the_container_format_decides_the_kind(
    openstack: OpenStack, me: Caller, container: str | None, prefix: str, kind: str
) -> None:
    openstack.image(container_format=container)
    [image] = me(describe_images)["Images"]
    assert ids.kind_of(image["ImageId"]) == prefix
    assert image["ImageType"] == kind


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"status": "queued"}, "pending"),
        ({"status": "saving"}, "pending"),
        ({"status": "active"}, "available"),
        ({"status": "deactivated"}, "invalid"),
        ({"status": "killed"}, "deregistered"),
        ({"status": "odd"}, "error"),
        ({"status": "active", "image_state": "downloading"}, "pending"),
        ({"status": "active", "image_state": "failed_untar"}, "failed"),
        ({"status": "deactivated", "image_state": "available"}, "invalid"),
    ],
)
def test_states(openstack: OpenStack, me: Caller, fields: dict[str, str], state: str) -> None:
    openstack.image(**fields)
    assert me(describe_images)["Images"][0]["State"] == state


def test_a_public_image_has_one_id_for_all_and_its_owner_keeps_it(
    openstack: OpenStack, me: Caller, them: Caller
) -> None:
    openstack.image(THEIRS, visibility="public")
    [mine] = me(describe_images)["Images"]
    [theirs] = them(describe_images)["Images"]
    [again] = me(describe_images)["Images"]
    assert mine["ImageId"] == theirs["ImageId"] == again["ImageId"]
    assert "ImageOwnerAlias" not in theirs
    [item] = me.db.read(lambda s: queries.items_of(s, THEIRS, ["ami"]))
    assert item.is_public is True
    assert me.db.read(lambda s: queries.items_of(s, MINE, ["ami"])) == []


def test_private_images_of_others_are_not_there(
    openstack: OpenStack, me: Caller, them: Caller
) -> None:
    image = openstack.image(THEIRS)
    [theirs] = them(describe_images)["Images"]
    assert me(describe_images)["Images"] == []
    with pytest.raises(EC2Error) as caught:
        me(describe_images, ImageIds=[theirs["ImageId"]])
    assert caught.value.code == "InvalidAMIID.NotFound"
    # Public once, private again: the id that was learnt meanwhile shows nothing.
    image["visibility"] = "public"
    assert me(describe_images, ImageIds=[theirs["ImageId"]])["Images"][0]["Public"] is True
    image["visibility"] = "private"
    with pytest.raises(EC2Error):
        me(describe_images, ImageIds=[theirs["ImageId"]])
    assert them(describe_images)["Images"][0]["ImageId"] == theirs["ImageId"]


def test_public_is_kept_both_ways_and_written_only_when_it_changes(
    openstack: OpenStack, me: Caller
) -> None:
    image = openstack.image(MINE)

    def stored() -> tuple[bool, Any, int]:
        [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["ami"]))
        return item.is_public, item.data["is_public"], item.version

    me(describe_images)
    assert stored() == (False, False, 0)
    image["visibility"] = "public"
    me(describe_images)
    assert stored() == (True, True, 1)
    me(describe_images)
    assert stored() == (True, True, 1)
    image["visibility"] = "private"
    me(describe_images)
    assert stored() == (False, False, 2)


def test_a_repair_does_not_undo_what_another_request_wrote_meanwhile(
    openstack: OpenStack, me: Caller
) -> None:
    image = openstack.image(MINE)
    [shown] = me(describe_images)["Images"]
    image["visibility"] = "public"
    words = {"description": "new", "is_public": False}

    def write(method: str, path: str) -> None:
        openstack.before = lambda method, path: None
        change = threading.Thread(
            target=lambda: me.db.write(
                lambda s: queries.update_item(s, MINE, shown["ImageId"], data=words)
            )
        )
        change.start()
        change.join(30)

    openstack.before = write
    me(describe_images)
    [after] = me(describe_images)["Images"]
    assert (after["Description"], after["Public"]) == ("new", True)
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["ami"]))
    assert (item.is_public, item.data) == (True, {"description": "new", "is_public": True})


def test_what_was_deleted_in_glance_goes_with_its_tags(openstack: OpenStack, me: Caller) -> None:
    image = openstack.image(MINE)
    [shown] = me(describe_images)["Images"]
    me(create_tags, Resources=[shown["ImageId"]], Tags=[{"Key": "k", "Value": "v"}])
    assert me(describe_images)["Images"][0]["Tags"] == [{"Key": "k", "Value": "v"}]
    del openstack.images[image["id"]]
    with pytest.raises(EC2Error) as caught:
        me(describe_images, ImageIds=[shown["ImageId"]])
    assert caught.value.code == "InvalidAMIID.NotFound"
    assert me.db.read(lambda s: queries.items_of(s, MINE, ["ami"])) == []


def test_a_failed_listing_deletes_nothing(openstack: OpenStack, me: Caller) -> None:
    openstack.image(MINE)
    [shown] = me(describe_images)["Images"]
    openstack.fail = {r"images\?.*os_hidden": 500}
    with pytest.raises(Unavailable):
        me(describe_images)
    openstack.fail = {}
    assert me(describe_images)["Images"][0]["ImageId"] == shown["ImageId"]


def test_hidden_images_keep_their_ids(openstack: OpenStack, me: Caller) -> None:
    image = openstack.image(MINE)
    before = _id(me, "cirros")
    image["os_hidden"] = True
    assert _id(me, "cirros") == before
    openstack.image(OPERATOR, name="hidden", os_hidden=True)
    assert _names(me(describe_images)) == {"cirros"}


def test_owners_and_users(openstack: OpenStack, me: Caller) -> None:
    openstack.image(MINE, name="mine")
    openstack.image(MINE, name="mine-public", visibility="public")
    openstack.image(OPERATOR, name="public")
    openstack.image(THEIRS, name="community", visibility="community")

    def owned(*owners: str) -> set[str]:
        return _names(me(describe_images, Owners=list(owners)))

    assert owned() == {"mine", "mine-public", "public", "community"}
    assert owned("self") == owned(MINE) == {"mine", "mine-public"}
    assert owned("amazon") == {"mine-public", "public", "community"}
    assert owned("self", OPERATOR) == {"mine", "mine-public", "public"}
    assert owned("123456789012") == set()
    assert _names(me(describe_images, ExecutableUsers=["all"])) == owned("amazon")
    assert _names(me(describe_images, ExecutableUsers=["self"])) == set()


@pytest.mark.parametrize("count", [2, 9, 120])
def test_chosen_images_cost_calls_of_their_own_number_only(
    openstack: OpenStack, me: Caller, count: int
) -> None:
    for number in range(130):
        openstack.image(name=f"image-{number}")
    wanted = [image["ImageId"] for image in me(describe_images)["Images"]][:count]
    openstack.seen.clear()
    with count_calls() as calls:
        answer = me(describe_images, ImageIds=wanted)
    assert [image["ImageId"] for image in answer["Images"]] == wanted
    assert calls.total <= 8
    if count <= 2:
        assert f"{GLANCE}/images" not in [path for _, path in openstack.calls(GLANCE)]


def test_describe_all_is_two_calls_for_any_number(openstack: OpenStack, me: Caller) -> None:
    for more in (3, 40):
        for _ in range(more):
            openstack.image()
        me(describe_images)
        with count_calls() as calls:
            me(describe_images)
        assert calls.total == 2


def test_filters_and_pages(openstack: OpenStack, me: Caller) -> None:
    for number in range(7):
        openstack.image(name=f"image-{number}")
    openstack.image(MINE, name="other", description="words")

    def filtered(name: str, *values: str) -> set[str]:
        return _names(me(describe_images, Filters=[{"Name": name, "Values": list(values)}]))

    assert filtered("name", "image-[0-9]") == set()
    assert len(filtered("name", "image-?")) == 7
    assert filtered("is-public", "false") == {"other"}
    assert filtered("description", "word*") == {"other"}
    assert filtered("owner-alias", "amazon") == {f"image-{n}" for n in range(7)}
    assert filtered("kernel_id", "*") == filtered("kernel-id", "*") == set()
    with pytest.raises(EC2Error):
        filtered("nonsense", "x")
    page = me(describe_images, MaxResults=5)
    rest = me(describe_images, MaxResults=5, NextToken=page["NextToken"])
    assert (len(page["Images"]), len(rest["Images"]), rest["NextToken"]) == (5, 3, None)
    assert not _names(page) & _names(rest)


def test_an_image_that_is_being_made_is_pending_until_glance_has_it(
    openstack: OpenStack, me: Caller, them: Caller
) -> None:
    new = NewItem("ami", None, MINE, {"description": "soon", "is_public": False}, id="ami-00000001")
    me.db.write(lambda s: queries.add_items(s, [new], ids.mint))
    for request in ({}, {"ImageIds": ["ami-00000001"]}):
        [image] = me(describe_images, **request)["Images"]
        assert (image["State"], image["OwnerId"], image["Description"]) == ("pending", MINE, "soon")
        assert image["ImageType"] == "machine"
    assert them(describe_images)["Images"] == []
    with pytest.raises(EC2Error):
        them(describe_images, ImageIds=["ami-00000001"])
    glance = openstack.image(MINE, ec2_id="ami-00000001")
    [image] = me(describe_images, ImageIds=["ami-00000001"])["Images"]
    assert image["State"] == "available"
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["ami"]))
    assert item.os_id == glance["id"]


def test_devices_of_both_versions() -> None:
    os_id = str(uuid.uuid4())
    image = {
        "mappings": json.dumps(
            [
                {"virtual": "root", "device": "/dev/sda1"},
                {"virtual": "ephemeral0", "device": "/dev/sdb"},
                {"virtual": "swap", "device": "sdc"},
                {"virtual": "nonsense", "device": "sdx"},
            ]
        ),
        "block_device_mapping": json.dumps(
            [
                {"device_name": "/dev/sda1", "snapshot_id": os_id, "volume_size": "5"},
                {"device_name": "sdb", "volume_id": os_id, "delete_on_termination": False},
                {"device_name": "/dev/sdd", "no_device": True},
            ]
        ),
    }
    assert root_device_name(image) == "/dev/sda1"
    found = {device.name: device for device in devices(image)}
    assert set(found) == {"/dev/sda1", "sdb", "sdc"}
    assert (found["/dev/sda1"].source, found["/dev/sda1"].size) == ("snapshot", 5)
    assert (found["sdb"].source, found["sdb"].deletes) == ("volume", False)
    assert found["sdc"].virtual == "swap"
    newer = {
        "bdm_v2": "True",
        "root_device_name": "/dev/vda",
        "block_device_mapping": json.dumps(
            [
                {
                    "source_type": "snapshot",
                    "snapshot_id": os_id,
                    "boot_index": 0,
                    "volume_size": 1,
                },
                {"device_name": "vdb", "source_type": "blank", "volume_size": 2},
                {"device_name": "vdc", "source_type": "blank", "destination_type": "local"},
            ]
        ),
    }
    by_name = {device.name: device for device in devices(newer)}
    assert by_name["/dev/vda"].root is True
    assert by_name["vdb"].source == "blank"
    assert by_name["vdc"].virtual == "ephemeral0"


@pytest.mark.parametrize(
    "text", ["", "no json", "{}", "[1]", '[{"device_name": 5}]', "null", "[[]]"]
)
def test_malformed_devices_are_none(text: str) -> None:
    for version in ("True", None):
        image = {"mappings": text, "block_device_mapping": text, "bdm_v2": version}
        assert devices(image) == []
        assert root_device_name(image) is None


def test_devices_are_shown_with_ids(openstack: OpenStack, me: Caller) -> None:
    snapshot, kernel = str(uuid.uuid4()), openstack.image(container_format="aki", name="kernel")
    openstack.image(
        MINE,
        name="ebs",
        root_device_name="/dev/vda",
        kernel_id=kernel["id"],
        bdm_v2="True",
        block_device_mapping=json.dumps(
            [
                {
                    "device_name": "/dev/vda",
                    "source_type": "snapshot",
                    "snapshot_id": snapshot,
                    "boot_index": 0,
                    "volume_size": 2,
                    "delete_on_termination": False,
                }
            ]
        ),
    )
    found = {image["Name"]: image for image in me(describe_images)["Images"]}
    image = found["ebs"]
    assert (image["RootDeviceName"], image["RootDeviceType"]) == ("/dev/vda", "ebs")
    assert image["KernelId"] == found["kernel"]["ImageId"]
    [mapping] = image["BlockDeviceMappings"]
    assert mapping["DeviceName"] == "/dev/vda"
    assert mapping["Ebs"]["SnapshotId"].startswith("snap-")
    assert (mapping["Ebs"]["VolumeSize"], mapping["Ebs"]["DeleteOnTermination"]) == (2, False)
    [again] = me(describe_images, ImageIds=[image["ImageId"]])["Images"]
    assert again == image
