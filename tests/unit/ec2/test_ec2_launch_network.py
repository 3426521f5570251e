"""Launches into a VPC: what instances are plugged into, what they show, what they leave."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_openstack import MINE, Caller, code_of, instances_of
from tests.support.ec2_ports import Place, Ports
from trimaran.cloud.compute import Compute
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances.instance import describe_instances, terminate_instances
from trimaran.ec2.kinds.instances.instance_attribute import (
    describe_instance_attribute,
    reset_instance_attribute,
)
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.ec2.kinds.instances.instance_modify import modify_instance_attribute
from trimaran.ec2.kinds.interfaces.address import describe_addresses
from trimaran.ec2.kinds.interfaces.address_allocate import allocate_address
from trimaran.ec2.kinds.interfaces.address_associate import associate_address
from trimaran.ec2.kinds.interfaces.network_interface import describe_network_interfaces
from trimaran.ec2.kinds.interfaces.network_interface_attribute import (
    modify_network_interface_attribute,
)
from trimaran.ec2.kinds.interfaces.network_interface_create import create_network_interface
from trimaran.ec2.kinds.security_groups.security_group_create import create_security_group
from trimaran.ec2.kinds.vpcs.subnet_attribute import modify_subnet_attribute
from trimaran.ec2.kinds.vpcs.subnet_create import create_subnet
from trimaran.identity import count_calls

CLOUD = Ports


@pytest.fixture
def ami(openstack: Ports, me: Caller) -> str:
    me.conf.set_override("disable_ec2_classic", True)
    openstack.image()
    return str(me(describe_images)["Images"][0]["ImageId"])


@pytest.fixture
def place(openstack: Ports, me: Caller, ami: str) -> Place:
    return Place(me)


def _run(me: Caller, ami: str, **request: Any) -> list[dict[str, Any]]:
    answer = me(run_instances, **{"ImageId": ami, "MinCount": 1, "MaxCount": 1, **request})
    return sorted(answer["Instances"], key=lambda each: int(each["AmiLaunchIndex"]))


def _refused(me: Caller, ami: str, **request: Any) -> str:
    asked = {"ImageId": ami, "MinCount": 1, "MaxCount": 1, **request}
    return code_of(me, run_instances, **asked)


def _instance(me: Caller, instance: str) -> dict[str, Any]:
    [row] = instances_of(me(describe_instances, InstanceIds=[instance]))
    return row


def _interface(me: Caller, place: Place, **request: Any) -> str:
    made = me(create_network_interface, SubnetId=place.subnet, **request)["NetworkInterface"]
    return str(made["NetworkInterfaceId"])


def _group(me: Caller, place: Place) -> str:
    """A group ``web``; without the look at the default VPC, which asks the policy."""
    me.conf.set_override("disable_ec2_classic", False)
    request = {"GroupName": "web", "Description": "d", "VpcId": place.vpc}
    made = me(create_security_group, **request)["GroupId"]
    me.conf.set_override("disable_ec2_classic", True)
    return str(made)


def _set(me: Caller, item_id: str, **changes: Any) -> None:
    """Changes what an item says."""
    [item] = me.db.read(lambda s: queries.items_by_ids(s, MINE, [item_id]))
    data = {**item.data, **changes}
    me.db.write(lambda s: queries.update_item(s, MINE, item_id, data=data))


def _items(me: Caller) -> dict[str, dict[str, Any]]:
    rows = me.db.read(lambda s: queries.items_of(s, MINE, ["i", "eni", "eipalloc"]))
    return {row.id: row.data for row in rows}


# -- launched and shown ------------------------------------------------------------


def test_an_instance_in_a_subnet(openstack: Ports, me: Caller, ami: str, place: Place) -> None:
    [told] = _run(me, ami, SubnetId=place.subnet, PrivateIpAddress="10.0.1.9")
    [body] = openstack.creates
    [plugged] = told["NetworkInterfaces"]
    interface = plugged["NetworkInterfaceId"]
    port = openstack.named(interface, "ports")
    assert body["networks"] == [{"port": port["id"]}]
    assert "security_groups" not in body
    assert port["fixed_ips"][0]["ip_address"] == "10.0.1.9"
    assert port["security_groups"] == [openstack.named(place.vpc)["id"]]
    groups = [{"GroupName": "default", "GroupId": ids.derive(place.vpc, "sg")}]
    fields = {
        "VpcId": place.vpc,
        "SubnetId": place.subnet,
        "PrivateIpAddress": "10.0.1.9",
        "SecurityGroups": groups,
        "SourceDestCheck": True,
    }
    assert told.items() >= fields.items()
    assert "PublicIpAddress" not in told
    attachment = plugged["Attachment"]
    assert (attachment["DeviceIndex"], attachment["DeleteOnTermination"]) == (0, True)
    assert attachment["Status"] == "attaching"
    shown = _instance(me, told["InstanceId"])
    assert shown.items() >= fields.items()
    [row] = shown["NetworkInterfaces"]
    assert row["Attachment"].pop("AttachTime") == attachment.pop("AttachTime")
    assert row["Attachment"] == {**attachment, "Status": "attached"}
    assert row == {
        "NetworkInterfaceId": interface,
        "SubnetId": place.subnet,
        "VpcId": place.vpc,
        "Description": "",
        "OwnerId": MINE,
        "InterfaceType": "interface",
        "Status": "in-use",
        "MacAddress": port["mac_address"],
        "PrivateIpAddress": "10.0.1.9",
        "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.1.9", "Primary": True}],
        "Ipv6Addresses": [],
        "SourceDestCheck": True,
        "Groups": groups,
        "Attachment": row["Attachment"],
    }
    [alone] = me(describe_network_interfaces)["NetworkInterfaces"]
    assert alone["Attachment"]["InstanceId"] == told["InstanceId"]
    for name, value in (
        ("vpc-id", place.vpc),
        ("subnet-id", place.subnet),
        ("network-interface.network-interface-id", interface),
        ("network-interface.attachment.delete-on-termination", "true"),
        ("instance.group-name", "default"),
    ):
        asked = [{"Name": name, "Values": [value]}]
        assert len(instances_of(me(describe_instances, Filters=asked))) == 1, name


def test_a_public_address_comes_and_goes_with_the_instance(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    before = openstack.left()
    interface = {
        "DeviceIndex": 0,
        "SubnetId": place.subnet,
        "AssociatePublicIpAddress": True,
        "SecondaryPrivateIpAddressCount": 1,
    }
    [told] = _run(me, ami, NetworkInterfaces=[interface])
    [row] = openstack.all("floatingips")
    assert told["SubnetId"] == place.subnet
    assert told["PublicIpAddress"] == row["floating_ip_address"]
    shown = _instance(me, told["InstanceId"])
    assert shown["PublicIpAddress"] == shown["PublicDnsName"] == row["floating_ip_address"]
    first = shown["NetworkInterfaces"][0]
    assert len(first["PrivateIpAddresses"]) == 2
    association = {"PublicIp": row["floating_ip_address"], "PublicDnsName": ""}
    assert first["Association"] == {**association, "IpOwnerId": "amazon"}
    # It is no elastic IP that the project could use otherwise.
    assert me(describe_addresses)["Addresses"] == []
    me(terminate_instances, InstanceIds=[told["InstanceId"]])
    run_all(me)
    assert openstack.left() == before
    assert set(_items(me)) == {told["InstanceId"]}
    gone = _instance(me, told["InstanceId"])
    assert gone["State"]["Name"] == "terminated"
    assert "NetworkInterfaces" not in gone


def test_an_elastic_ip_takes_the_place_of_the_instances_own(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    asked = {"DeviceIndex": 0, "SubnetId": place.subnet, "AssociatePublicIpAddress": True}
    [told] = _run(me, ami, NetworkInterfaces=[asked])
    made = me(allocate_address, Domain="vpc")
    allocation = made["AllocationId"]
    me(associate_address, AllocationId=allocation, InstanceId=told["InstanceId"])
    [row] = openstack.all("floatingips")
    assert _instance(me, told["InstanceId"])["PublicIpAddress"] == row["floating_ip_address"]
    me(terminate_instances, InstanceIds=[told["InstanceId"]])
    run_all(me)
    # An elastic IP stays.
    [row] = me(describe_addresses)["Addresses"]
    assert (row["AllocationId"], "AssociationId" in row) == (allocation, False)


@pytest.mark.parametrize(("says", "asked", "public"), [(True, None, 1), (True, False, 0)])
def test_the_subnet_says_whether_there_is_a_public_address(
    openstack: Ports, me: Caller, ami: str, place: Place, says: bool, asked: Any, public: int
) -> None:
    me(modify_subnet_attribute, SubnetId=place.subnet, MapPublicIpOnLaunch={"Value": says})
    request: dict[str, Any] = {"SubnetId": place.subnet}
    if asked is not None:
        interface = {"DeviceIndex": 0, **request, "AssociatePublicIpAddress": asked}
        request = {"NetworkInterfaces": [interface]}
    _run(me, ami, **request)
    assert len(openstack.all("floatingips")) == public


def test_without_a_way_out_there_is_no_public_address(
    openstack: Ports, me: Caller, ami: str
) -> None:
    place = Place(me, gateway=False)
    me(modify_subnet_attribute, SubnetId=place.subnet, MapPublicIpOnLaunch={"Value": True})
    asked = {"DeviceIndex": 0, "SubnetId": place.subnet, "AssociatePublicIpAddress": True}
    assert _refused(me, ami, NetworkInterfaces=[asked]) == "Gateway.NotAttached"
    [told] = _run(me, ami, SubnetId=place.subnet)
    assert "PublicIpAddress" not in told


def test_several_interfaces_new_and_old(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    web = _group(me, place)
    other = me(create_subnet, VpcId=place.vpc, CidrBlock="10.0.2.0/24")["Subnet"]["SubnetId"]
    old = _interface(me, place, Description="old")
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "k", "Value": "v"}]}]
    asked = [
        {"DeviceIndex": 2, "NetworkInterfaceId": old, "DeleteOnTermination": False},
        {"DeviceIndex": 0, "SubnetId": place.subnet, "Groups": [web], "Description": "first"},
        {"DeviceIndex": 1, "SubnetId": other, "DeleteOnTermination": False},
    ]
    [told] = _run(me, ami, NetworkInterfaces=asked, TagSpecifications=tags)
    instance = told["InstanceId"]
    plugged = told["NetworkInterfaces"]
    assert [row["Attachment"]["DeviceIndex"] for row in plugged] == [0, 1, 2]
    assert [row["SubnetId"] for row in plugged] == [place.subnet, other, place.subnet]
    first, second, third = (row["NetworkInterfaceId"] for row in plugged)
    assert third == old
    ports = [openstack.named(each, "ports")["id"] for each in (first, second, third)]
    assert openstack.creates[0]["networks"] == [{"port": port} for port in ports]
    assert [group["GroupName"] for group in told["SecurityGroups"]] == ["web"]
    shown = _instance(me, instance)
    assert [row["Description"] for row in shown["NetworkInterfaces"]] == ["first", "", "old"]
    rows = me(describe_network_interfaces, Filters=[{"Name": "tag:k", "Values": ["v"]}])
    tagged = {row["NetworkInterfaceId"] for row in rows["NetworkInterfaces"]}
    assert tagged == {first, second}
    for attribute in ("groupSet", "sourceDestCheck"):
        request = {"InstanceId": instance, "Attribute": attribute}
        assert code_of(me, describe_instance_attribute, **request) == "InvalidInstanceID"
    me(terminate_instances, InstanceIds=[instance])
    run_all(me)
    rows = me(describe_network_interfaces)["NetworkInterfaces"]
    left = {row["NetworkInterfaceId"]: row["Status"] for row in rows}
    assert left == {second: "available", third: "available"}
    assert not [row for row in openstack.all("ports") if row["name"] == first]


def test_the_instances_attributes_are_its_interfaces(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    [told] = _run(me, ami, SubnetId=place.subnet)
    instance = told["InstanceId"]
    port = openstack.named(told["NetworkInterfaces"][0]["NetworkInterfaceId"], "ports")
    web = _group(me, place)
    change = modify_instance_attribute
    me(change, InstanceId=instance, Groups=[web])
    assert port["security_groups"] == [openstack.named("web")["id"]]
    asked = {"InstanceId": instance}
    told = me(describe_instance_attribute, **asked, Attribute="groupSet")
    assert told["Groups"] == [{"GroupName": "web", "GroupId": web}]
    assert code_of(me, change, **asked, Groups=["sg-00000001"]) == "InvalidGroup.NotFound"
    me(change, **asked, SourceDestCheck={"Value": False})
    assert port["allowed_address_pairs"]
    told = me(describe_instance_attribute, **asked, Attribute="sourceDestCheck")
    assert told["SourceDestCheck"] == {"Value": False}
    assert _instance(me, instance)["SourceDestCheck"] is False
    me(reset_instance_attribute, **asked, Attribute="sourceDestCheck")
    assert not port["allowed_address_pairs"]


def test_without_a_subnet_it_is_the_default_vpcs(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    web = _group(me, place)
    _set(me, place.vpc, is_default=True)
    _set(me, place.subnet, default_for_az=True)
    by_name = {"SecurityGroups": ["web"], "PrivateIpAddress": "10.0.1.9"}
    by_id = {"SecurityGroupIds": [web]}
    inside = {"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [web]}]}
    for request in (by_name, by_id, inside):
        [told] = _run(me, ami, **request)
        assert (told["VpcId"], told["SubnetId"]) == (place.vpc, place.subnet)
        assert [each["GroupId"] for each in told["SecurityGroups"]] == [web]
    assert _refused(me, ami, SecurityGroups=["none"]) == "InvalidGroup.NotFound"


def test_with_nothing_by_default_a_subnet_is_to_be_named(
    openstack: Ports, me: Caller, ami: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = "trimaran.ec2.kinds.instances.launch_network.ensure_default_vpc"
    monkeypatch.setattr(here, lambda ctx: None)
    assert _refused(me, ami) == "VPCIdNotSpecified"
    place = Place(me)
    [vpc] = me.db.read(lambda s: queries.items_by_ids(s, MINE, [place.vpc]))
    monkeypatch.setattr(here, lambda ctx: vpc)
    me.db.write(lambda s: queries.delete_items(s, MINE, [place.subnet]))
    assert _refused(me, ami) == "MissingInput"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"SubnetId": "{subnet}", "SecurityGroups": ["x"]}, "InvalidParameterCombination"),
        ({"SubnetId": "{subnet}", "PrivateIpAddress": "10.9.0.1"}, "InvalidParameterValue"),
        ({"SubnetId": "subnet-1"}, "InvalidSubnetID.NotFound"),
        ({"SubnetId": "{subnet}", "SecurityGroupIds": ["sg-1"]}, "InvalidGroup.NotFound"),
        (
            {"SubnetId": "{subnet}", "PrivateIpAddress": "10.0.1.9", "MaxCount": 2},
            "InvalidParameterCombination",
        ),
        (
            {"SubnetId": "{subnet}", "NetworkInterfaces": [{"DeviceIndex": 0}]},
            "InvalidParameterCombination",
        ),
        ({"NetworkInterfaces": [{"SubnetId": "{subnet}"}]}, "InvalidParameterValue"),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": "{subnet}"}] * 2},
            "InvalidParameterValue",
        ),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 1, "SubnetId": "{subnet}"}]},
            "UnsupportedOperation",
        ),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": "eni-1"}]},
            "InvalidNetworkInterfaceID.NotFound",
        ),
        (
            {
                "NetworkInterfaces": [
                    {"DeviceIndex": 0, "NetworkInterfaceId": "{eni}", "SubnetId": "{subnet}"}
                ]
            },
            "InvalidParameterCombination",
        ),
        (
            {
                "NetworkInterfaces": [
                    {"DeviceIndex": 0, "NetworkInterfaceId": "{eni}", "DeleteOnTermination": True}
                ]
            },
            "InvalidParameterCombination",
        ),
        (
            {
                "NetworkInterfaces": [
                    {"DeviceIndex": index, "NetworkInterfaceId": "{eni}"} for index in (0, 1)
                ]
            },
            "InvalidParameterValue",
        ),
        (
            {
                "NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": "{eni}"}],
                "MaxCount": 2,
            },
            "InvalidParameterCombination",
        ),
        (
            {
                "NetworkInterfaces": [
                    {"DeviceIndex": 0, "NetworkInterfaceId": "{eni}"},
                    {"DeviceIndex": 1, "SubnetId": "{foreign}"},
                ]
            },
            "InvalidParameterValue",
        ),
        (
            {"NetworkInterfaces": [{"DeviceIndex": i, "SubnetId": "{subnet}"} for i in range(9)]},
            "AttachmentLimitExceeded",
        ),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "Ipv6AddressCount": 1}]},
            "UnsupportedOperation",
        ),
        (
            {
                "NetworkInterfaces": [
                    {"DeviceIndex": 0, "EnaSrdSpecification": {"EnaSrdEnabled": True}}
                ]
            },
            "UnsupportedOperation",
        ),
        ({"SubnetId": "{subnet}", "DryRun": True}, "DryRunOperation"),
    ],
)
def test_wrong_launches_make_nothing(
    openstack: Ports, me: Caller, ami: str, place: Place, request_: dict[str, Any], code: str
) -> None:
    names = {
        "{subnet}": place.subnet,
        "{foreign}": Place(me, gateway=False).subnet,
        "{eni}": _interface(me, place),
    }

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        return names.get(value, value) if isinstance(value, str) else value

    before, items = openstack.left(), _items(me)
    assert _refused(me, ami, **filled(request_)) == code
    assert openstack.left() == before
    assert _items(me) == items
    assert openstack.creates == []


def test_a_busy_interface_is_not_taken(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    asked = {"DeviceIndex": 0, "NetworkInterfaceId": _interface(me, place)}
    _run(me, ami, NetworkInterfaces=[asked])
    assert _refused(me, ami, NetworkInterfaces=[asked]) == "InvalidNetworkInterface.InUse"


# -- undone --------------------------------------------------------------------------


def test_a_quota_in_the_middle_undoes_all(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    old = _interface(me, place)
    before, items = openstack.left(), _items(me)
    openstack.most["ports"] = len(openstack.all("ports")) + 1
    asked = [
        {"DeviceIndex": 0, "SubnetId": place.subnet, "AssociatePublicIpAddress": True},
        {"DeviceIndex": 1, "NetworkInterfaceId": old},
        {"DeviceIndex": 2, "SubnetId": place.subnet},
    ]
    assert _refused(me, ami, NetworkInterfaces=asked, ClientToken="t") == (
        "InsufficientFreeAddressesInSubnet"
    )
    assert openstack.left() == before
    assert _items(me) == items
    assert openstack.creates == []
    openstack.most.clear()
    [told] = _run(me, ami, NetworkInterfaces=asked, ClientToken="t")
    assert len(told["NetworkInterfaces"]) == 3


@pytest.mark.parametrize("number", range(3))
def test_a_quota_at_each_of_three_interfaces_undoes_all(
    openstack: Ports, me: Caller, ami: str, place: Place, number: int
) -> None:
    before, items = openstack.left(), _items(me)
    openstack.most["ports"] = len(openstack.all("ports")) + number
    asked = [{"DeviceIndex": index, "SubnetId": place.subnet} for index in range(3)]
    code = _refused(me, ami, NetworkInterfaces=asked)
    assert code == "InsufficientFreeAddressesInSubnet"
    assert (openstack.left(), _items(me), openstack.creates) == (before, items, [])


def test_a_quota_of_addresses_undoes_all(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    before, items = openstack.left(), _items(me)
    openstack.most["floatingips"] = 0
    asked = [
        {"DeviceIndex": 0, "SubnetId": place.subnet, "AssociatePublicIpAddress": True},
        {"DeviceIndex": 1, "SubnetId": place.subnet},
        {"DeviceIndex": 2, "SubnetId": place.subnet},
    ]
    # AWS refuses public addresses with several new interfaces; ours comes with the first one.
    assert _refused(me, ami, NetworkInterfaces=asked[:1]) == "AddressLimitExceeded"
    assert _refused(me, ami, NetworkInterfaces=asked) == "AddressLimitExceeded"
    assert (openstack.left(), _items(me)) == (before, items)


def test_what_nova_refuses_leaves_no_port(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    openstack.most["floatingips"] = 1
    before = openstack.left()
    made: list[Any] = []

    def all_but_the_first(body: Any) -> int | None:
        made.append(body)
        return 400 if len(made) > 1 else None

    openstack.refuse = all_but_the_first
    several = {"SubnetId": place.subnet, "MinCount": 2, "MaxCount": 2}
    assert _refused(me, ami, **several) == "InvalidParameterValue"
    assert len(made) == 2
    assert openstack.left() == before
    assert instances_of(me(describe_instances)) == []
    assert _items(me) == {}
    # Fewer than MaxCount are enough: the others leave nothing.
    made.clear()
    [told] = _run(me, ami, **{**several, "MinCount": 1})
    run_all(me)
    ports = {row["name"] for row in openstack.all("ports")} - before["ports"]
    assert ports == {told["NetworkInterfaces"][0]["NetworkInterfaceId"]}
    # The quota of addresses ends a launch as well.
    asked = {"DeviceIndex": 0, "SubnetId": place.subnet, "AssociatePublicIpAddress": True}
    openstack.refuse = lambda body: None
    request = {"NetworkInterfaces": [asked], "MinCount": 2, "MaxCount": 2}
    assert _refused(me, ami, **request) == "AddressLimitExceeded"
    assert openstack.all("floatingips") == []


@pytest.mark.parametrize("moment", range(14))
def test_a_crash_of_a_launch_leaves_all_or_nothing(
    openstack: Ports, me: Caller, ami: str, place: Place, moment: int
) -> None:
    old = _interface(me, place)
    before, items = openstack.left(), _items(me)
    asked = [
        {"DeviceIndex": 0, "SubnetId": place.subnet, "AssociatePublicIpAddress": True},
        {"DeviceIndex": 1, "NetworkInterfaceId": old},
        {"DeviceIndex": 2, "SubnetId": place.subnet},
    ]
    deaths = Deaths(moment)
    watched = (
        (Network, "create_port"),
        (Network, "create_floating_ip"),
        (Compute, "create_server"),
        (Database, "write"),
    )
    with pytest.raises(Death), dying(deaths, *watched):
        _run(me, ami, NetworkInterfaces=asked, ClientToken="t")
    run_all(me)
    found = instances_of(me(describe_instances))
    if found:
        [instance] = found
        assert instance["State"]["Name"] == "running"
        assert len(instance["NetworkInterfaces"]) == 3
        assert instance["PublicIpAddress"]
        [server] = openstack.servers.values()
        assert server["name"] == instance["InstanceId"]
        for row in instance["NetworkInterfaces"]:
            port = openstack.named(row["NetworkInterfaceId"], "ports")
            assert port["device_id"] == server["id"]
        me(terminate_instances, InstanceIds=[instance["InstanceId"]])
        run_all(me)
    assert openstack.servers == {}
    assert openstack.left() == before
    me(describe_network_interfaces)
    left = {item: data for item, data in _items(me).items() if not item.startswith("i-")}
    assert left == items


# -- ended ----------------------------------------------------------------------------


def test_a_server_deleted_in_nova_takes_its_interfaces_along(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    [first], [second] = (_run(me, ami, SubnetId=place.subnet) for _ in range(2))
    kept = second["NetworkInterfaces"][0]
    change = {
        "AttachmentId": kept["Attachment"]["AttachmentId"],
        "DeleteOnTermination": False,
    }
    me(describe_instances)
    interface = kept["NetworkInterfaceId"]
    me(modify_network_interface_attribute, NetworkInterfaceId=interface, Attachment=change)
    for each in (first, second):
        openstack.unplug(openstack.servers_of(each["InstanceId"])["id"])
    # Whoever looks at the interfaces first must not take them for unplugged ones.
    [row] = me(describe_network_interfaces)["NetworkInterfaces"]
    assert (row["NetworkInterfaceId"], row["Status"]) == (interface, "available")
    assert {row["name"] for row in openstack.all("ports")} == {place.subnet, interface}
    states = {each["State"]["Name"] for each in instances_of(me(describe_instances))}
    assert states == {"terminated"}


def test_while_a_server_is_being_deleted_nothing_is_forgotten(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    [told] = _run(me, ami, SubnetId=place.subnet)
    me(describe_instances)
    server = openstack.servers_of(told["InstanceId"])
    server["OS-EXT-STS:task_state"] = "deleting"
    interface = told["NetworkInterfaces"][0]["NetworkInterfaceId"]
    openstack.named(interface, "ports").update(device_id="", device_owner="")
    for _ in range(2):
        [row] = me(describe_network_interfaces)["NetworkInterfaces"]
        assert row["Attachment"]["DeleteOnTermination"] is True
    del openstack.servers[server["id"]]
    me(describe_instances)
    assert me(describe_network_interfaces)["NetworkInterfaces"] == []
    assert {row["name"] for row in openstack.all("ports")} == {place.subnet}


def test_calls_do_not_grow_with_instances_and_interfaces(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    counts = []
    asked = [{"DeviceIndex": i, "SubnetId": place.subnet} for i in range(2)]
    for _ in range(2):
        _run(me, ami, NetworkInterfaces=asked, MinCount=3, MaxCount=3)
        me(describe_instances)
        with count_calls() as counted:
            assert all(
                len(each["NetworkInterfaces"]) == 2 for each in instances_of(me(describe_instances))
            )
        counts.append(counted.total)
    assert counts[0] == counts[1] == 5
    [one, *_] = instances_of(me(describe_instances))
    with count_calls() as counted:
        me(describe_instances, InstanceIds=[one["InstanceId"]])
    assert counted.total == 4


def test_an_instance_made_without_us_is_outside_of_vpcs(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    _run(me, ami, SubnetId=place.subnet)
    foreign = openstack.server(image={"id": next(iter(openstack.images))})
    shown = {each["PrivateDnsName"]: each for each in instances_of(me(describe_instances))}
    plain = shown[foreign["OS-EXT-SRV-ATTR:hostname"]]
    assert plain["PrivateIpAddress"] == "10.0.0.5"
    assert plain["PublicIpAddress"] == "172.24.4.7"
    assert not {"VpcId", "SubnetId", "NetworkInterfaces"} & set(plain)


def test_with_classic_a_launch_without_subnet_has_no_interface(
    openstack: Ports, me: Caller, ami: str, place: Place
) -> None:
    me.conf.set_override("disable_ec2_classic", False)
    for row in list(openstack.topology["networks"].values()):
        if row["project_id"] == MINE:
            row["name"] = "subnet-00000001"
    openstack.put("networks", name="private", shared=False)
    openstack.group("default")
    [told] = _run(me, ami)
    assert not {"VpcId", "SubnetId", "NetworkInterfaces"} & set(told)
    assert openstack.creates[0]["networks"] == [
        {"uuid": openstack.named("private", "networks")["id"]}
    ]
    assert _refused(me, ami, PrivateIpAddress="10.0.1.9") == "InvalidParameterCombination"
    bare = [{"DeviceIndex": 0}]
    assert _refused(me, ami, NetworkInterfaces=bare) == "MissingParameter"
    [told] = _run(me, ami, SubnetId=place.subnet)
    assert told["VpcId"] == place.vpc
