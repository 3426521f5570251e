"""A boto3 script of forty steps that uses every action but those of networks.

One project, one afternoon of its owner: keys, an instance, volumes, snapshots,
an image of one's own, an instance that boots from it, tags, attributes, and
everything gone at the end.  At its end the script is asked whether it left an
action out.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from tests.support.cloud import CloudEnv
from tests.support.ec2_service import service
from tests.support.ec2_tenant import Tenant, tenant, until
from trimaran.ec2 import actions

#: What the network's own scripts walk.
NETWORK = re.compile(
    "Address|Carrier|ClassicLink|Dhcp|FlowLog|Gateway|Ipv6|NetworkAcl|NetworkInterface|Peering|"
    "PrefixList|PrivateIp|Route|SecurityGroup|Subnet|Vpc|Vpn"
)
#: Parameters without which boto3 sends no request.
NEEDED: dict[str, dict[str, Any]] = {"DescribeByoipCidrs": {"MaxResults": 5}}
WAIT = {"Delay": 1, "MaxAttempts": 300}


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def ec2(mine: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with service(mine.env, tmp_path_factory.mktemp("script"), "mariadb") as api:
        yield api.client(mine.keys)


def refusal(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value.response["Error"]["Code"])


class Script:
    """The steps; each leaves what the next ones use."""

    def __init__(self, ec2: Any, mine: Tenant) -> None:
        self.ec2, self.mine = ec2, mine
        self.used: set[str] = set()
        ec2.meta.events.register("before-call.ec2", self._note)
        self.images: dict[str, str] = {}

    def _note(self, model: Any, **kwargs: Any) -> None:
        self.used.add(model.name)

    def wait(self, waiter: str, **arguments: Any) -> None:
        self.ec2.get_waiter(waiter).wait(WaiterConfig=WAIT, **arguments)

    def instance(self, instance_id: str) -> dict[str, Any]:
        answer = self.ec2.describe_instances(InstanceIds=[instance_id])
        return dict(answer["Reservations"][0]["Instances"][0])

    def volume(self, volume_id: str) -> dict[str, Any]:
        return dict(self.ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0])

    # -- looking around --------------------------------------------------------

    def step_01_regions_and_zones(self) -> None:
        [region] = self.ec2.describe_regions()["Regions"]
        assert region["RegionName"] == "RegionOne"
        [zone] = self.ec2.describe_availability_zones()["AvailabilityZones"]
        self.zone = zone["ZoneName"]

    def step_02_account(self) -> None:
        rows = self.ec2.describe_account_attributes()["AccountAttributes"]
        names = {row["AttributeName"] for row in rows}
        assert {"supported-platforms", "default-vpc", "max-instances"} <= names
        assert self.ec2.get_ebs_encryption_by_default()["EbsEncryptionByDefault"] is False
        assert self.ec2.get_serial_console_access_status()["SerialConsoleAccessEnabled"] is False
        assert self.ec2.get_instance_metadata_defaults()["AccountLevel"] == {}
        self.ec2.modify_instance_metadata_defaults(HttpPutResponseHopLimit=2)
        preferred = self.ec2.get_instance_metadata_defaults()["AccountLevel"]
        assert preferred == {"HttpPutResponseHopLimit": 2, "ManagedBy": "account"}
        self.ec2.modify_instance_metadata_defaults(HttpPutResponseHopLimit=-1)

    def step_03_types(self) -> None:
        types = self.ec2.describe_instance_types(InstanceTypes=["m1.tiny"])["InstanceTypes"]
        assert types[0]["MemoryInfo"]["SizeInMiB"] == 512
        offered = self.ec2.describe_instance_type_offerings()["InstanceTypeOfferings"]
        assert "m1.tiny" in {row["InstanceType"] for row in offered}

    def step_04_public_images(self) -> None:
        named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
        [image] = self.ec2.describe_images(Filters=named)["Images"]
        self.images["cirros"] = image["ImageId"]
        shown = self.ec2.describe_image_attribute
        code = refusal(shown, ImageId=image["ImageId"], Attribute="description")
        assert code == "AuthFailure"

    # -- keys --------------------------------------------------------------------

    def step_05_make_a_key(self) -> None:
        made = self.ec2.create_key_pair(KeyName="script")
        assert "PRIVATE KEY" in made["KeyMaterial"]
        self.wait("key_pair_exists", KeyNames=["script"])

    def step_06_import_a_key(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = ed25519.Ed25519PrivateKey.generate().public_key()
        text = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        self.ec2.import_key_pair(KeyName="imported", PublicKeyMaterial=text)
        names = {row["KeyName"] for row in self.ec2.describe_key_pairs()["KeyPairs"]}
        assert names == {"script", "imported"}

    # -- an instance -----------------------------------------------------------------

    def step_07_launch(self) -> None:
        request: dict[str, Any] = {
            "ImageId": self.images["cirros"],
            "InstanceType": "m1.tiny",
            "KeyName": "script",
            "MinCount": 1,
            "MaxCount": 1,
            "UserData": "#!/bin/sh\n",
            "ClientToken": "script-1",
            "MetadataOptions": {"HttpTokens": "required"},
            "BlockDeviceMappings": [{"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 1}}],
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "007"}]}
            ],
        }
        [made] = self.ec2.run_instances(**request)["Instances"]
        [again] = self.ec2.run_instances(**request)["Instances"]
        assert made["InstanceId"] == again["InstanceId"]
        self.first = made["InstanceId"]

    def step_08_wait_until_it_runs(self) -> None:
        self.wait("instance_running", InstanceIds=[self.first])
        self.wait("instance_status_ok", InstanceIds=[self.first])
        [status] = self.ec2.describe_instance_status(InstanceIds=[self.first])["InstanceStatuses"]
        assert status["InstanceState"]["Name"] == "running"

    def step_09_look_at_it(self) -> None:
        shown = self.instance(self.first)
        assert shown["Tags"] == [{"Key": "Name", "Value": "007"}]
        assert shown["MetadataOptions"]["HttpTokens"] == "required"
        assert [row["DeviceName"] for row in shown["BlockDeviceMappings"]] == ["/dev/vdb"]

    def step_10_read_its_attributes(self) -> None:
        shown = self.ec2.describe_instance_attribute
        data = shown(InstanceId=self.first, Attribute="userData")["UserData"]["Value"]
        assert base64.b64decode(data) == b"#!/bin/sh\n"
        kind = shown(InstanceId=self.first, Attribute="instanceType")["InstanceType"]
        assert kind == {"Value": "m1.tiny"}

    def step_11_protect_it(self) -> None:
        change = self.ec2.modify_instance_attribute
        change(InstanceId=self.first, DisableApiTermination={"Value": True})
        code = refusal(self.ec2.terminate_instances, InstanceIds=[self.first])
        assert code == "OperationNotPermitted"
        change(InstanceId=self.first, DisableApiTermination={"Value": False})
        code = refusal(self.ec2.reset_instance_attribute, InstanceId=self.first, Attribute="kernel")
        assert code in ("UnsupportedOperation", "InvalidParameterValue")

    def step_12_its_console_and_password(self) -> None:
        assert self.ec2.get_console_output(InstanceId=self.first)["InstanceId"] == self.first
        assert self.ec2.get_password_data(InstanceId=self.first)["PasswordData"] == ""
        code = refusal(self.ec2.get_console_screenshot, InstanceId=self.first)
        assert code == "UnsupportedOperation"

    def step_13_monitor_it(self) -> None:
        [row] = self.ec2.monitor_instances(InstanceIds=[self.first])["InstanceMonitorings"]
        assert row["Monitoring"]["State"] in ("enabled", "pending")
        self.ec2.unmonitor_instances(InstanceIds=[self.first])
        assert self.instance(self.first)["Monitoring"] == {"State": "disabled"}

    def step_14_set_its_options(self) -> None:
        options = self.ec2.modify_instance_metadata_options(
            InstanceId=self.first, HttpTokens="optional", InstanceMetadataTags="enabled"
        )["InstanceMetadataOptions"]
        assert (options["HttpTokens"], options["InstanceMetadataTags"]) == ("optional", "enabled")
        self.ec2.modify_instance_maintenance_options(InstanceId=self.first, AutoRecovery="disabled")
        self.ec2.modify_private_dns_name_options(
            InstanceId=self.first, PrivateDnsHostnameType="ip-name"
        )

    def step_15_credits_that_no_type_has(self) -> None:
        shown = self.ec2.describe_instance_credit_specifications(InstanceIds=[self.first])
        assert shown["InstanceCreditSpecifications"] == []
        told = self.ec2.modify_instance_credit_specification(
            InstanceCreditSpecifications=[{"InstanceId": self.first, "CpuCredits": "standard"}]
        )
        assert len(told["UnsuccessfulInstanceCreditSpecifications"]) == 1
        answer = self.ec2.describe_iam_instance_profile_associations()
        assert answer["IamInstanceProfileAssociations"] == []

    def step_16_reboot_it(self) -> None:
        self.ec2.reboot_instances(InstanceIds=[self.first])
        self.wait("instance_running", InstanceIds=[self.first])

    # -- a volume ----------------------------------------------------------------------

    def step_17_make_a_volume(self) -> None:
        made = self.ec2.create_volume(Size=1, AvailabilityZone=self.zone, VolumeType="gp3")
        self.data = made["VolumeId"]
        self.wait("volume_available", VolumeIds=[self.data])
        assert self.volume(self.data)["VolumeType"] == "gp3"

    def step_18_attach_it(self) -> None:
        until(lambda: self.mine.servers()[self.first]["OS-EXT-STS:task_state"] is None)
        request = {"VolumeId": self.data, "InstanceId": self.first, "Device": "/dev/sdh"}
        assert self.ec2.attach_volume(**request)["State"] == "attaching"
        devices = self.instance(self.first)["BlockDeviceMappings"]
        assert "/dev/sdh" in {row["DeviceName"] for row in devices}
        self.wait("volume_in_use", VolumeIds=[self.data])

    def step_19_see_it_under_its_name(self) -> None:
        def attached() -> bool:
            [row] = self.volume(self.data)["Attachments"]
            return (row["State"], row["Device"]) == ("attached", "/dev/sdh")

        until(attached)
        devices = {
            row["DeviceName"]: row["Ebs"]["Status"]
            for row in self.instance(self.first)["BlockDeviceMappings"]
        }
        assert devices == {"/dev/vdb": "attached", "/dev/sdh": "attached"}

    def step_20_let_it_go_with_its_instance(self) -> None:
        change = {"DeviceName": "/dev/sdh", "Ebs": {"DeleteOnTermination": True}}
        self.ec2.modify_instance_attribute(InstanceId=self.first, BlockDeviceMappings=[change])
        [row] = self.volume(self.data)["Attachments"]
        assert row["DeleteOnTermination"] is True

    def step_21_take_it_away(self) -> None:
        self.ec2.detach_volume(VolumeId=self.data)
        self.wait("volume_available", VolumeIds=[self.data])

    def step_22_its_attributes(self) -> None:
        self.ec2.modify_volume_attribute(VolumeId=self.data, AutoEnableIO={"Value": True})
        shown = self.ec2.describe_volume_attribute(VolumeId=self.data, Attribute="autoEnableIO")
        assert shown["AutoEnableIO"] == {"Value": True}
        [status] = self.ec2.describe_volume_status(VolumeIds=[self.data])["VolumeStatuses"]
        assert status["VolumeStatus"]["Status"] == "ok"

    def step_23_make_it_larger_and_of_another_type(self) -> None:
        kind = "sandbox"
        self.ec2.modify_volume(VolumeId=self.data, Size=2, VolumeType=kind)

        def state() -> str:
            answer = self.ec2.describe_volumes_modifications(VolumeIds=[self.data])
            return str(answer["VolumesModifications"][0]["ModificationState"])

        until(lambda: state() in ("completed", "failed"))
        shown = self.volume(self.data)
        assert (state(), shown["Size"], shown["VolumeType"]) == ("completed", 2, kind)

    # -- snapshots -------------------------------------------------------------------------

    def step_24_make_a_snapshot(self) -> None:
        made = self.ec2.create_snapshot(VolumeId=self.data, Description="123")
        self.snapshot = made["SnapshotId"]
        self.wait("snapshot_completed", SnapshotIds=[self.snapshot])
        answer = self.ec2.describe_snapshots(OwnerIds=["self"])
        [shown] = answer["Snapshots"]
        assert (shown["Description"], shown["VolumeSize"]) == ("123", 2)

    def step_25_its_attributes(self) -> None:
        one = {"SnapshotId": self.snapshot, "Attribute": "createVolumePermission"}
        shown = self.ec2.describe_snapshot_attribute(**one)
        assert shown["CreateVolumePermissions"] == []
        code = refusal(
            self.ec2.modify_snapshot_attribute, **one, OperationType="add", GroupNames=["all"]
        )
        assert code == "UnsupportedOperation"
        self.ec2.reset_snapshot_attribute(**one)
        tiers = self.ec2.describe_snapshot_tier_status()["SnapshotTierStatuses"]
        assert all(row["StorageTier"] == "standard" for row in tiers)

    def step_26_copies_that_cinder_has_not(self) -> None:
        code = refusal(
            self.ec2.copy_snapshot, SourceRegion="RegionOne", SourceSnapshotId=self.snapshot
        )
        assert code == "UnsupportedOperation"

    # -- images --------------------------------------------------------------------------------

    def step_27_register_an_image(self) -> None:
        mapping = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": self.snapshot}}
        made = self.ec2.register_image(
            Name="script", RootDeviceName="/dev/vda", BlockDeviceMappings=[mapping]
        )
        self.images["own"] = made["ImageId"]
        self.wait("image_available", ImageIds=[made["ImageId"]])

    def step_28_its_attributes(self) -> None:
        own = self.images["own"]
        self.ec2.modify_image_attribute(ImageId=own, Description={"Value": "0x10"})
        shown = self.ec2.describe_image_attribute(ImageId=own, Attribute="description")
        assert shown["Description"] == {"Value": "0x10"}
        self.ec2.reset_image_attribute(ImageId=own, Attribute="launchPermission")

    def step_29_copy_an_image(self) -> None:
        request = {"Name": "copy", "SourceRegion": "RegionOne"}
        code = refusal(self.ec2.copy_image, SourceImageId=self.images["own"], **request)
        assert code == "UnsupportedOperation"

    def step_30_launch_it(self) -> None:
        [made] = self.ec2.run_instances(
            ImageId=self.images["own"], InstanceType="m1.tiny", MinCount=1, MaxCount=1
        )["Instances"]
        self.second = made["InstanceId"]
        self.wait("instance_running", InstanceIds=[self.second])
        shown = self.instance(self.second)
        assert (shown["RootDeviceType"], shown["ImageId"]) == ("ebs", self.images["own"])

    def step_31_make_an_image_of_it(self) -> None:
        made = self.ec2.create_image(InstanceId=self.second, Name="of it", NoReboot=True)
        self.images["of it"] = made["ImageId"]
        self.wait("image_available", ImageIds=[made["ImageId"]])

    # -- tags ------------------------------------------------------------------------------------

    def step_32_tag_all_of_them(self) -> None:
        things = [self.first, self.data, self.snapshot, self.images["own"]]
        self.ec2.create_tags(Resources=things, Tags=[{"Key": "a:b", "Value": "true"}])
        rows = self.ec2.describe_tags(Filters=[{"Name": "key", "Values": ["a:b"]}])["Tags"]
        assert {row["ResourceId"] for row in rows} == set(things)

    def step_33_find_by_tag(self) -> None:
        found = self.ec2.describe_volumes(Filters=[{"Name": "tag:a:b", "Values": ["t*"]}])
        assert [row["VolumeId"] for row in found["Volumes"]] == [self.data]

    def step_34_untag_them(self) -> None:
        self.ec2.delete_tags(Resources=[self.data], Tags=[{"Key": "a:b", "Value": "false"}])
        assert self.volume(self.data)["Tags"]
        self.ec2.delete_tags(Resources=[self.data], Tags=[{"Key": "a:b"}])
        assert "Tags" not in self.volume(self.data)

    # -- another type, and the end ---------------------------------------------------------------

    def step_35_stop_and_resize(self) -> None:
        self.ec2.stop_instances(InstanceIds=[self.first])
        self.wait("instance_stopped", InstanceIds=[self.first])
        self.ec2.modify_instance_attribute(
            InstanceId=self.first, InstanceType={"Value": "m1.small"}
        )
        until(lambda: self.instance(self.first)["InstanceType"] == "m1.small")

    def step_36_start_again(self) -> None:
        self.ec2.start_instances(InstanceIds=[self.first])
        self.wait("instance_running", InstanceIds=[self.first])

    def step_37_what_the_cloud_has_not(self) -> None:
        for name in sorted(actions.implemented()):
            if name.startswith("Describe") and not NETWORK.search(name) and name not in self.used:
                method = getattr(self.ec2, xform_name(name))
                answer = method(**NEEDED.get(name, {}))
                rows = [each for each in answer.values() if isinstance(each, list)]
                assert not any(rows), name

    def step_38_terminate(self) -> None:
        both = [self.first, self.second]
        self.ec2.terminate_instances(InstanceIds=both)
        self.wait("instance_terminated", InstanceIds=both)
        assert self.instance(self.first)["State"]["Name"] == "terminated"

    def step_39_delete_images_and_snapshots(self) -> None:
        for name in ("own", "of it"):
            self.ec2.deregister_image(ImageId=self.images[name])
        for row in self.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]:
            until(partial(self._gone, row["SnapshotId"]))
        assert self.ec2.describe_images(Owners=["self"])["Images"] == []

    def _gone(self, snapshot_id: str) -> bool:
        """Volumes made from it may still be on their way out."""
        try:
            self.ec2.delete_snapshot(SnapshotId=snapshot_id)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            assert code in ("InvalidSnapshot.InUse", "IncorrectState"), code
            return False
        return True

    def step_40_delete_volumes_and_keys(self) -> None:
        until(lambda: not self.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"])
        self.ec2.delete_volume(VolumeId=self.data)
        self.wait("volume_deleted", VolumeIds=[self.data])
        for name in ("script", "imported"):
            self.ec2.delete_key_pair(KeyName=name)
        assert self.ec2.describe_key_pairs()["KeyPairs"] == []


def test_forty_steps_use_every_action_but_the_networks(ec2: Any, mine: Tenant) -> None:
    script = Script(ec2, mine)
    steps = [name for name in dir(Script) if name.startswith("step_")]
    assert len(steps) == 40
    for name in steps:
        started = time.monotonic()
        getattr(script, name)()
        print(f"{name} {time.monotonic() - started:.1f} s")
    offered = {name for name in actions.implemented() if not NETWORK.search(name)}
    assert offered - script.used == set()
    assert not [row for row in ec2.describe_volumes()["Volumes"] if row["State"] == "in-use"]
