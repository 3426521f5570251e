"""Instances: states, description, filters, pages, and the actions on them."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock as mocking

from tests.support.ec2_openstack import MINE, NOVA, Caller, OpenStack, instances_of
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance import (
    describe_instances,
    reboot_instances,
    start_instances,
    stop_instances,
    terminate_instances,
)
from trimaran.ec2.kinds.instances.instance_status import describe_instance_status
from trimaran.ec2.protocol.errors import EC2Error

EC2_STATES = {0: "pending", 16: "running", 32: "shutting-down", 48: "terminated", 64: "stopping"}
EC2_STATES[80] = "stopped"


def _server(vm: str | None, task: str | None = None, launched: bool = True) -> dict[str, Any]:
    return {
        "OS-EXT-STS:vm_state": vm,
        "OS-EXT-STS:task_state": task,
        "OS-SRV-USG:launched_at": "2026-01-01T00:00:00" if launched else None,
    }


@pytest.mark.parametrize(
    ("vm", "task", "launched", "name"),
    [
        (None, None, False, "pending"),
        ("building", "spawning", False, "pending"),
        ("active", None, True, "running"),
        ("active", "rebooting", True, "running"),
        ("active", "powering-off", True, "stopping"),
        ("active", "shelving_image_uploading", True, "stopping"),
        ("active", "deleting", True, "shutting-down"),
        ("stopped", None, True, "stopped"),
        ("stopped", "powering-on", True, "pending"),
        ("stopped", "powering-off", True, "stopped"),
        ("stopped", "resize_prep", True, "stopped"),
        ("paused", None, True, "stopped"),
        ("paused", "unpausing", True, "pending"),
        ("suspended", "resuming", True, "pending"),
        ("shelved", None, True, "stopped"),
        ("shelved_offloaded", "unshelving", True, "pending"),
        ("rescued", None, True, "running"),
        ("resized", None, True, "running"),
        ("soft-delete", None, True, "shutting-down"),
        ("deleted", None, True, "shutting-down"),
        ("error", None, True, "stopped"),
        ("error", None, False, "terminated"),
        ("error", "deleting", False, "shutting-down"),
        ("something-new", None, True, "pending"),
    ],
)
def test_nova_states_are_shown_as_ec2s(
    vm: str | None, task: str | None, launched: bool, name: str
) -> None:
    state = states.state_of(_server(vm, task, launched))
    assert state.name == name
    assert EC2_STATES[state.code] == name


def test_an_instance_shows_what_nova_and_the_item_know(openstack: OpenStack, me: Caller) -> None:
    image = openstack.image()
    server = openstack.server(image={"id": image["id"]}, key_name="mykey")
    openstack.volume(server, "/dev/vdb")
    [shown] = instances_of(me(describe_instances))
    device = shown["BlockDeviceMappings"][0]
    assert device["DeviceName"] == "/dev/vdb"
    assert device["Ebs"]["VolumeId"].startswith("vol-")
    assert device["Ebs"]["Status"] == "attached"
    assert device["Ebs"]["DeleteOnTermination"] is True
    assert shown["ImageId"].startswith("ami-")
    assert (shown["InstanceType"], shown["KeyName"]) == ("m1.small", "mykey")
    assert (shown["PrivateIpAddress"], shown["PublicIpAddress"]) == ("10.0.0.5", "172.24.4.7")
    assert shown["PrivateDnsName"] == server["OS-EXT-SRV-ATTR:hostname"]
    assert (shown["RootDeviceName"], shown["RootDeviceType"]) == ("/dev/vda", "instance-store")
    assert shown["Placement"] == {
        "AvailabilityZone": "nova",
        "AvailabilityZoneId": "nova",
        "GroupName": "",
        "Tenancy": "default",
    }
    [group] = shown["SecurityGroups"]
    assert group["GroupName"] == "default"
    assert group["GroupId"].startswith("sg-")
    assert shown["CpuOptions"] == {"CoreCount": 2, "ThreadsPerCore": 1}
    assert "KernelId" not in shown
    assert "StateReason" not in shown
    # A describe of one id says the same as a describe of all.
    alone = instances_of(me(describe_instances, InstanceIds=[shown["InstanceId"]]))
    assert alone == [shown]


def test_an_instance_on_a_volume_knows_its_image_and_is_ebs(
    openstack: OpenStack, me: Caller
) -> None:
    image = openstack.image()
    server = openstack.server(image="")
    openstack.volume(server, "vda", volume_image_metadata={"image_id": image["id"]})
    [shown] = instances_of(me(describe_instances))
    assert shown["RootDeviceType"] == "ebs"
    assert shown["ImageId"].startswith("ami-")
    openstack.volumes.clear()
    [bare] = instances_of(me(describe_instances, InstanceIds=[shown["InstanceId"]]))
    assert bare["BlockDeviceMappings"] == []


def test_groups_that_share_a_name_have_no_id_to_lie_about(openstack: OpenStack, me: Caller) -> None:
    openstack.groups.append({"id": "11111111-0000", "name": "default", "project_id": MINE})
    openstack.server()
    [shown] = instances_of(me(describe_instances))
    assert shown["SecurityGroups"] == [{"GroupName": "default"}]


def test_a_failed_launch_is_terminated_with_a_reason(openstack: OpenStack, me: Caller) -> None:
    openstack.server(**_server("error", None, launched=False), status="ERROR")
    [shown] = instances_of(me(describe_instances))
    assert shown["State"]["Name"] == "terminated"
    assert shown["StateReason"]["Code"] == "Server.InternalError"


def test_the_ip_can_be_the_private_name(openstack: OpenStack, me: Caller, tmp_path: Any) -> None:
    me.conf.set_override("ec2_private_dns_show_ip", True)
    openstack.server()
    [shown] = instances_of(me(describe_instances))
    assert shown["PrivateDnsName"] == "10.0.0.5"


def test_reservations_hold_their_instances_by_index(openstack: OpenStack, me: Caller) -> None:
    for index in (2, 0, 1):
        openstack.server(
            **{
                "OS-EXT-SRV-ATTR:reservation_id": "r-together",
                "OS-EXT-SRV-ATTR:launch_index": index,
            }
        )
    openstack.server()
    answer = me(describe_instances)
    assert len(answer["Reservations"]) == 2
    together = next(row for row in answer["Reservations"] if row["ReservationId"] == "r-together")
    assert [each["AmiLaunchIndex"] for each in together["Instances"]] == [0, 1, 2]
    assert together["Groups"] == together["Instances"][0]["SecurityGroups"]


@pytest.mark.parametrize(
    ("name", "value", "count"),
    [
        ("instance-state-name", "running", 2),
        ("instance-state-code", "16", 2),
        ("instance-state-name", "stop*", 1),
        ("instance-type", "m1.big", 1),
        ("ip-address", "172.24.4.*", 3),
        ("availability-zone", "elsewhere", 1),
        ("reservation-id", "r-*", 3),
        ("owner-id", MINE, 3),
        ("owner-id", "other", 0),
        ("root-device-type", "instance-store", 3),
        ("group-name", "default", 3),
        ("network-interface.subnet-id", "*", 0),
        ("vpc-id", "*", 0),
        ("tag:a", "b", 0),
    ],
)
def test_filters(openstack: OpenStack, me: Caller, name: str, value: str, count: int) -> None:
    openstack.server()
    openstack.server(flavor={"original_name": "m1.big"})
    openstack.server(
        **{"OS-EXT-STS:vm_state": "stopped", "OS-EXT-AZ:availability_zone": "elsewhere"}
    )
    answer = me(describe_instances, Filters=[{"Name": name, "Values": [value]}])
    assert len(instances_of(answer)) == count


def test_an_unknown_filter_is_refused_before_anything_is_asked(
    openstack: OpenStack, me: Caller
) -> None:
    with pytest.raises(EC2Error) as caught:
        me(describe_instances, Filters=[{"Name": "fake", "Values": ["x"]}])
    assert caught.value.code == "InvalidParameterValue"
    assert openstack.seen == []


def test_nova_is_spared_what_ec2_does_not_show(
    openstack: OpenStack, me: Caller, requests_mock: mocking.Mocker
) -> None:
    """What newer microversions tell of a server costs Nova queries, and nobody looks at it."""
    openstack.server()
    [shown] = instances_of(me(describe_instances))
    me(describe_instances, InstanceIds=[shown["InstanceId"]])
    asked = [row for row in requests_mock.request_history if row.url.startswith(f"{NOVA}/servers")]
    assert {row.path.rpartition("/")[2] == "detail" for row in asked} == {True, False}
    assert {row.headers["OpenStack-API-Version"] for row in asked} == {"compute 2.47"}


def test_pages_count_instances_and_lose_none(openstack: OpenStack, me: Caller) -> None:
    for index in range(12):
        openstack.server(
            **{
                "OS-EXT-SRV-ATTR:reservation_id": "r-together",
                "OS-EXT-SRV-ATTR:launch_index": index,
            }
        )
    seen: list[str] = []
    request: dict[str, Any] = {"MaxResults": 5}
    sizes = []
    while True:
        answer = me(describe_instances, **request)
        found = [each["InstanceId"] for each in instances_of(answer)]
        sizes.append(len(found))
        seen += found
        if not answer["NextToken"]:
            break
        request["NextToken"] = answer["NextToken"]
    assert sizes == [5, 5, 2]
    assert len(set(seen)) == 12
    with pytest.raises(EC2Error) as caught:
        me(describe_instances, InstanceIds=seen[:1], MaxResults=5)
    assert caught.value.code == "InvalidParameterCombination"


def _one(me: Caller) -> str:
    return str(instances_of(me(describe_instances))[0]["InstanceId"])


def test_terminate_says_before_and_after_and_can_be_repeated(
    openstack: OpenStack, me: Caller
) -> None:
    openstack.server()
    instance_id = _one(me)
    [change] = me(terminate_instances, InstanceIds=[instance_id])["TerminatingInstances"]
    assert change["PreviousState"] == {"Code": 16, "Name": "running"}
    assert change["CurrentState"] == {"Code": 32, "Name": "shutting-down"}
    assert openstack.servers == {}
    for _ in range(2):
        [change] = me(terminate_instances, InstanceIds=[instance_id])["TerminatingInstances"]
        assert change["PreviousState"]["Name"] == change["CurrentState"]["Name"] == "terminated"
    [shown] = instances_of(me(describe_instances))
    assert shown["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert shown["LaunchTime"] == "2026-01-02T03:04:05Z"


def test_terminate_is_all_or_nothing(openstack: OpenStack, me: Caller) -> None:
    openstack.server()
    first = _one(me)
    openstack.server()
    both = [each["InstanceId"] for each in instances_of(me(describe_instances))]
    with pytest.raises(EC2Error) as caught:
        me(terminate_instances, InstanceIds=[*both, "i-00000001"])
    assert caught.value.code == "InvalidInstanceID.NotFound"
    me.db.write(
        lambda s: queries.update_item(s, MINE, first, data={"disable_api_termination": True})
    )
    with pytest.raises(EC2Error) as caught:
        me(terminate_instances, InstanceIds=both)
    assert caught.value.code == "OperationNotPermitted"
    assert len(openstack.servers) == 2
    with pytest.raises(EC2Error) as caught:
        me(terminate_instances, InstanceIds=[both[0] if both[0] != first else both[1]], DryRun=True)
    assert caught.value.code == "DryRunOperation"
    assert len(openstack.servers) == 2


def test_terminating_what_is_going_already_asks_nova_nothing(
    openstack: OpenStack, me: Caller
) -> None:
    openstack.server(**{"OS-EXT-STS:task_state": "deleting"})
    instance_id = _one(me)
    [change] = me(terminate_instances, InstanceIds=[instance_id])["TerminatingInstances"]
    assert change["PreviousState"]["Name"] == change["CurrentState"]["Name"] == "shutting-down"
    assert "DELETE" not in {method for method, _ in openstack.seen}


@pytest.mark.parametrize(
    ("vm", "body", "after"),
    [
        ("active", {"os-stop": None}, "stopping"),
        ("error", {"os-stop": None}, "stopping"),
        ("stopped", None, "stopped"),
        ("shelved", None, "stopped"),
    ],
)
def test_stop(
    openstack: OpenStack, me: Caller, vm: str, body: dict[str, Any] | None, after: str
) -> None:
    openstack.server(**_server(vm))
    instance_id = _one(me)
    [change] = me(stop_instances, InstanceIds=[instance_id])["StoppingInstances"]
    assert change["CurrentState"]["Name"] == after
    assert [asked for _, asked in openstack.actions] == ([body] if body else [])


@pytest.mark.parametrize(
    ("vm", "body", "after"),
    [
        ("stopped", {"os-start": None}, "pending"),
        ("paused", {"unpause": None}, "pending"),
        ("suspended", {"resume": None}, "pending"),
        ("shelved_offloaded", {"unshelve": None}, "pending"),
        ("active", None, "running"),
    ],
)
def test_start(
    openstack: OpenStack, me: Caller, vm: str, body: dict[str, Any] | None, after: str
) -> None:
    openstack.server(**_server(vm))
    instance_id = _one(me)
    [change] = me(start_instances, InstanceIds=[instance_id])["StartingInstances"]
    assert change["CurrentState"]["Name"] == after
    assert [asked for _, asked in openstack.actions] == ([body] if body else [])


@pytest.mark.parametrize("action", [stop_instances, start_instances, reboot_instances])
def test_one_instance_in_a_wrong_state_stops_all(
    openstack: OpenStack, me: Caller, action: Any
) -> None:
    openstack.server()
    openstack.server(**{"OS-EXT-STS:task_state": "deleting", "OS-EXT-STS:vm_state": "building"})
    both = [each["InstanceId"] for each in instances_of(me(describe_instances))]
    with pytest.raises(EC2Error) as caught:
        me(action, InstanceIds=both)
    assert caught.value.code == "IncorrectInstanceState"
    assert openstack.actions == []


def test_reboot_is_soft_where_it_runs(openstack: OpenStack, me: Caller) -> None:
    running, stopped = openstack.server(), openstack.server(**_server("stopped"))
    both = [each["InstanceId"] for each in instances_of(me(describe_instances))]
    assert me(reboot_instances, InstanceIds=both) == {}
    assert dict(openstack.actions) == {
        running["id"]: {"reboot": {"type": "SOFT"}},
        stopped["id"]: {"reboot": {"type": "HARD"}},
    }


def test_a_conflict_in_nova_is_an_incorrect_state(openstack: OpenStack, me: Caller) -> None:
    openstack.server()
    instance_id = _one(me)
    openstack.fail = {"/action": 409}
    with pytest.raises(EC2Error) as caught:
        me(stop_instances, InstanceIds=[instance_id])
    assert caught.value.code == "IncorrectInstanceState"


def test_status_is_of_running_instances_unless_all_are_asked_for(
    openstack: OpenStack, me: Caller
) -> None:
    openstack.server()
    openstack.server(host_status="DOWN")
    openstack.server(**_server("stopped"))
    openstack.seen.clear()
    answer = me(describe_instance_status)["InstanceStatuses"]
    assert len(openstack.calls()) == len(openstack.calls(NOVA)) == 1
    assert sorted(row["SystemStatus"]["Status"] for row in answer) == ["impaired", "ok"]
    everything = me(describe_instance_status, IncludeAllInstances=True)["InstanceStatuses"]
    assert len(everything) == 3
    [stopped] = [row for row in everything if row["InstanceState"]["Name"] == "stopped"]
    assert stopped["InstanceStatus"] == {"Status": "not-applicable"}
    filters = [{"Name": "instance-status.status", "Values": ["ok"]}]
    assert len(me(describe_instance_status, Filters=filters)["InstanceStatuses"]) == 1
    chosen = me(describe_instance_status, InstanceIds=[stopped["InstanceId"]])
    assert chosen["InstanceStatuses"] == []
