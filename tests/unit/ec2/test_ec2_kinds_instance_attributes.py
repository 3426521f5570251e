"""Attributes, options, console and type of instances."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import requests_mock as mocking

from tests.support import keystone
from tests.support.ec2_jobs import at_work, finish, jobs_of
from tests.support.ec2_openstack import MINE, Caller, instances_of
from tests.support.ec2_workshop import Workshop
from trimaran.cloud import Cloud
from trimaran.db import Database
from trimaran.db.models import work as states
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids, journal
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances import instance_resize
from trimaran.ec2.kinds.instances.instance import (
    describe_instances,
    start_instances,
    stop_instances,
    terminate_instances,
)
from trimaran.ec2.kinds.instances.instance_attribute import (
    describe_instance_attribute,
    reset_instance_attribute,
)
from trimaran.ec2.kinds.instances.instance_console import (
    get_console_output,
    get_console_screenshot,
    get_password_data,
    get_serial_console_access_status,
)
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.ec2.kinds.instances.instance_modify import modify_instance_attribute
from trimaran.ec2.kinds.instances.instance_options import (
    describe_instance_credit_specifications,
    modify_instance_credit_specification,
    modify_instance_maintenance_options,
    modify_instance_metadata_options,
    modify_private_dns_name_options,
    monitor_instances,
    unmonitor_instances,
)
from trimaran.ec2.kinds.tag import create_tags, delete_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Unavailable


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Workshop:
    return Workshop(requests_mock)


@pytest.fixture
def server(openstack: Workshop) -> dict[str, Any]:
    made = openstack.server()
    made["OS-EXT-SRV-ATTR:user_data"] = base64.b64encode(b"#!/bin/sh").decode()
    return made


@pytest.fixture
def instance(me: Caller, server: dict[str, Any]) -> str:
    [found] = instances_of(me(describe_instances))
    return str(found["InstanceId"])


def _code(caught: Any) -> str:
    code: str = caught.value.code
    return code


def _attribute(me: Caller, instance: str, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = me(describe_instance_attribute, InstanceId=instance, Attribute=name)
    assert answer.pop("InstanceId") == instance
    return answer


def _refused(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        me(action, **request)
    return _code(caught)


# -- describing ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("disableApiTermination", {"DisableApiTermination": {"Value": False}}),
        ("disableApiStop", {"DisableApiStop": {"Value": False}}),
        ("ebsOptimized", {"EbsOptimized": {"Value": False}}),
        ("enaSupport", {"EnaSupport": {"Value": True}}),
        ("enclaveOptions", {"EnclaveOptions": {"Enabled": False}}),
        (
            "instanceInitiatedShutdownBehavior",
            {"InstanceInitiatedShutdownBehavior": {"Value": "stop"}},
        ),
        ("instanceType", {"InstanceType": {"Value": "m1.small"}}),
        ("kernel", {"KernelId": {}}),
        ("ramdisk", {"RamdiskId": {}}),
        ("productCodes", {"ProductCodes": []}),
        ("rootDeviceName", {"RootDeviceName": {"Value": "/dev/vda"}}),
        ("sriovNetSupport", {"SriovNetSupport": {}}),
        ("userData", {"UserData": {"Value": base64.b64encode(b"#!/bin/sh").decode()}}),
    ],
)
def test_each_attribute_is_shown(
    me: Caller, instance: str, name: str, shown: dict[str, Any]
) -> None:
    assert _attribute(me, instance, name) == shown


def test_devices_and_groups_are_shown(
    openstack: Workshop, me: Caller, server: dict[str, Any], instance: str
) -> None:
    openstack.volume(server, "/dev/vda")
    [device] = _attribute(me, instance, "blockDeviceMapping")["BlockDeviceMappings"]
    assert (device["DeviceName"], device["Ebs"]["Status"]) == ("/dev/vda", "attached")
    [group] = _attribute(me, instance, "groupSet")["Groups"]
    assert group["GroupName"] == "default"
    assert ids.is_id(group["GroupId"], ["sg"])


def test_user_data_that_is_not_there_is_an_empty_element(
    openstack: Workshop, me: Caller, server: dict[str, Any], instance: str
) -> None:
    del server["OS-EXT-SRV-ATTR:user_data"]
    assert _attribute(me, instance, "userData") == {"UserData": {}}


def test_outside_a_vpc_there_is_no_interface_to_ask_about(me: Caller, instance: str) -> None:
    asked = {"InstanceId": instance, "Attribute": "sourceDestCheck"}
    assert _refused(me, describe_instance_attribute, **asked) == "InvalidParameterCombination"
    assert _refused(me, reset_instance_attribute, **asked) == "InvalidParameterCombination"
    change = {"InstanceId": instance, "SourceDestCheck": {"Value": False}}
    assert _refused(me, modify_instance_attribute, **change) == "InvalidParameterCombination"
    groups = {"InstanceId": instance, "Groups": ["sg-0"]}
    assert _refused(me, modify_instance_attribute, **groups) == "InvalidParameterCombination"


@pytest.mark.parametrize("action", [describe_instance_attribute, modify_instance_attribute])
def test_unknown_attributes_and_instances(me: Caller, instance: str, action: Any) -> None:
    fake = {"InstanceId": instance, "Attribute": "fake", "Value": "x"}
    assert _refused(me, action, **fake) == "InvalidParameterValue"
    gone = {"InstanceId": "i-0", "Attribute": "disableApiTermination", "Value": "true"}
    assert _refused(me, action, **gone) == "InvalidInstanceID.NotFound"
    wrong = {"InstanceId": "vpc-1", "Attribute": "disableApiTermination", "Value": "true"}
    assert _refused(me, action, **wrong) == "InvalidParameterValue"


@pytest.mark.parametrize("name", ["fake", "disableApiTermination", "groupSet", "instanceType"])
def test_only_one_attribute_can_be_reset(me: Caller, name: str) -> None:
    asked = {"InstanceId": "i-0", "Attribute": name}
    assert _refused(me, reset_instance_attribute, **asked) == "InvalidParameterValue"


def test_another_projects_instance_is_as_good_as_none(
    me: Caller, them: Caller, instance: str
) -> None:
    for action in (
        describe_instance_attribute,
        get_console_output,
        get_password_data,
        modify_instance_metadata_options,
    ):
        request = {"InstanceId": instance, "Attribute": "userData"}
        assert _refused(them, action, **request) == "InvalidInstanceID.NotFound"
    change = {"InstanceId": instance, "DisableApiTermination": {"Value": True}}
    assert _refused(them, modify_instance_attribute, **change) == "InvalidInstanceID.NotFound"
    assert _attribute(me, instance, "disableApiTermination")["DisableApiTermination"] == {
        "Value": False
    }


# -- modifying ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({}, "InvalidParameterCombination"),
        ({"Attribute": "disableApiTermination"}, "MissingParameter"),
        ({"Value": "true"}, "MissingParameter"),
        ({"Attribute": "disableApiTermination", "Value": "maybe"}, "InvalidParameterValue"),
        (
            {
                "Attribute": "disableApiTermination",
                "Value": "true",
                "DisableApiTermination": {"Value": False},
            },
            "InvalidParameterCombination",
        ),
        (
            {"DisableApiTermination": {"Value": True}, "EbsOptimized": {"Value": False}},
            "InvalidParameterCombination",
        ),
        (
            {"Attribute": "ebsOptimized", "DisableApiTermination": {"Value": True}},
            "MissingParameter",
        ),
        ({"Attribute": "groupSet", "Value": "sg-1"}, "InvalidParameterCombination"),
        ({"EbsOptimized": {"Value": True}}, "UnsupportedOperation"),
        ({"EnaSupport": {"Value": False}}, "UnsupportedOperation"),
        ({"SriovNetSupport": {"Value": "simple"}}, "UnsupportedOperation"),
        ({"UserData": {"Value": b"other"}}, "UnsupportedOperation"),
        ({"Kernel": {"Value": "aki-1"}}, "UnsupportedOperation"),
        (
            {"InstanceInitiatedShutdownBehavior": {"Value": "terminate"}},
            "UnsupportedOperation",
        ),
        ({"InstanceInitiatedShutdownBehavior": {"Value": "dance"}}, "InvalidParameterValue"),
        ({"InstanceType": {"Value": "m1.tiny"}}, "IncorrectInstanceState"),
        ({"InstanceType": {"Value": "m1.small"}}, "IncorrectInstanceState"),
        ({"InstanceType": {"Value": "x99"}}, "InvalidParameterValue"),
        ({"InstanceType": {}}, "MissingParameter"),
    ],
)
def test_what_is_refused(me: Caller, instance: str, request_: dict[str, Any], code: str) -> None:
    assert _refused(me, modify_instance_attribute, InstanceId=instance, **request_) == code


@pytest.mark.parametrize(
    "request_",
    [
        {"EbsOptimized": {"Value": False}},
        {"EnaSupport": {"Value": True}},
        {"InstanceInitiatedShutdownBehavior": {"Value": "stop"}},
        {"UserData": {"Value": b"#!/bin/sh"}},
        {"Attribute": "userData", "Value": "#!/bin/sh"},
    ],
)
def test_what_is_so_anyway_succeeds(me: Caller, instance: str, request_: dict[str, Any]) -> None:
    assert me(modify_instance_attribute, InstanceId=instance, **request_) == {}


@pytest.mark.parametrize(
    ("name", "structure", "guarded"),
    [
        ("disableApiTermination", "DisableApiTermination", terminate_instances),
        ("disableApiStop", "DisableApiStop", stop_instances),
    ],
)
def test_protection_holds_until_it_is_lifted(
    me: Caller, instance: str, name: str, structure: str, guarded: Any
) -> None:
    me(modify_instance_attribute, InstanceId=instance, **{structure: {"Value": True}})
    assert _attribute(me, instance, name) == {structure: {"Value": True}}
    assert _refused(me, guarded, InstanceIds=[instance]) == "OperationNotPermitted"
    me(modify_instance_attribute, InstanceId=instance, Attribute=name, Value="False")
    assert _attribute(me, instance, name) == {structure: {"Value": False}}
    assert me(guarded, InstanceIds=[instance])


def test_a_dry_run_changes_nothing(me: Caller, instance: str) -> None:
    for action, request in (
        (modify_instance_attribute, {"DisableApiTermination": {"Value": True}}),
        (modify_instance_metadata_options, {"HttpEndpoint": "disabled"}),
        (get_console_output, {}),
    ):
        code = _refused(me, action, InstanceId=instance, DryRun=True, **request)
        assert code == "DryRunOperation"
    assert _refused(me, monitor_instances, InstanceIds=[instance], DryRun=True) == "DryRunOperation"
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert "disable_api_termination" not in item.data
    assert "monitoring" not in item.data
    assert "metadata_options" not in item.data


def test_volumes_can_outlive_the_instance_or_not(
    openstack: Workshop, me: Caller, server: dict[str, Any], instance: str
) -> None:
    openstack.volume(server, "/dev/vda")
    openstack.volume(server, "/dev/vdb")
    mapping = {"DeviceName": "/dev/vdb", "Ebs": {"DeleteOnTermination": False}}
    me(modify_instance_attribute, InstanceId=instance, BlockDeviceMappings=[mapping])
    devices = _attribute(me, instance, "blockDeviceMapping")["BlockDeviceMappings"]
    assert [row["Ebs"]["DeleteOnTermination"] for row in devices] == [True, False]
    unknown = {"DeviceName": "/dev/vdz", "Ebs": {"DeleteOnTermination": False}}
    request = {"InstanceId": instance, "BlockDeviceMappings": [unknown]}
    code = _refused(me, modify_instance_attribute, **request)
    assert code == "InvalidInstanceAttributeValue"


# -- type ---------------------------------------------------------------------


@pytest.fixture
def stopped(server: dict[str, Any], instance: str) -> dict[str, Any]:
    server["OS-EXT-STS:vm_state"] = "stopped"
    return server


def test_a_stopped_instance_gets_another_type(
    openstack: Workshop, me: Caller, stopped: dict[str, Any], instance: str
) -> None:
    with at_work(me):
        me(modify_instance_attribute, InstanceId=instance, InstanceType={"Value": "m1.tiny"})
    assert stopped["OS-EXT-STS:vm_state"] == "stopped"
    assert _attribute(me, instance, "instanceType") == {"InstanceType": {"Value": "m1.tiny"}}
    [job] = jobs_of(me.db, journal.RESIZE)
    assert job.state == states.DONE


def test_the_same_type_is_no_work(
    openstack: Workshop, me: Caller, stopped: dict[str, Any], instance: str
) -> None:
    me(modify_instance_attribute, InstanceId=instance, Attribute="instanceType", Value="m1.small")
    assert openstack.actions == []


def test_a_resize_goes_on_when_its_process_dies(
    openstack: Workshop,
    me: Caller,
    stopped: dict[str, Any],
    instance: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(instance_resize, "_await", die)
    with pytest.raises(KeyboardInterrupt):
        me(modify_instance_attribute, InstanceId=instance, InstanceType={"Value": "m1.tiny"})
    # Meanwhile it is what it is to EC2: stopped, although Nova says "resized".
    [shown] = instances_of(me(describe_instances))
    assert shown["State"]["Name"] == "stopped"
    [job] = finish(me, journal.RESIZE)
    assert job.state == states.DONE
    assert stopped["OS-EXT-STS:vm_state"] == "stopped"


@pytest.mark.parametrize(
    ("status", "code"), [(409, "IncorrectInstanceState"), (400, "InvalidParameterValue")]
)
def test_a_refused_resize_leaves_nothing_to_do(
    openstack: Workshop,
    me: Caller,
    stopped: dict[str, Any],
    instance: str,
    status: int,
    code: str,
) -> None:
    openstack.fail_resize = status
    request = {"InstanceId": instance, "InstanceType": {"Value": "m1.tiny"}}
    assert _refused(me, modify_instance_attribute, **request) == code
    [job] = jobs_of(me.db, journal.RESIZE)
    assert job.state == states.CANCELLED


def test_a_resize_that_nobody_answered_is_seen_to(
    openstack: Workshop, me: Caller, stopped: dict[str, Any], instance: str
) -> None:
    openstack.fail_resize = 503
    with pytest.raises(Unavailable):
        me(modify_instance_attribute, InstanceId=instance, InstanceType={"Value": "m1.tiny"})
    [job] = finish(me, journal.RESIZE)
    # Nova has not done it.
    assert job.state == states.FAILED


# -- options ------------------------------------------------------------------


def test_monitoring_is_remembered(me: Caller, instance: str) -> None:
    answer = me(monitor_instances, InstanceIds=[instance])
    assert answer["InstanceMonitorings"] == [
        {"InstanceId": instance, "Monitoring": {"State": "enabled"}}
    ]
    [shown] = instances_of(me(describe_instances))
    assert shown["Monitoring"] == {"State": "enabled"}
    me(unmonitor_instances, InstanceIds=[instance])
    [shown] = instances_of(me(describe_instances))
    assert shown["Monitoring"] == {"State": "disabled"}
    assert _refused(me, monitor_instances, InstanceIds=["i-1"]) == "InvalidInstanceID.NotFound"


def test_metadata_options_are_kept_and_shown(me: Caller, instance: str) -> None:
    answer = me(
        modify_instance_metadata_options,
        InstanceId=instance,
        HttpEndpoint="disabled",
        HttpPutResponseHopLimit=3,
    )
    options = answer["InstanceMetadataOptions"]
    assert (options["HttpEndpoint"], options["HttpPutResponseHopLimit"]) == ("disabled", 3)
    me(modify_instance_metadata_options, InstanceId=instance, HttpEndpoint="enabled")
    [shown] = instances_of(me(describe_instances))
    assert shown["MetadataOptions"] == {
        "State": "applied",
        "HttpTokens": "optional",
        "HttpPutResponseHopLimit": 3,
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
        "InstanceMetadataTags": "disabled",
    }


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"HttpTokens": "perhaps"}, "InvalidParameterValue"),
        ({"HttpEndpoint": "perhaps"}, "InvalidParameterValue"),
        ({"HttpPutResponseHopLimit": 65}, "InvalidParameterValue"),
        ({"HttpPutResponseHopLimit": 0}, "InvalidParameterValue"),
    ],
)
def test_metadata_options_that_are_none(
    openstack: Workshop, me: Caller, instance: str, options: dict[str, Any], code: str
) -> None:
    request = {"InstanceId": instance, **options}
    assert _refused(me, modify_instance_metadata_options, **request) == code
    openstack.image()
    ami = me(describe_images)["Images"][0]["ImageId"]
    launch = {"ImageId": ami, "MinCount": 1, "MaxCount": 1, "MetadataOptions": options}
    assert _refused(me, run_instances, InstanceType="m1.small", **launch) == code


def test_tags_that_the_guest_sees_can_be_names_in_a_path(
    openstack: Workshop, me: Caller, instance: str
) -> None:
    bad = [{"Key": "a/b", "Value": ""}]
    enable = {"InstanceId": instance, "InstanceMetadataTags": "enabled"}
    me(create_tags, Resources=[instance], Tags=bad)
    assert _refused(me, modify_instance_metadata_options, **enable) == "InvalidParameterValue"
    me(delete_tags, Resources=[instance])
    me(modify_instance_metadata_options, **enable)
    for key in ("a/b", "a b", "..", "_index", "é"):
        tags = [{"Key": key, "Value": ""}]
        code = _refused(me, create_tags, Resources=[instance], Tags=tags)
        assert code == "InvalidParameterValue", key
    me(create_tags, Resources=[instance], Tags=[{"Key": "a.b-c_d+e=f,g@h:i", "Value": ""}])
    openstack.image()
    ami = me(describe_images)["Images"][0]["ImageId"]
    launch = {
        "ImageId": ami,
        "InstanceType": "m1.small",
        "MinCount": 1,
        "MaxCount": 1,
        "MetadataOptions": {"InstanceMetadataTags": "enabled"},
        "TagSpecifications": [{"ResourceType": "instance", "Tags": bad}],
    }
    assert _refused(me, run_instances, **launch) == "InvalidParameterValue"
    made = me(run_instances, **{**launch, "TagSpecifications": []})["Instances"]
    assert len(made) == 1


def test_a_launch_keeps_its_options(openstack: Workshop, me: Caller) -> None:
    openstack.image()
    ami = me(describe_images)["Images"][0]["ImageId"]
    [made] = me(
        run_instances,
        ImageId=ami,
        InstanceType="m1.small",
        MinCount=1,
        MaxCount=1,
        Monitoring={"Enabled": True},
        DisableApiStop=True,
        MetadataOptions={"HttpEndpoint": "disabled", "HttpTokens": "optional"},
    )["Instances"]
    [shown] = instances_of(me(describe_instances, InstanceIds=[made["InstanceId"]]))
    assert shown["Monitoring"] == {"State": "enabled"}
    assert shown["MetadataOptions"]["HttpEndpoint"] == "disabled"
    code = _refused(me, stop_instances, InstanceIds=[made["InstanceId"]])
    assert code == "OperationNotPermitted"


def test_what_no_instance_type_has(me: Caller, instance: str) -> None:
    empty = {"InstanceCreditSpecifications": []}
    assert me(describe_instance_credit_specifications) == empty
    assert me(describe_instance_credit_specifications, InstanceIds=[instance]) == empty
    answer = me(
        modify_instance_credit_specification,
        InstanceCreditSpecifications=[{"InstanceId": instance, "CpuCredits": "unlimited"}],
    )
    assert answer["SuccessfulInstanceCreditSpecifications"] == []
    [told] = answer["UnsuccessfulInstanceCreditSpecifications"]
    assert told["Error"]["Code"] == "InstanceCreditSpecification.NotSupported"
    options = me(modify_instance_maintenance_options, InstanceId=instance, AutoRecovery="disabled")
    assert options["AutoRecovery"] == "disabled"
    recovery = {"InstanceId": instance, "AutoRecovery": "default"}
    assert _refused(me, modify_instance_maintenance_options, **recovery) == "UnsupportedOperation"
    name = {"InstanceId": instance, "PrivateDnsHostnameType": "ip-name"}
    assert me(modify_private_dns_name_options, **name) == {"Return": True}
    name["PrivateDnsHostnameType"] = "resource-name"
    assert _refused(me, modify_private_dns_name_options, **name) == "UnsupportedOperation"


# -- console ------------------------------------------------------------------


def test_the_console_is_told_in_base64(openstack: Workshop, me: Caller, instance: str) -> None:
    answer = me(get_console_output, InstanceId=instance, Latest=True)
    assert base64.b64decode(answer["Output"]).decode() == "login: é\n"
    assert answer["Timestamp"].tzinfo is not None
    openstack.console = None
    assert "Output" not in me(get_console_output, InstanceId=instance)
    assert _refused(me, get_console_screenshot, InstanceId=instance) == "UnsupportedOperation"
    assert me(get_serial_console_access_status) == {"SerialConsoleAccessEnabled": False}


def test_the_password_is_passed_on_as_it_is(openstack: Workshop, me: Caller, instance: str) -> None:
    assert me(get_password_data, InstanceId=instance)["PasswordData"] == ""
    openstack.password = "bWluZQ=="
    assert me(get_password_data, InstanceId=instance)["PasswordData"] == "bWluZQ=="


# -- a cloud without volumes --------------------------------------------------


@pytest.mark.usefixtures("_address")
def test_instances_are_described_without_a_volume_service(
    openstack: Workshop,
    ec2_cloud: Cloud,
    ec2_db: Database,
    tmp_path: Path,
    server: dict[str, Any],
) -> None:
    catalog = [entry for entry in keystone.catalog() if entry["type"] != "volumev3"]
    assert len(catalog) < len(keystone.catalog())
    poor = Caller(ec2_cloud, ec2_db, keystone.token(catalog=catalog), tmp_path)
    server["os-extended-volumes:volumes_attached"].append({"id": "v1"})
    [shown] = instances_of(poor(describe_instances))
    assert shown["BlockDeviceMappings"] == []
    [again] = instances_of(poor(describe_instances, InstanceIds=[shown["InstanceId"]]))
    assert again == shown


def test_a_running_instance_that_is_being_resized_runs(
    openstack: Workshop, me: Caller, stopped: dict[str, Any], instance: str
) -> None:
    stopped["OS-EXT-STS:vm_state"] = "resized"
    stopped["OS-EXT-STS:power_state"] = 1
    [change] = me(start_instances, InstanceIds=[instance])["StartingInstances"]
    assert change["CurrentState"]["Name"] == "running"
