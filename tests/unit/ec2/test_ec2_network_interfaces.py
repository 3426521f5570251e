"""Network interfaces on a Neutron of dictionaries: made, shown, changed, attached, deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_openstack import MINE, Caller, code_of, instances_of
from tests.support.ec2_ports import Place, Ports
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.interfaces.network_interface import (
    delete_network_interface,
    describe_network_interfaces,
)
from trimaran.ec2.kinds.interfaces.network_interface_assign import (
    assign_ipv6_addresses,
    assign_private_ip_addresses,
    unassign_ipv6_addresses,
    unassign_private_ip_addresses,
)
from trimaran.ec2.kinds.interfaces.network_interface_attach import (
    attach_network_interface,
    detach_network_interface,
)
from trimaran.ec2.kinds.interfaces.network_interface_attribute import (
    describe_network_interface_attribute,
    modify_network_interface_attribute,
    reset_network_interface_attribute,
)
from trimaran.ec2.kinds.interfaces.network_interface_create import create_network_interface
from trimaran.ec2.kinds.security_groups.security_group_create import create_security_group
from trimaran.ec2.kinds.tag import describe_tags
from trimaran.ec2.kinds.vpcs.route import create_route
from trimaran.ec2.kinds.vpcs.route_table import describe_route_tables
from trimaran.ec2.kinds.vpcs.subnet import delete_subnet
from trimaran.ec2.kinds.vpcs.vpc import delete_vpc
from trimaran.identity import count_calls

CLOUD = Ports


@pytest.fixture
def place(openstack: Ports, me: Caller) -> Place:
    return Place(me)


def _make(me: Caller, place: Place, **request: Any) -> dict[str, Any]:
    made = me(create_network_interface, SubnetId=place.subnet, **request)["NetworkInterface"]
    return dict(made)


def _shown(me: Caller, interface: str) -> dict[str, Any]:
    [row] = me(describe_network_interfaces, NetworkInterfaceIds=[interface])["NetworkInterfaces"]
    return dict(row)


def _items(me: Caller) -> dict[str, Any]:
    rows = me.db.read(lambda s: queries.items_of(s, MINE, ["eni"]))
    return {row.id: row.data for row in rows}


def _instance(openstack: Ports, me: Caller) -> str:
    openstack.server()
    return str(instances_of(me(describe_instances))[-1]["InstanceId"])


# -- made and shown --------------------------------------------------------------


def test_an_interface_is_a_port_made_by_one_call(
    openstack: Ports, me: Caller, place: Place
) -> None:
    before = len(openstack.seen)
    made = _make(
        me,
        place,
        Description="007",
        PrivateIpAddress="10.0.1.9",
        SecondaryPrivateIpAddressCount=2,
        TagSpecifications=[
            {"ResourceType": "network-interface", "Tags": [{"Key": "a:b", "Value": "42"}]}
        ],
    )
    changes = [call for call in openstack.seen[before:] if call[0] != "GET"]
    assert [method for method, path in changes if path.endswith("/ports")] == ["POST"]
    assert len(changes) == 1
    interface = made["NetworkInterfaceId"]
    port = openstack.named(interface, "ports")
    assert port["security_groups"] == [openstack.named(place.vpc)["id"]]
    assert len(port["fixed_ips"]) == 3
    assert "extra_dhcp_opts" not in port or port["extra_dhcp_opts"] == []
    rows = made.pop("PrivateIpAddresses")
    assert [row["Primary"] for row in rows] == [True, False, False]
    assert rows[0]["PrivateIpAddress"] == "10.0.1.9"
    assert made == {
        "NetworkInterfaceId": interface,
        "SubnetId": place.subnet,
        "VpcId": place.vpc,
        "AvailabilityZone": "nova",
        "AvailabilityZoneId": "nova",
        "Description": "007",
        "OwnerId": MINE,
        "RequesterManaged": False,
        "InterfaceType": "interface",
        "Status": "available",
        "MacAddress": port["mac_address"],
        "PrivateIpAddress": "10.0.1.9",
        "Ipv6Addresses": [],
        "SourceDestCheck": True,
        "Groups": [{"GroupName": "default", "GroupId": ids.derive(place.vpc, "sg")}],
        "TagSet": [{"Key": "a:b", "Value": "42"}],
    }
    assert _shown(me, interface) == {**made, "PrivateIpAddresses": rows}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"PrivateIpAddress": "10.0.2.9"}, "InvalidParameterValue"),
        ({"PrivateIpAddress": "10.0.1.0"}, "InvalidParameterValue"),
        ({"PrivateIpAddress": "10.0.1.255"}, "InvalidParameterValue"),
        ({"PrivateIpAddress": "fe80::1"}, "InvalidParameterValue"),
        ({"PrivateIpAddress": "10.0.1.1"}, "InvalidParameterValue"),  # the router's
        ({"SecondaryPrivateIpAddressCount": -1}, "InvalidParameterValue"),
        ({"SecondaryPrivateIpAddressCount": 50}, "PrivateIpAddressLimitExceeded"),
        (
            {
                "PrivateIpAddress": "10.0.1.9",
                "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.1.8", "Primary": True}],
            },
            "InvalidParameterValue",
        ),
        ({"PrivateIpAddresses": [{"Primary": True}]}, "MissingParameter"),
        ({"PrivateIpAddresses": [{"PrivateIpAddress": "10.0.1.8"}] * 2}, "InvalidParameterValue"),
        ({"Groups": ["sg-00000001"]}, "InvalidGroup.NotFound"),
        ({"Groups": ["vpc-00000001"]}, "InvalidParameterValue"),
        ({"SubnetId": "subnet-00000001"}, "InvalidSubnetID.NotFound"),
        ({"SubnetId": "vpc-00000001"}, "InvalidParameterValue"),
        ({"SubnetId": None}, "MissingParameter"),
        ({"Description": "x" * 256}, "ValidationError"),
        ({"Ipv6AddressCount": 1}, "UnsupportedOperation"),
        ({"Ipv4PrefixCount": 1}, "UnsupportedOperation"),
        ({"InterfaceType": "efa"}, "UnsupportedOperation"),
        (
            {"ConnectionTrackingSpecification": {"UdpTimeout": 60}},
            "UnsupportedOperation",
        ),
        ({"Operator": {"Principal": "vpn"}}, "UnsupportedOperation"),
        ({"InterfaceType": "dance"}, "InvalidParameterValue"),
        ({"TagSpecifications": [{"ResourceType": "vpc", "Tags": []}]}, "InvalidParameterValue"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_what_is_wrong_makes_nothing(
    openstack: Ports, me: Caller, place: Place, request_: dict[str, Any], code: str
) -> None:
    before = openstack.left()
    request = {"SubnetId": place.subnet, **request_}
    assert code_of(me, create_network_interface, **request) == code
    assert openstack.left() == before
    assert _items(me) == {}


def test_a_group_of_another_vpc_is_none(openstack: Ports, me: Caller, place: Place) -> None:
    other = Place(me, gateway=False)
    group = {"GroupName": "web", "Description": "d", "VpcId": other.vpc}
    foreign = me(create_security_group, **group)["GroupId"]
    request = {"SubnetId": place.subnet, "Groups": [foreign]}
    assert code_of(me, create_network_interface, **request) == "InvalidGroup.NotFound"
    made = _make(me, other, Groups=[foreign, ids.derive(other.vpc, "sg")])
    assert [row["GroupName"] for row in made["Groups"]] == ["default", "web"]
    port = openstack.named(made["NetworkInterfaceId"], "ports")
    assert port["security_groups"] == [
        openstack.named("web")["id"],
        openstack.named(other.vpc)["id"],
    ]


def test_subnets_and_quotas_run_out(openstack: Ports, me: Caller) -> None:
    small = Place(me, gateway=False, cidr="10.0.1.0/28")
    code = "InsufficientFreeAddressesInSubnet"
    asked = {"SubnetId": small.subnet, "SecondaryPrivateIpAddressCount": 13}
    assert code_of(me, create_network_interface, **asked) == code
    _make(me, small, SecondaryPrivateIpAddressCount=10)
    openstack.most["ports"] = 2
    assert code_of(me, create_network_interface, SubnetId=small.subnet) == code
    assert len(_items(me)) == 1


def test_a_token_makes_one_interface(openstack: Ports, me: Caller, place: Place) -> None:
    request = {"SubnetId": place.subnet, "ClientToken": "t", "Description": "d"}
    first = me(create_network_interface, **request)
    again = me(create_network_interface, **request)
    assert first == again
    assert first["ClientToken"] == "t"
    other = {**request, "Description": "e"}
    assert code_of(me, create_network_interface, **other) == "IdempotentParameterMismatch"
    assert len(openstack.all("ports")) == 2  # with the router's
    by_token = [{"Name": "client-token", "Values": ["t"]}]
    assert len(me(describe_network_interfaces, Filters=by_token)["NetworkInterfaces"]) == 1


@pytest.mark.parametrize("moment", range(4))
def test_a_crash_leaves_all_or_nothing(
    openstack: Ports, me: Caller, place: Place, moment: int
) -> None:
    deaths = Deaths(moment)
    watched = ((Network, "create_port"), (Database, "write"))
    with pytest.raises(Death), dying(deaths, *watched):
        _make(me, place, Description="d", ClientToken="t")
    run_all(me)
    rows = me(describe_network_interfaces)["NetworkInterfaces"]
    ports = [row["name"] for row in openstack.all("ports") if row["name"] != place.subnet]
    made = [row["NetworkInterfaceId"] for row in rows]
    assert deaths.fired
    if ports:
        # Neutron had it: whoever looks finds it whole.
        assert ports == made
        assert (rows[0]["Status"], rows[0]["Description"]) == ("available", "d")
        assert rows[0]["PrivateIpAddress"] == openstack.addresses(made[0])[0]
    else:
        assert [row["Status"] for row in rows] in ([], ["pending"])
    # The client's retry makes no second one.
    again = _make(me, place, Description="d", ClientToken="t")
    assert {again["NetworkInterfaceId"], *made} == {again["NetworkInterfaceId"]}


def test_other_ports_and_projects_are_not_shown(
    openstack: Ports, me: Caller, them: Caller, place: Place
) -> None:
    network = openstack.named(place.subnet, "networks")["id"]
    openstack.port(network, "10.0.1.77", name="somebody's")
    interface = _make(me, place)["NetworkInterfaceId"]
    rows = me(describe_network_interfaces)["NetworkInterfaces"]
    assert [row["NetworkInterfaceId"] for row in rows] == [interface]
    assert them(describe_network_interfaces)["NetworkInterfaces"] == []
    unknown = "InvalidNetworkInterfaceID.NotFound"
    asked = {"NetworkInterfaceIds": [interface]}
    assert code_of(them, describe_network_interfaces, **asked) == unknown
    assert code_of(them, delete_network_interface, NetworkInterfaceId=interface) == unknown


@pytest.mark.parametrize(
    ("name", "value", "count"),
    [
        ("subnet-id", "{subnet}", 2),
        ("vpc-id", "vpc-*", 2),
        ("private-ip-address", "10.0.1.9", 1),
        ("addresses.private-ip-address", "10.0.1.9", 1),
        ("addresses.primary", "true", 2),
        ("description", "a?", 1),
        ("status", "available", 2),
        ("status", "in-use", 0),
        ("group-name", "default", 2),
        ("source-dest-check", "TRUE", 2),
        ("tag:k", "v", 1),
        ("tag-key", "k", 1),
        ("attachment.instance-id", "*", 0),
    ],
)
def test_filters(me: Caller, place: Place, name: str, value: str, count: int) -> None:
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "k", "Value": "v"}]}]
    _make(me, place, PrivateIpAddress="10.0.1.9", Description="a1", TagSpecifications=tags)
    _make(me, place)
    asked = [{"Name": name, "Values": [value.format(subnet=place.subnet)]}]
    assert len(me(describe_network_interfaces, Filters=asked)["NetworkInterfaces"]) == count


def test_wrong_filters_and_pages(me: Caller, place: Place) -> None:
    fake = [{"Name": "fake", "Values": ["x"]}]
    assert code_of(me, describe_network_interfaces, Filters=fake) == "InvalidParameterValue"
    assert code_of(me, describe_network_interfaces, MaxResults=4) == "InvalidParameterValue"
    made = sorted(_make(me, place)["NetworkInterfaceId"] for _ in range(7))
    first = me(describe_network_interfaces, MaxResults=5)
    rest = me(describe_network_interfaces, NextToken=first["NextToken"])
    shown = [*first["NetworkInterfaces"], *rest["NetworkInterfaces"]]
    assert [row["NetworkInterfaceId"] for row in shown] == made
    assert rest["NextToken"] is None


def test_calls_do_not_grow_with_interfaces(openstack: Ports, me: Caller, place: Place) -> None:
    counts = []
    for _ in range(2):
        for _ in range(4):
            _make(me, place)
        with count_calls() as counted:
            me(describe_network_interfaces)
        counts.append(counted.total)
    assert counts[0] == counts[1] == 3


def test_no_interfaces_cost_no_call(openstack: Ports, me: Caller) -> None:
    with count_calls() as counted:
        assert me(describe_network_interfaces)["NetworkInterfaces"] == []
    assert counted.total == 0


# -- deleted ---------------------------------------------------------------------


def test_a_deleted_interface_leaves_nothing(openstack: Ports, me: Caller, place: Place) -> None:
    before = openstack.left()
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "k", "Value": "v"}]}]
    interface = _make(me, place, TagSpecifications=tags)["NetworkInterfaceId"]
    assert code_of(me, delete_subnet, SubnetId=place.subnet) == "DependencyViolation"
    assert code_of(me, delete_vpc, VpcId=place.vpc) == "DependencyViolation"
    assert code_of(me, delete_network_interface, NetworkInterfaceId=interface, DryRun=True) == (
        "DryRunOperation"
    )
    me(delete_network_interface, NetworkInterfaceId=interface)
    assert openstack.left() == before
    assert _items(me) == {}
    assert me(describe_tags)["Tags"] == []
    asked = {"NetworkInterfaceId": interface}
    assert code_of(me, delete_network_interface, **asked) == "InvalidNetworkInterfaceID.NotFound"


def test_a_port_that_vanished_takes_its_item(openstack: Ports, me: Caller, place: Place) -> None:
    gone, stays = (_make(me, place)["NetworkInterfaceId"] for _ in range(2))
    del openstack.topology["ports"][openstack.named(gone, "ports")["id"]]
    rows = me(describe_network_interfaces)["NetworkInterfaces"]
    assert [row["NetworkInterfaceId"] for row in rows] == [stays]
    assert set(_items(me)) == {stays}
    del openstack.topology["ports"][openstack.named(stays, "ports")["id"]]
    asked = {"NetworkInterfaceIds": [stays]}
    assert code_of(me, describe_network_interfaces, **asked) == "InvalidNetworkInterfaceID.NotFound"
    assert _items(me) == {}


def test_a_failed_listing_changes_nothing(openstack: Ports, me: Caller, place: Place) -> None:
    interface = _make(me, place)["NetworkInterfaceId"]
    openstack.fail["/ports"] = 500
    assert code_of(me, describe_network_interfaces) == "Unavailable"
    openstack.fail.clear()
    assert set(_items(me)) == {interface}


def test_a_route_to_a_deleted_interface_leads_nowhere(
    openstack: Ports, me: Caller, place: Place
) -> None:
    interface = _make(me, place, PrivateIpAddress="10.0.1.9")["NetworkInterfaceId"]
    [table] = me(describe_route_tables)["RouteTables"]
    me(
        create_route,
        RouteTableId=table["RouteTableId"],
        DestinationCidrBlock="192.168.0.0/24",
        NetworkInterfaceId=interface,
    )
    assert openstack.routes(place.subnet)["192.168.0.0/24"] == "10.0.1.9"
    me(delete_network_interface, NetworkInterfaceId=interface)
    run_all(me)
    assert openstack.routes(place.subnet)["192.168.0.0/24"] == "127.0.0.1"


# -- changed ---------------------------------------------------------------------


def test_attributes(openstack: Ports, me: Caller, place: Place) -> None:
    interface = _make(me, place, Description="d")["NetworkInterfaceId"]
    group = {"GroupName": "web", "Description": "d", "VpcId": place.vpc}
    web = me(create_security_group, **group)["GroupId"]
    asked = {"NetworkInterfaceId": interface}

    def told(name: str) -> Any:
        answer = me(describe_network_interface_attribute, **asked, Attribute=name)
        assert answer.pop("NetworkInterfaceId") == interface
        return answer

    change = modify_network_interface_attribute
    assert told("description") == {"Description": {"Value": "d"}}
    me(change, **asked, Description={"Value": ""})
    assert told("description") == {"Description": {"Value": ""}}
    me(change, **asked, SourceDestCheck={"Value": False})
    port = openstack.named(interface, "ports")
    assert [row["ip_address"] for row in port["allowed_address_pairs"]] == ["0.0.0.0/0"]
    assert told("sourceDestCheck") == {"SourceDestCheck": {"Value": False}}
    me(reset_network_interface_attribute, **asked, SourceDestCheck="sourceDestCheck")
    assert port["allowed_address_pairs"] == []
    assert _shown(me, interface)["SourceDestCheck"] is True
    me(change, **asked, Groups=[web])
    assert port["security_groups"] == [openstack.named("web")["id"]]
    assert told("groupSet") == {"Groups": [{"GroupName": "web", "GroupId": web}]}
    assert told("attachment") == {}
    # Neutron is the truth.
    port["allowed_address_pairs"] = [{"ip_address": "0.0.0.0/0"}]
    assert _shown(me, interface)["SourceDestCheck"] is False
    assert _items(me)[interface]["source_dest_check"] is False
    me(reset_network_interface_attribute, **asked, Attribute="sourceDestCheck")
    assert port["allowed_address_pairs"] == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({}, "InvalidParameterCombination"),
        (
            {"Description": {"Value": "x"}, "SourceDestCheck": {"Value": True}},
            "InvalidParameterCombination",
        ),
        ({"Groups": ["sg-00000001"]}, "InvalidGroup.NotFound"),
        ({"Attachment": {"DeleteOnTermination": True}}, "MissingParameter"),
        ({"Attachment": {"AttachmentId": "eni-attach-1"}}, "MissingParameter"),
        (
            {"Attachment": {"AttachmentId": "eni-attach-1", "DeleteOnTermination": True}},
            "InvalidAttachmentID.NotFound",
        ),
        ({"EnaSrdSpecification": {"EnaSrdEnabled": True}}, "UnsupportedOperation"),
        (
            {"NetworkInterfaceId": "eni-1", "Description": {"Value": "x"}},
            "InvalidNetworkInterfaceID.NotFound",
        ),
        ({"Description": {"Value": "x"}, "DryRun": True}, "DryRunOperation"),
    ],
)
def test_wrong_changes(
    openstack: Ports, me: Caller, place: Place, request_: dict[str, Any], code: str
) -> None:
    interface = _make(me, place)["NetworkInterfaceId"]
    request = {"NetworkInterfaceId": interface, **request_}
    before = _items(me)
    assert code_of(me, modify_network_interface_attribute, **request) == code
    assert _items(me) == before


def test_wrong_questions_about_attributes(me: Caller, place: Place) -> None:
    asked = {"NetworkInterfaceId": _make(me, place)["NetworkInterfaceId"]}
    show = describe_network_interface_attribute
    assert code_of(me, show, **asked) == "InvalidParameterCombination"
    assert code_of(me, show, **asked, Attribute="fake") == "InvalidParameterValue"
    assert code_of(me, reset_network_interface_attribute, **asked) == "MissingParameter"
    assert me(reset_network_interface_attribute, **asked, Attribute="other") == {}


def test_secondary_addresses(openstack: Ports, me: Caller, place: Place) -> None:
    interface = _make(me, place, PrivateIpAddress="10.0.1.9")["NetworkInterfaceId"]
    asked = {"NetworkInterfaceId": interface}
    assign, unassign = assign_private_ip_addresses, unassign_private_ip_addresses
    answer = me(assign, **asked, PrivateIpAddresses=["10.0.1.20", "10.0.1.21"])
    given = [row["PrivateIpAddress"] for row in answer["AssignedPrivateIpAddresses"]]
    assert given == ["10.0.1.20", "10.0.1.21"]
    answer = me(assign, **asked, SecondaryPrivateIpAddressCount=2)
    assert len(answer["AssignedPrivateIpAddresses"]) == 2
    assert len(openstack.addresses(interface)) == 5
    shown = _shown(me, interface)["PrivateIpAddresses"]
    assert [row["PrivateIpAddress"] for row in shown if row["Primary"]] == ["10.0.1.9"]
    me(unassign, **asked, PrivateIpAddresses=["10.0.1.20", "10.0.1.21"])
    assert not {"10.0.1.20", "10.0.1.21"} & set(openstack.addresses(interface))

    other = _make(me, place, PrivateIpAddress="10.0.1.50")
    for action, request, code in (
        (assign, {}, "MissingParameter"),
        (assign, {"SecondaryPrivateIpAddressCount": 60}, "PrivateIpAddressLimitExceeded"),
        (assign, {"SecondaryPrivateIpAddressCount": -1}, "InvalidParameterValue"),
        (assign, {"PrivateIpAddresses": ["10.0.2.1"]}, "InvalidParameterValue"),
        (assign, {"PrivateIpAddresses": [other["PrivateIpAddress"]]}, "InvalidParameterValue"),
        (
            assign,
            {"PrivateIpAddresses": ["10.0.1.30"], "SecondaryPrivateIpAddressCount": 1},
            "InvalidParameterCombination",
        ),
        (unassign, {}, "MissingParameter"),
        (unassign, {"Ipv4Prefixes": ["10.0.1.32/28"]}, "UnsupportedOperation"),
        (unassign, {"PrivateIpAddresses": ["10.0.1.9"]}, "InvalidParameterValue"),
        (unassign, {"PrivateIpAddresses": ["10.0.1.77"]}, "InvalidParameterValue"),
    ):
        before = openstack.addresses(interface)
        assert code_of(me, action, **asked, **request) == code
        assert openstack.addresses(interface) == before


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("availability-zone-id", "nova", True),
        ("operator.managed", "false", True),
        ("operator.managed", "true", False),
        ("operator.principal", "*", False),
        ("ipv6-addresses.ipv6-address", "*", False),
    ],
)
def test_every_filter_of_interfaces_that_aws_has(
    openstack: Ports, me: Caller, place: Place, name: str, value: str, found: bool
) -> None:
    interface = _make(me, place)["NetworkInterfaceId"]
    wanted = [{"Name": name, "Values": [value]}]
    shown = me(describe_network_interfaces, Filters=wanted)["NetworkInterfaces"]
    assert [row["NetworkInterfaceId"] for row in shown] == ([interface] if found else [])


@pytest.mark.parametrize("action", [assign_ipv6_addresses, unassign_ipv6_addresses])
def test_interfaces_have_no_ipv6(openstack: Ports, me: Caller, place: Place, action: Any) -> None:
    interface = _make(me, place)["NetworkInterfaceId"]
    asked = {"NetworkInterfaceId": interface, "Ipv6Addresses": ["fd00::1"]}
    assert code_of(me, action, **asked) == "UnsupportedOperation"
    unknown = {**asked, "NetworkInterfaceId": "eni-00000001"}
    assert code_of(me, action, **unknown) == "InvalidNetworkInterfaceID.NotFound"
    assert code_of(me, action) == "MissingParameter"


def test_two_changes_of_addresses_at_once_lose_none(
    openstack: Ports, me: Caller, place: Place
) -> None:
    interface = _make(me, place, PrivateIpAddress="10.0.1.9")["NetworkInterfaceId"]
    port = openstack.named(interface, "ports")
    rival = [True]

    def meanwhile(method: str, path: str) -> None:
        if method == "PUT" and path.endswith(port["id"]) and rival.pop() if rival else False:
            row = {"subnet_id": port["fixed_ips"][0]["subnet_id"], "ip_address": "10.0.1.40"}
            port["fixed_ips"].append(row)
            port["revision_number"] += 1

    openstack.before = meanwhile
    me(
        assign_private_ip_addresses,
        NetworkInterfaceId=interface,
        PrivateIpAddresses=["10.0.1.41"],
    )
    assert openstack.addresses(interface) == ["10.0.1.40", "10.0.1.41", "10.0.1.9"]


# -- attached --------------------------------------------------------------------


def test_attaching_and_detaching_go_by_way_of_nova(
    openstack: Ports, me: Caller, place: Place
) -> None:
    openstack.image()
    instance = _instance(openstack, me)
    interface = _make(me, place)["NetworkInterfaceId"]
    asked = {"NetworkInterfaceId": interface, "InstanceId": instance, "DeviceIndex": 1}
    assert code_of(me, attach_network_interface, **asked, DryRun=True) == "DryRunOperation"
    answer = me(attach_network_interface, **asked)
    attachment = ids.derive(interface, "eni-attach")
    assert answer == {"AttachmentId": attachment, "NetworkCardIndex": 0}
    [server] = openstack.servers
    assert openstack.named(interface, "ports")["device_id"] == server
    shown = _shown(me, interface)
    assert shown["Status"] == "in-use"
    told = shown["Attachment"]
    assert told.pop("AttachTime")
    assert told == {
        "AttachmentId": attachment,
        "InstanceId": instance,
        "InstanceOwnerId": MINE,
        "DeviceIndex": 1,
        "NetworkCardIndex": 0,
        "Status": "attached",
        "DeleteOnTermination": False,
    }
    [seen] = instances_of(me(describe_instances))
    assert [row["NetworkInterfaceId"] for row in seen["NetworkInterfaces"]] == [interface]
    assert code_of(me, delete_network_interface, NetworkInterfaceId=interface) == (
        "InvalidParameterValue"
    )
    change = {"AttachmentId": attachment, "DeleteOnTermination": True}
    me(modify_network_interface_attribute, NetworkInterfaceId=interface, Attachment=change)
    assert _shown(me, interface)["Attachment"]["DeleteOnTermination"] is True
    me(detach_network_interface, AttachmentId=attachment)
    assert openstack.named(interface, "ports")["device_id"] == ""
    assert _shown(me, interface)["Status"] == "available"
    assert "Attachment" not in _shown(me, interface)
    assert code_of(me, detach_network_interface, AttachmentId=attachment) == (
        "InvalidAttachmentID.NotFound"
    )


def test_a_detachment_is_shown_until_neutron_is_done(
    openstack: Ports, me: Caller, place: Place
) -> None:
    openstack.image()
    instance = _instance(openstack, me)
    interface = _make(me, place)["NetworkInterfaceId"]
    me(attach_network_interface, NetworkInterfaceId=interface, InstanceId=instance, DeviceIndex=1)
    port = openstack.named(interface, "ports")
    held = dict(port)
    me(detach_network_interface, AttachmentId=ids.derive(interface, "eni-attach"))
    port.update(device_id=held["device_id"], device_owner=held["device_owner"])
    assert _shown(me, interface)["Attachment"]["Status"] == "detaching"
    port.update(device_id="", device_owner="")
    shown = _shown(me, interface)
    assert shown["Status"] == "available"
    assert "Attachment" not in shown
    # Who waits for the end of the attachment asks for it by its id, for a while.
    attachment = ids.derive(interface, "eni-attach")
    waits = [{"Name": "attachment.attachment-id", "Values": [attachment]}]
    [row] = me(describe_network_interfaces, Filters=waits)["NetworkInterfaces"]
    assert (row["Attachment"]["Status"], row["Attachment"]["InstanceId"]) == ("detached", instance)
    later = me.context("DescribeNetworkInterfaces")
    later.now += timedelta(seconds=61)
    assert describe_network_interfaces(later, {"Filters": waits})["NetworkInterfaces"] == []
    me(delete_network_interface, NetworkInterfaceId=interface)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"DeviceIndex": None}, "MissingParameter"),
        ({"DeviceIndex": 100}, "InvalidParameterValue"),
        ({"DeviceIndex": 1}, "InvalidParameterValue"),  # it is taken
        ({"InstanceId": "i-00000001"}, "InvalidInstanceID.NotFound"),
        ({"InstanceId": "eni-00000001"}, "InvalidParameterValue"),
        ({"NetworkInterfaceId": "eni-00000001"}, "InvalidNetworkInterfaceID.NotFound"),
        ({"NetworkCardIndex": 1}, "UnsupportedOperation"),
    ],
)
def test_wrong_attachments(
    openstack: Ports, me: Caller, place: Place, request_: dict[str, Any], code: str
) -> None:
    openstack.image()
    instance = _instance(openstack, me)
    first, second = (_make(me, place)["NetworkInterfaceId"] for _ in range(2))
    good = {"NetworkInterfaceId": first, "InstanceId": instance, "DeviceIndex": 1}
    me(attach_network_interface, **good)
    request = {**good, "NetworkInterfaceId": second, "DeviceIndex": 2, **request_}
    assert code_of(me, attach_network_interface, **request) == code
    assert code_of(me, attach_network_interface, **{**good, "DeviceIndex": 3}) == (
        "InvalidParameterValue"
    )
    assert openstack.named(second, "ports")["device_id"] == ""


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        ((409, "Port 1 is still in use, host-1"), "InvalidParameterValue"),
        ((409, "Instance is in task_state x, host-1"), "IncorrectState"),
        ((400, "No, host-1"), "InvalidParameterValue"),
    ],
)
def test_what_nova_refuses_is_not_attached(
    openstack: Ports, me: Caller, place: Place, refusal: tuple[int, str], code: str
) -> None:
    openstack.image()
    instance = _instance(openstack, me)
    interface = _make(me, place)["NetworkInterfaceId"]
    openstack.refuse_attach = refusal
    asked = {"NetworkInterfaceId": interface, "InstanceId": instance, "DeviceIndex": 1}
    assert code_of(me, attach_network_interface, **asked) == code
    assert _shown(me, interface)["Status"] == "available"
    openstack.refuse_attach = None
    me(attach_network_interface, **asked)


def test_what_nova_did_by_itself_is_seen(openstack: Ports, me: Caller, place: Place) -> None:
    openstack.image()
    instance = _instance(openstack, me)
    [server] = openstack.servers
    interface = _make(me, place)["NetworkInterfaceId"]
    port = openstack.named(interface, "ports")
    port.update(device_id=server, device_owner="compute:nova")
    told = _shown(me, interface)["Attachment"]
    assert (told["InstanceId"], told["DeviceIndex"], told["Status"]) == (instance, 0, "attached")
    # It is noted: the next look asks Nova nothing.
    before = len(openstack.seen)
    _shown(me, interface)
    assert not [path for _, path in openstack.seen[before:] if "nova" in path]
    assert code_of(me, detach_network_interface, AttachmentId=told["AttachmentId"]) == (
        "OperationNotPermitted"
    )
    port.update(device_id="", device_owner="")
    shown = _shown(me, interface)
    assert shown["Status"] == "available"
    assert "Attachment" not in shown
