"""Attachments: who has a volume, under which name, and what Nova refuses."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock as mocking

from tests.support.ec2_openstack import MINE, NOVA, Caller, instances_of
from tests.support.ec2_storage import Storage
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.ec2.kinds.volumes.volume import describe_volumes
from trimaran.ec2.kinds.volumes.volume_attach import attach_volume, detach_volume
from trimaran.ec2.kinds.volumes.volume_attachments import note_deletes
from trimaran.ec2.protocol.errors import to_ec2
from trimaran.errors import TrimaranError
from trimaran.identity import count_calls


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Storage:
    return Storage(requests_mock)


@pytest.fixture
def server(openstack: Storage) -> dict[str, Any]:
    return openstack.server()


@pytest.fixture
def volume(openstack: Storage) -> dict[str, Any]:
    return openstack.free_volume()


@pytest.fixture
def wanted(openstack: Storage, me: Caller, server: Any, volume: Any) -> dict[str, str]:
    """The request that attaches the volume."""
    return {
        "InstanceId": instances_of(me(describe_instances))[0]["InstanceId"],
        "VolumeId": _one(me)["VolumeId"],
        "Device": "/dev/sdh",
    }


def _code(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(TrimaranError) as caught:
        me(action, **request)
    told = to_ec2(caught.value)
    assert "host-1" not in told.message, "Nova's words are not for the caller"
    return told.code


def _one(me: Caller, **request: Any) -> dict[str, Any]:
    [row] = me(describe_volumes, **request)["Volumes"]
    return dict(row)


def _item(me: Caller) -> queries.Item:
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["vol"]))
    return item


def test_attach_and_detach(
    openstack: Storage,
    me: Caller,
    server: dict[str, Any],
    volume: dict[str, Any],
    wanted: dict[str, str],
) -> None:
    answer = me(attach_volume, **wanted)
    expected = {**wanted, "State": "attaching", "DeleteOnTermination": False}
    assert {name: answer[name] for name in expected} == expected
    shown = _one(me)
    assert shown["State"] == "in-use"
    assert {name: shown["Attachments"][0][name] for name in expected} == expected
    # libvirt takes a name of its own; EC2 keeps to the one that was asked for.
    openstack.attach(volume, server, "/dev/vdb")
    shown = _one(me, VolumeIds=[wanted["VolumeId"]])
    [attachment] = shown["Attachments"]
    assert {name: attachment[name] for name in wanted} == wanted
    assert attachment["State"] == "attached"
    assert attachment["AttachTime"].isoformat() == "2026-01-02T03:04:08+00:00"
    with count_calls() as calls:
        assert _one(me)["Attachments"] == [attachment]
    assert calls.total == 1

    assert me(detach_volume, VolumeId=wanted["VolumeId"])["State"] == "detaching"
    shown = _one(me)
    assert (shown["State"], shown["Attachments"][0]["State"]) == ("in-use", "detaching")
    openstack.detach(volume)
    shown = _one(me)
    assert (shown["State"], shown["Attachments"]) == ("available", [])
    assert _item(me).data == {"attached": {}}


def _devices(me: Caller, **request: Any) -> list[tuple[str, str]]:
    [shown] = instances_of(me(describe_instances, **request))
    return [(row["DeviceName"], row["Ebs"]["Status"]) for row in shown["BlockDeviceMappings"]]


def test_an_instance_shows_a_device_under_the_name_that_was_asked_for(
    openstack: Storage,
    me: Caller,
    server: dict[str, Any],
    volume: dict[str, Any],
    wanted: dict[str, str],
) -> None:
    one = {"InstanceIds": [wanted["InstanceId"]]}
    assert _devices(me) == []
    me(attach_volume, **wanted)
    # Nova lists it at once, Cinder only when it is there.
    server["os-extended-volumes:volumes_attached"] = [{"id": volume["id"]}]
    for request in ({}, one):
        assert _devices(me, **request) == [("/dev/sdh", "attaching")]
    openstack.attach(volume, server, "/dev/vdb")
    for request in ({}, one):
        assert _devices(me, **request) == [("/dev/sdh", "attached")]
    _one(me)  # the note is bound to the attachment
    assert _devices(me) == [("/dev/sdh", "attached")]
    # A note of a former attachment does not name the device of this one.
    openstack.detach(volume)
    openstack.attach(volume, server, "/dev/vdc")
    assert _devices(me) == [("/dev/vdc", "attached")]


def test_an_attachment_made_elsewhere_is_learnt_once(
    openstack: Storage, me: Caller, server: dict[str, Any], volume: dict[str, Any]
) -> None:
    openstack.attach(volume, server, "/dev/vdb")
    server["os-extended-volumes:volumes_attached"][0]["delete_on_termination"] = True
    [attachment] = _one(me)["Attachments"]
    assert attachment["InstanceId"] == instances_of(me(describe_instances))[0]["InstanceId"]
    assert (attachment["Device"], attachment["DeleteOnTermination"]) == ("/dev/vdb", True)
    before = len(openstack.calls(NOVA))
    assert _one(me)["Attachments"] == [attachment]
    assert len(openstack.calls(NOVA)) == before
    # The instance that the describe of volumes made is a whole one.
    shown = instances_of(me(describe_instances, InstanceIds=[attachment["InstanceId"]]))
    assert shown[0]["State"]["Name"] == "running"
    assert (
        me(describe_instances)["Reservations"][0]["ReservationId"]
        == (server["OS-EXT-SRV-ATTR:reservation_id"])
    )


def test_volumes_of_a_launch_are_shown_with_the_types_that_it_named(
    openstack: Storage, me: Caller
) -> None:
    openstack.image()
    [image] = me(describe_images)["Images"]
    rows = [
        {"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 2, "VolumeType": "gp3"}},
        {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 3, "VolumeType": "gp2"}},
        {"DeviceName": "/dev/vdc", "Ebs": {"VolumeSize": 4, "VolumeType": "safe"}},
    ]
    launch = {"ImageId": image["ImageId"], "MinCount": 1, "MaxCount": 1}
    me(run_instances, **launch, BlockDeviceMappings=rows)
    [server] = openstack.servers.values()
    # The hypervisor has its own name for the root device.
    server["OS-EXT-SRV-ATTR:root_device_name"] = "/dev/sda"
    for size, kind, device in ((2, "plain", "sda"), (3, "plain", "vdb"), (4, "safe", "vdc")):
        openstack.attach(
            openstack.free_volume(size=size, volume_type=kind), server, f"/dev/{device}"
        )
    for _ in range(2):
        shown = {row["Size"]: row["VolumeType"] for row in me(describe_volumes)["Volumes"]}
        assert shown == {2: "gp3", 3: "gp2", 4: "safe"}
    # The name holds while the volume has the type that it stood for.
    for row in openstack.volumes.values():
        row["volume_type"] = "shared"
    assert {row["VolumeType"] for row in me(describe_volumes)["Volumes"]} == {"shared"}


def test_a_note_on_another_attachment_is_not_believed(
    openstack: Storage,
    me: Caller,
    server: dict[str, Any],
    volume: dict[str, Any],
    wanted: dict[str, str],
) -> None:
    me(attach_volume, **wanted)
    openstack.attach(volume, server, "/dev/vdb")
    assert _one(me)["Attachments"][0]["Device"] == "/dev/sdh"
    openstack.detach(volume)
    openstack.attach(volume, server, "/dev/vdc")
    server["os-extended-volumes:volumes_attached"][0]["delete_on_termination"] = True
    for _ in range(2):
        [attachment] = _one(me)["Attachments"]
        told = (attachment["Device"], attachment["DeleteOnTermination"])
        assert told == ("/dev/vdc", True)


def test_what_becomes_of_it_with_the_instance_can_be_changed(
    openstack: Storage, me: Caller, server: dict[str, Any], wanted: dict[str, str]
) -> None:
    me(attach_volume, **wanted)
    note_deletes(me.context(), wanted["VolumeId"], server["id"], True)
    note_deletes(me.context(), wanted["VolumeId"], "another server", True)
    [attachment] = _one(me)["Attachments"]
    assert (attachment["DeleteOnTermination"], attachment["Device"]) == (True, "/dev/sdh")


def test_a_failed_attachment_leaves_no_trace(
    openstack: Storage, me: Caller, volume: dict[str, Any], wanted: dict[str, str]
) -> None:
    me(attach_volume, **wanted)
    openstack.detach(volume)
    assert _one(me)["Attachments"] == []
    volume["status"] = "reserved"  # for somebody else
    assert _one(me)["Attachments"] == []


def test_a_server_that_is_gone_shows_no_attachment(
    openstack: Storage, me: Caller, server: dict[str, Any], volume: dict[str, Any]
) -> None:
    openstack.attach(volume, server, "/dev/vdb")
    del openstack.servers[server["id"]]
    shown = _one(me)
    assert (shown["State"], shown["Attachments"]) == ("in-use", [])


def test_a_shared_volume_has_several(openstack: Storage, me: Caller, server: Any) -> None:
    volume = openstack.free_volume(multiattach=True)
    other = openstack.server()
    openstack.attach(volume, server, "/dev/vdb")
    openstack.attach(volume, other, "/dev/vdb")
    shown = _one(me)
    found = sorted(row["InstanceId"] for row in shown["Attachments"])
    assert len(set(found)) == 2
    wanted = {"VolumeId": shown["VolumeId"], "InstanceId": found[0], "Device": "/dev/sdh"}
    assert _code(me, attach_volume, **wanted) == "VolumeInUse"
    one = {"VolumeId": shown["VolumeId"]}
    assert _code(me, detach_volume, **one) == "InvalidParameterCombination"
    assert me(detach_volume, **one, InstanceId=found[1])["InstanceId"] == found[1]
    third = openstack.server()
    volume["status"] = "in-use"
    ids = {row["InstanceId"] for row in instances_of(me(describe_instances))} - set(found)
    me(attach_volume, VolumeId=shown["VolumeId"], InstanceId=ids.pop(), Device="sdf")
    body = openstack.bodies[-1][2]["volumeAttachment"]
    assert (body["volumeId"], body["device"]) == (volume["id"], "/dev/sdf")
    assert third["os-extended-volumes:volumes_attached"][0]["id"] == volume["id"]


def test_what_cannot_be_attached(
    openstack: Storage,
    me: Caller,
    them: Caller,
    server: dict[str, Any],
    volume: dict[str, Any],
    wanted: dict[str, str],
) -> None:
    def code(**changes: Any) -> str:
        return _code(me, attach_volume, **{**wanted, **changes})

    for name in wanted:
        assert code(**{name: ""}) == "MissingParameter"
    assert code(InstanceId="i-00000001") == "InvalidInstanceID.NotFound"
    assert code(VolumeId="vol-00000001") == "InvalidVolume.NotFound"
    assert code(VolumeId=wanted["InstanceId"]) == "InvalidParameterValue"
    for device in ("xyz/", "/dev/", "/dev/sd h", "1", "/dev/sda\n", "é"):
        assert code(Device=device) == "InvalidParameterValue"
    assert code(EbsCardIndex=1) == "UnsupportedOperation"
    assert code(DryRun=True) == "DryRunOperation"
    assert _code(them, attach_volume, **wanted) == "InvalidVolume.NotFound"
    for status, expected in (
        ("creating", "IncorrectState"),
        ("error", "IncorrectState"),
        ("deleting", "IncorrectState"),
        ("reserved", "VolumeInUse"),
        ("in-use", "VolumeInUse"),
    ):
        volume["status"] = status
        assert code() == expected
    volume["status"] = "available"
    server["OS-EXT-STS:vm_state"] = "building"
    assert code() == "IncorrectState"
    assert openstack.bodies == []


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (409, "The supplied device path (/dev/sdh) is in use, host-1", "InvalidParameterValue"),
        (409, "Cannot attach while it is in task_state rebooting, host-1", "IncorrectState"),
        (400, "Invalid input for field/attribute device. host-1", "InvalidParameterValue"),
        (400, "are not in the same availability zone, host-1", "InvalidVolume.ZoneMismatch"),
        (400, "is already attached to instances: host-1", "VolumeInUse"),
        (400, "status must be available, host-1", "IncorrectState"),
        (403, "maximum number of volumes, host-1", "AttachmentLimitExceeded"),
        (404, "Volume 7 could not be found, host-1", "InvalidVolume.NotFound"),
        (404, "Instance 7 could not be found, host-1", "InvalidInstanceID.NotFound"),
        (503, "host-1", "Unavailable"),
    ],
)
def test_novas_refusals(
    openstack: Storage, me: Caller, wanted: dict[str, str], status: int, words: str, code: str
) -> None:
    openstack.fail_attach = (status, words)
    assert _code(me, attach_volume, **wanted) == code
    assert _one(me)["Attachments"] == []


def test_what_cannot_be_detached(
    openstack: Storage,
    me: Caller,
    them: Caller,
    server: dict[str, Any],
    volume: dict[str, Any],
    wanted: dict[str, str],
) -> None:
    one = {"VolumeId": wanted["VolumeId"]}
    assert _code(me, detach_volume, **one) == "IncorrectState"
    assert _code(me, detach_volume) == "MissingParameter"
    assert _code(me, detach_volume, VolumeId="vol-00000001") == "InvalidVolume.NotFound"
    me(attach_volume, **wanted)
    assert _code(me, detach_volume, **one) == "IncorrectState"
    openstack.attach(volume, server, "/dev/vdb")
    assert _code(them, detach_volume, **one) == "InvalidVolume.NotFound"
    assert _code(me, detach_volume, **one, DryRun=True) == "DryRunOperation"
    assert _code(me, detach_volume, **one, InstanceId="i-00000001") == "InvalidAttachment.NotFound"
    assert _code(me, detach_volume, **one, Device="/dev/sdz") == "InvalidAttachment.NotFound"
    for status, words, code in (
        (403, "Cannot detach a root device volume, host-1", "OperationNotPermitted"),
        (403, "Policy, host-1", "UnauthorizedOperation"),
        (404, "host-1", "IncorrectState"),
        (409, "host-1", "IncorrectState"),
    ):
        openstack.fail_detach = (status, words)
        assert _code(me, detach_volume, **one) == code
    openstack.fail_detach = None
    assert me(detach_volume, **one, Device="/dev/vdb")["Device"] == "/dev/sdh"
    assert _code(me, detach_volume, **one) == "IncorrectState"
