"""RunInstances: what is checked, what Nova is asked, and what is left after each fault."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.ec2_openstack import MINE, NOVA, OPERATOR, Caller, OpenStack, instances_of
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tokens as tokens
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.availability_zone import describe_availability_zones
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances.instance import describe_instances, terminate_instances
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.ec2.kinds.tag import describe_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import QuotaExceeded, TrimaranError, Unavailable


@pytest.fixture
def ami(openstack: OpenStack, me: Caller) -> str:
    openstack.image()
    made = str(me(describe_images)["Images"][0]["ImageId"])
    openstack.seen.clear()
    return made


def _run(me: Caller, ami: str, **request: Any) -> dict[str, Any]:
    answer: dict[str, Any] = me(
        run_instances, **{"ImageId": ami, "MinCount": 1, "MaxCount": 1, **request}
    )
    return answer


def _items(me: Caller) -> list[Item]:
    return me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))


def _refused(me: Caller, ami: str, **request: Any) -> str:
    with pytest.raises(TrimaranError) as caught:
        _run(me, ami, **request)
    assert _items(me) == []
    return str(caught.value.code)


def test_a_launch_makes_servers_with_their_final_names(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    answer = _run(
        me,
        ami,
        MinCount=2,
        MaxCount=3,
        InstanceType="m1.tiny",
        KeyName="mykey",
        UserData=base64.b64encode(b"#!/bin/sh").decode(),
        Placement={"AvailabilityZone": "nova"},
        SecurityGroups=["web"],
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "42"}]},
        ],
    )
    assert answer["ReservationId"].startswith("r-")
    assert answer["OwnerId"] == MINE
    shown = answer["Instances"]
    assert [each["AmiLaunchIndex"] for each in shown] == [0, 1, 2]
    assert {each["State"]["Name"] for each in shown} == {"pending"}
    assert shown[0]["Tags"] == [{"Key": "Name", "Value": "42"}]
    assert shown[0]["SecurityGroups"][0]["GroupName"] == "web"
    made = {each["InstanceId"] for each in shown}
    assert {body["name"] for body in openstack.creates} == made
    for body in openstack.creates:
        assert body["metadata"] == {"ec2_instance_id": body["name"]}
        assert body["key_name"] == "mykey"
        assert body["availability_zone"] == "nova"
        assert base64.b64decode(body["user_data"]) == b"#!/bin/sh"
        assert body["networks"] == [{"uuid": openstack.networks[0]["id"]}]
        assert body["security_groups"] == [{"name": openstack.groups[1]["id"]}]
        assert "block_device_mapping_v2" not in body
    described = me(describe_instances)
    [row] = described["Reservations"]
    assert row["ReservationId"] == answer["ReservationId"]
    assert {each["InstanceId"] for each in row["Instances"]} == made
    assert {each["State"]["Name"] for each in row["Instances"]} == {"running"}
    assert [each["LaunchTime"] for each in row["Instances"]] == [
        each["LaunchTime"] for each in shown
    ]
    assert [each["ImageId"] for each in row["Instances"]] == [ami] * 3
    assert len(me(describe_tags)["Tags"]) == 3


def test_a_zone_may_be_named_by_its_id(openstack: OpenStack, me: Caller, ami: str) -> None:
    [zone] = me(describe_availability_zones)["AvailabilityZones"]
    answer = _run(me, ami, Placement={"AvailabilityZoneId": zone["ZoneId"]})
    assert [body["availability_zone"] for body in openstack.creates] == [zone["ZoneName"]]
    assert answer["Instances"][0]["Placement"]["AvailabilityZoneId"] == zone["ZoneId"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"MinCount": 0}, "InvalidParameterValue"),
        ({"MaxCount": 0}, "InvalidParameterValue"),
        ({"MinCount": 3, "MaxCount": 2}, "InvalidParameterValue"),
        ({"MinCount": 100000, "MaxCount": 100000}, "ResourceLimitExceeded"),
        ({"InstanceType": "m1.none"}, "InvalidParameterValue"),
        ({"KeyName": "none"}, "InvalidKeyPair.NotFound"),
        ({"SecurityGroups": ["none"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroupIds": ["sg-00000001"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroupIds": ["vpc-00000001"]}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "none"}}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "internal"}}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZoneId": "none"}}, "InvalidParameterValue"),
        (
            {"Placement": {"AvailabilityZone": "nova", "AvailabilityZoneId": "nova"}},
            "InvalidParameterCombination",
        ),
        ({"Placement": {"Affinity": "host"}}, "UnsupportedOperation"),
        ({"Placement": {"PartitionNumber": 1}}, "UnsupportedOperation"),
        ({"Placement": {"Tenancy": "dedicated"}}, "UnsupportedOperation"),
        ({"UserData": "no base64!"}, "InvalidUserData.Malformed"),
        ({"UserData": base64.b64encode(b"x" * 16385).decode()}, "InvalidParameterValue"),
        ({"ClientToken": "x" * 65}, "ValidationError"),
        ({"ImageId": "ami-00000001"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "i-00000001"}, "InvalidParameterValue"),
        ({"ImageId": None}, "MissingParameter"),
        ({"InstanceInitiatedShutdownBehavior": "terminate"}, "UnsupportedOperation"),
        ({"InstanceInitiatedShutdownBehavior": "dance"}, "InvalidParameterValue"),
        ({"LaunchTemplate": {"LaunchTemplateId": "lt-1"}}, "UnsupportedOperation"),
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, "UnsupportedOperation"),
        ({"SubnetId": "subnet-00000001"}, "InvalidSubnetID.NotFound"),
        (
            {"SubnetId": "subnet-00000001", "SecurityGroups": ["web"]},
            "InvalidParameterCombination",
        ),
        ({"PrivateIpAddress": "10.0.0.9"}, "InvalidParameterCombination"),
        ({"NetworkInterfaces": [{"SubnetId": "subnet-00000001"}]}, "InvalidParameterValue"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0}] * 2}, "InvalidParameterValue"),
        ({"NetworkInterfaces": [{"DeviceIndex": 1}]}, "UnsupportedOperation"),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": "eni-1"}]},
            "InvalidNetworkInterfaceID.NotFound",
        ),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0}], "SecurityGroups": ["web"]},
            "InvalidParameterCombination",
        ),
        ({"TagSpecifications": [{"ResourceType": "vpc", "Tags": []}]}, "InvalidParameterValue"),
        (
            {"TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "aws:x"}]}]},
            "InvalidParameterValue",
        ),
        ({"KernelId": "aki-00000001"}, "InvalidParameterCombination"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_a_wrong_launch_is_refused_before_anything_is_made(
    openstack: OpenStack, me: Caller, ami: str, request_: dict[str, Any], code: str
) -> None:
    assert _refused(me, ami, **request_) == code
    assert {method for method, path in openstack.calls(NOVA)} <= {"GET"}


@pytest.mark.parametrize("status", ["queued", "saving", "deactivated"])
def test_an_image_that_is_not_available_cannot_be_launched(
    openstack: OpenStack, me: Caller, ami: str, status: str
) -> None:
    next(iter(openstack.images.values()))["status"] = status
    assert _refused(me, ami) == "InvalidAMIID.Unavailable"


def test_another_projects_private_image_does_not_exist(
    openstack: OpenStack, me: Caller, them: Caller, ami: str
) -> None:
    image = next(iter(openstack.images.values()))
    image.update(visibility="private", owner=OPERATOR)
    assert _refused(me, ami) == "InvalidAMIID.NotFound"


@pytest.mark.parametrize(
    ("names", "works"),
    [
        ([("a", MINE, False)], True),
        ([("a", MINE, False), ("b", MINE, False)], False),
        ([("a", MINE, False), ("s", OPERATOR, True)], True),
        ([("s", OPERATOR, True)], True),
        ([("s", OPERATOR, True), ("t", OPERATOR, True)], False),
        ([("subnet-00000001", MINE, False), ("a", MINE, False)], True),
        ([("subnet-00000001", MINE, False)], False),
        ([], False),
    ],
)
def test_the_network_must_be_unambiguous(
    openstack: OpenStack, me: Caller, ami: str, names: list[Any], works: bool
) -> None:
    openstack.networks = [
        openstack.network(name, project, shared=shared) for name, project, shared in names
    ]
    if works:
        _run(me, ami)
        chosen = openstack.creates[0]["networks"][0]["uuid"]
        wanted = next(n for n in openstack.networks if not n["name"].startswith("subnet-"))
        assert chosen == wanted["id"]
    else:
        assert _refused(me, ami) == "Unsupported"


def test_groups_can_be_named_by_the_ids_that_a_describe_shows(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    _run(me, ami)
    [shown] = instances_of(me(describe_instances))
    group = shown["SecurityGroups"][0]["GroupId"]
    _run(me, ami, SecurityGroupIds=[group, group])
    assert openstack.creates[1]["security_groups"] == [{"name": openstack.groups[0]["id"]}]


def test_the_same_token_is_the_same_launch(openstack: OpenStack, me: Caller, ami: str) -> None:
    first = _run(me, ami, ClientToken="tok")
    openstack.images.clear()
    again = _run(me, ami, ClientToken="tok")
    assert len(openstack.creates) == 1
    assert again["ReservationId"] == first["ReservationId"]
    assert again["Instances"][0]["InstanceId"] == first["Instances"][0]["InstanceId"]
    assert again["Instances"][0]["ClientToken"] == "tok"
    with pytest.raises(EC2Error) as caught:
        _run(me, ami, ClientToken="tok", InstanceType="m1.tiny")
    assert caught.value.code == "IdempotentParameterMismatch"
    found = me(describe_instances, Filters=[{"Name": "client-token", "Values": ["tok"]}])
    assert len(instances_of(found)) == 1


def test_equal_requests_at_once_make_one_server(openstack: OpenStack, me: Caller, ami: str) -> None:
    start = threading.Barrier(5)
    made: set[str] = set()

    def launch() -> None:
        start.wait(30)
        answer = _run(me, ami, ClientToken="tok")
        made.update(each["InstanceId"] for each in answer["Instances"])

    threads = [threading.Thread(target=launch) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(openstack.creates) == 1
    assert made == {openstack.creates[0]["name"]}


def _refuse_from(openstack: OpenStack, number: int, status: int) -> None:
    seen: list[str] = []

    def refuse(body: dict[str, Any]) -> int | None:
        seen.append(body["name"])
        return status if len(seen) >= number else None

    openstack.refuse = refuse


def test_above_min_count_what_could_be_made_is_kept(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    _refuse_from(openstack, 3, 400)
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "k", "Value": "v"}]}]
    answer = _run(me, ami, MinCount=1, MaxCount=3, TagSpecifications=tags)
    assert len(answer["Instances"]) == 2
    assert len(_items(me)) == 2
    assert len(me(describe_tags)["Tags"]) == 2
    assert len(instances_of(me(describe_instances))) == 2


@pytest.mark.parametrize(("status", "code"), [(400, "InvalidParameterValue"), (409, None)])
def test_below_min_count_nothing_is_left(
    openstack: OpenStack, me: Caller, ami: str, status: int, code: str | None
) -> None:
    _refuse_from(openstack, 2, status)
    with pytest.raises(TrimaranError) as caught:
        _run(me, ami, MinCount=2, MaxCount=2, ClientToken="tok")
    assert caught.value.code == code
    assert "internal.host" not in str(caught.value)
    assert openstack.servers == {}
    assert instances_of(me(describe_instances)) == []
    assert _items(me) == []
    openstack.refuse = lambda body: None
    assert len(_run(me, ami, MinCount=2, MaxCount=2, ClientToken="tok")["Instances"]) == 2


def test_servers_that_are_still_going_after_an_undo_are_not_shown(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    _refuse_from(openstack, 2, 400)
    openstack.before = lambda method, path: (
        openstack.fail.update({"servers/": 500}) if method == "DELETE" else None
    )
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "k", "Value": "v"}]}]
    with pytest.raises(EC2Error):
        _run(me, ami, MinCount=2, MaxCount=2, TagSpecifications=tags)
    assert me(describe_tags)["Tags"] == []
    openstack.before, openstack.fail = (lambda method, path: None), {}
    assert len(openstack.servers) == 1
    assert instances_of(me(describe_instances)) == []
    [hidden] = _items(me)
    with pytest.raises(EC2Error) as caught:
        me(describe_instances, InstanceIds=[hidden.id])
    assert caught.value.code == "InvalidInstanceID.NotFound"
    openstack.servers.clear()
    assert instances_of(me(describe_instances)) == []
    assert _items(me) == []


def test_quota_is_asked_before_and_believed_afterwards(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    openstack.limits = {"maxTotalInstances": 5, "totalInstancesUsed": 3}
    assert _refused(me, ami, MinCount=3, MaxCount=4) == "ResourceLimitExceeded"
    assert openstack.creates == []
    assert len(_run(me, ami, MinCount=1, MaxCount=4)["Instances"]) == 2
    openstack.refuse = lambda body: 403
    with pytest.raises(QuotaExceeded):
        _run(me, ami)


def test_a_quota_that_ends_a_large_launch_stops_the_trying(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    asked: list[str] = []

    def refuse(body: dict[str, Any]) -> int | None:
        asked.append(body["name"])
        return 403 if len(asked) > 3 else None

    openstack.refuse = refuse
    answer = _run(me, ami, MinCount=1, MaxCount=100)
    assert len(answer["Instances"]) == 3
    assert len(asked) <= 8
    assert len(_items(me)) == 3


def test_an_answer_that_got_lost_is_no_lost_server(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    openstack.lost_answers = True
    answer = _run(me, ami)
    [item] = _items(me)
    assert item.os_id in openstack.servers
    assert answer["Instances"][0]["InstanceId"] == item.id


def test_a_server_that_nobody_can_tell_of_is_found_later_and_stays_hidden(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    openstack.lost_answers = True
    openstack.fail = {r"servers/detail\?name": 500}
    with pytest.raises(Unavailable):
        _run(me, ami, ClientToken="tok")
    openstack.fail = {}
    [server] = openstack.servers.values()
    assert instances_of(me(describe_instances)) == []
    [item] = _items(me)
    assert item.os_id == server["id"]
    openstack.servers.clear()
    me(describe_instances)
    assert _items(me) == []


def _die_in(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def die(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"trimaran.ec2.kinds.instances.instance_launch.{step}", die)


def test_a_process_that_dies_before_nova_leaves_a_pending_instance_that_ends(
    openstack: OpenStack, me: Caller, ami: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _die_in(patch, "_boot")
        with pytest.raises(KeyboardInterrupt):
            _run(me, ami, ClientToken="tok", KeyName="mykey")
    [pending] = instances_of(me(describe_instances))
    assert pending["State"]["Name"] == "pending"
    assert (pending["ImageId"], pending["KeyName"]) == (ami, "mykey")
    instance_id = pending["InstanceId"]
    assert instances_of(me(describe_instances, InstanceIds=[instance_id])) == [pending]
    # The client's own retry gets what there is, not a second launch.
    assert _run(me, ami, ClientToken="tok", KeyName="mykey")["Instances"] == [pending]
    with me.db.engine.begin() as connection:
        connection.execute(sa.text("UPDATE items SET created_at = created_at - 601"))
    [ended] = instances_of(me(describe_instances))
    assert (ended["InstanceId"], ended["State"]["Name"]) == (instance_id, "terminated")
    assert ended["StateReason"]["Code"] == "Server.InternalError"


def test_a_process_that_dies_after_nova_leaves_no_server_without_its_instance(
    openstack: OpenStack, me: Caller, ami: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _die_in(patch, "_settle")
        with pytest.raises(KeyboardInterrupt):
            _run(me, ami, MinCount=2, MaxCount=2)
    names = {server["name"] for server in openstack.servers.values()}
    renamed = next(iter(openstack.servers.values()))
    renamed["name"] = "renamed-by-its-owner"
    first = sorted(names)[0]
    alone = instances_of(me(describe_instances, InstanceIds=[first]))
    assert [each["InstanceId"] for each in alone] == [first]
    found = instances_of(me(describe_instances))
    assert {each["InstanceId"] for each in found} == names
    assert {each["State"]["Name"] for each in found} == {"running"}
    assert {item.os_id for item in _items(me)} == set(openstack.servers)


def test_protection_is_stored(openstack: OpenStack, me: Caller, ami: str) -> None:
    answer = _run(me, ami, DisableApiTermination=True)
    with pytest.raises(EC2Error) as caught:
        me(terminate_instances, InstanceIds=[answer["Instances"][0]["InstanceId"]])
    assert caught.value.code == "OperationNotPermitted"
    assert len(openstack.servers) == 1


def test_ids_that_are_taken_are_minted_again(
    openstack: OpenStack, me: Caller, ami: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = _run(me, ami)["Instances"][0]["InstanceId"]
    mint = ids.mint
    offered = iter([taken])
    monkeypatch.setattr(
        "trimaran.ec2.kinds.instances.instance_launch.ids.mint",
        lambda kind: next(offered, mint(kind)) if kind == "i" else mint(kind),
    )
    other = _run(me, ami)["Instances"][0]["InstanceId"]
    assert other != taken
    assert len(_items(me)) == 2


# -- block devices ------------------------------------------------------------


def _devices(openstack: OpenStack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = openstack.creates[-1]["block_device_mapping_v2"]
    return found


def test_a_blank_volume_beside_the_image(openstack: OpenStack, me: Caller, ami: str) -> None:
    mapping = {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 3, "DeleteOnTermination": False}}
    _run(me, ami, BlockDeviceMappings=[mapping])
    root, blank = _devices(openstack)
    assert (root["source_type"], root["destination_type"], root["boot_index"]) == (
        "image",
        "local",
        0,
    )
    assert blank == {
        "device_name": "/dev/vdb",
        "source_type": "blank",
        "destination_type": "volume",
        "boot_index": -1,
        "volume_size": 3,
        "delete_on_termination": False,
    }
    assert openstack.creates[-1]["imageRef"] in openstack.images


def test_a_root_volume_is_made_from_the_image(openstack: OpenStack, me: Caller, ami: str) -> None:
    answer = _run(me, ami, BlockDeviceMappings=[{"DeviceName": "/dev/vda", "Ebs": {}}])
    [root] = _devices(openstack)
    assert (root["source_type"], root["destination_type"], root["boot_index"]) == (
        "image",
        "volume",
        0,
    )
    assert root["volume_size"] == 1
    assert "imageRef" not in openstack.creates[-1]
    assert answer["Instances"][0]["RootDeviceType"] == "ebs"


def test_snapshots_and_volumes_are_given_by_id(openstack: OpenStack, me: Caller, ami: str) -> None:
    new = [NewItem("snap", "snap-uuid", MINE), NewItem("vol", "vol-uuid", MINE)]
    snapshot, volume = me.db.write(lambda s: queries.add_items(s, new, ids.mint))
    _run(
        me,
        ami,
        BlockDeviceMappings=[
            {"DeviceName": "vdb", "Ebs": {"SnapshotId": snapshot.id}},
            {"DeviceName": "vdc", "Ebs": {"SnapshotId": volume.id, "VolumeType": "fast"}},
            {"DeviceName": "vdd", "VirtualName": "ephemeral0"},
            {"DeviceName": "vde", "NoDevice": ""},
        ],
    )
    by_name = {device.get("device_name"): device for device in _devices(openstack)}
    assert (by_name["vdb"]["source_type"], by_name["vdb"]["uuid"]) == ("snapshot", "snap-uuid")
    assert (by_name["vdc"]["source_type"], by_name["vdc"]["uuid"]) == ("volume", "vol-uuid")
    assert by_name["vdc"]["volume_type"] == "fast"
    assert (by_name["vdd"]["source_type"], by_name["vdd"]["destination_type"]) == (
        "blank",
        "local",
    )
    assert by_name["vde"] == {"device_name": "vde", "no_device": True}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("Flavor's disk is too small for requested image", "InvalidParameterValue"),
        ("Block Device 1234 is not bootable.", "InvalidBlockDeviceMapping"),
        ("No, and why: internal.host", "InvalidParameterValue"),
    ],
)
def test_novas_refusals_are_told_in_words_of_ours(
    openstack: OpenStack, me: Caller, ami: str, words: str, code: str
) -> None:
    openstack.refuse = lambda body: 400
    openstack.refusal = words
    with pytest.raises(EC2Error) as caught:
        _run(me, ami)
    assert caught.value.code == code
    assert words not in caught.value.message


def test_nova_hears_of_types_that_cinder_has(openstack: OpenStack, me: Caller, ami: str) -> None:
    openstack.types = [*openstack.types, {"id": "t1", "name": "gp2", "extra_specs": {}}]
    kinds = {"vdb": "gp2", "vdc": "gp3", "vdd": "fast"}
    rows = [
        {"DeviceName": name, "Ebs": {"VolumeSize": 1, "VolumeType": kind}}
        for name, kind in kinds.items()
    ]
    _run(me, ami, BlockDeviceMappings=rows)
    told = {row.get("device_name"): row.get("volume_type") for row in _devices(openstack)[1:]}
    # EC2's own name stands for Cinder's default type where the operator made none.
    assert told == {"vdb": "gp2", "vdc": None, "vdd": "fast"}


def test_the_type_of_an_images_device_stays_unless_another_is_named(
    openstack: OpenStack, me: Caller
) -> None:
    brought = [
        {"device_name": f"/dev/{name}", "volume_size": 1, "volume_type": "fast"}
        for name in ("vdb", "vdc")
    ]
    openstack.image(bdm_v2="True", block_device_mapping=json.dumps(brought))
    [image] = me(describe_images)["Images"]
    rows = [
        {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 2}},
        {"DeviceName": "/dev/vdc", "Ebs": {"VolumeType": "gp3"}},
    ]
    _run(me, image["ImageId"], BlockDeviceMappings=rows)
    told = {row.get("device_name"): row.get("volume_type") for row in _devices(openstack)[1:]}
    assert told == {"/dev/vdb": "fast", "/dev/vdc": None}


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ([{"Ebs": {"VolumeSize": 1}}], "MissingParameter"),
        ([{"DeviceName": "vdb", "Ebs": {}}], "MissingParameter"),
        ([{"DeviceName": "vdb", "Ebs": {"VolumeSize": 0}}], "InvalidParameterValue"),
        (
            [{"DeviceName": "vdb", "Ebs": {"VolumeSize": 1, "VolumeType": "odd"}}],
            "InvalidParameterValue",
        ),
        ([{"DeviceName": "vdb", "VirtualName": "floppy"}], "InvalidParameterValue"),
        ([{"DeviceName": "vdb", "Ebs": {"SnapshotId": "x"}}], "InvalidSnapshotID.Malformed"),
        ([{"DeviceName": "vdb", "Ebs": {"SnapshotId": "snap-1"}}], "InvalidSnapshot.NotFound"),
        ([{"DeviceName": "vdb", "Ebs": {"Encrypted": True}}], "UnsupportedOperation"),
        (
            [
                {"DeviceName": "vdb", "Ebs": {"VolumeSize": 1}},
                {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 1}},
            ],
            "InvalidBlockDeviceMapping",
        ),
    ],
)
def test_wrong_block_devices(
    openstack: OpenStack, me: Caller, ami: str, mapping: list[Any], code: str
) -> None:
    assert _refused(me, ami, BlockDeviceMappings=mapping) == code


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ({"DeviceName": "vda", "Ebs": {"VolumeSize": 9}}, "InvalidBlockDeviceMapping"),
        ({"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 1}}, "InvalidBlockDeviceMapping"),
        (
            {"DeviceName": "/dev/vdb", "Ebs": {"SnapshotId": "snap-00000001"}},
            "InvalidBlockDeviceMapping",
        ),
        ({"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 9}}, None),
    ],
)
def test_what_the_image_brings_can_only_be_refined(
    openstack: OpenStack, me: Caller, ami: str, mapping: dict[str, Any], code: str | None
) -> None:
    image = next(iter(openstack.images.values()))
    image.update(
        root_device_name="/dev/vda",
        bdm_v2="True",
        mappings='[{"virtual": "ephemeral0", "device": "/dev/vdb"}]',
        block_device_mapping=(
            '[{"device_name": "/dev/vda", "source_type": "snapshot", "snapshot_id": "'
            + "5" * 36
            + '", "boot_index": 0, "volume_size": 2, "destination_type": "volume"}]'
        ),
    )
    snap = NewItem("snap", "s", MINE, id="snap-00000001")
    me.db.write(lambda s: queries.add_items(s, [snap], ids.mint))
    if code:
        assert _refused(me, ami, BlockDeviceMappings=[mapping]) == code
        return
    _run(me, ami, BlockDeviceMappings=[mapping])
    [root] = _devices(openstack)
    assert (root["source_type"], root["uuid"], root["volume_size"]) == ("snapshot", "5" * 36, 9)
    assert root["boot_index"] == 0


def test_tokens_of_other_actions_are_other_tokens(me: Caller, ami: str) -> None:
    me.db.write(lambda s: tokens.take_token(s, MINE, "CreateVolume", "tok", "f", "vol-1"))
    assert len(_run(me, ami, ClientToken="tok")["Instances"]) == 1
