"""VPCs and subnets on a Neutron of dictionaries: made, shown, changed, deleted, never in halves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_neutron import Neutron
from tests.support.ec2_openstack import MINE, NEUTRON, Caller, code_of
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.security_groups.security_group import describe_security_groups
from trimaran.ec2.kinds.tag import describe_tags
from trimaran.ec2.kinds.vpcs.cidr_block import (
    associate_subnet_cidr_block,
    associate_vpc_cidr_block,
    disassociate_subnet_cidr_block,
    disassociate_vpc_cidr_block,
)
from trimaran.ec2.kinds.vpcs.subnet import delete_subnet, describe_subnets
from trimaran.ec2.kinds.vpcs.subnet_attribute import modify_subnet_attribute
from trimaran.ec2.kinds.vpcs.subnet_create import create_subnet
from trimaran.ec2.kinds.vpcs.vpc import delete_vpc, describe_vpcs
from trimaran.ec2.kinds.vpcs.vpc_attribute import (
    describe_vpc_attribute,
    modify_vpc_attribute,
    modify_vpc_tenancy,
)
from trimaran.ec2.kinds.vpcs.vpc_create import create_vpc
from trimaran.errors import TrimaranError
from trimaran.identity import count_calls

CLOUD = Neutron


def _tagged(kind: str, **tags: str) -> list[dict[str, Any]]:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": rows}]


def _vpc(me: Caller, cidr: str = "10.0.0.0/16", **request: Any) -> str:
    return str(me(create_vpc, CidrBlock=cidr, **request)["Vpc"]["VpcId"])


def _subnet(me: Caller, vpc: str, cidr: str = "10.0.1.0/24", **request: Any) -> str:
    made = me(create_subnet, VpcId=vpc, CidrBlock=cidr, **request)["Subnet"]
    return str(made["SubnetId"])


def _items(me: Caller) -> list[str]:
    kinds = ["vpc", "subnet", "rtb", "sg", "igw"]
    return sorted(item.id for item in me.db.read(lambda s: queries.items_of(s, MINE, kinds)))


# -- VPCs ----------------------------------------------------------------------


def test_a_vpc_is_a_router_a_main_table_and_a_default_group(openstack: Neutron, me: Caller) -> None:
    made = me(create_vpc, CidrBlock="10.0.0.0/16", TagSpecifications=_tagged("vpc", Name="a"))[
        "Vpc"
    ]
    vpc = made["VpcId"]
    assert made == {
        "VpcId": vpc,
        "OwnerId": MINE,
        "State": "available",
        "CidrBlock": "10.0.0.0/16",
        "CidrBlockAssociationSet": [
            {
                "AssociationId": ids.derive(vpc, "vpc-cidr-assoc"),
                "CidrBlock": "10.0.0.0/16",
                "CidrBlockState": {"State": "associated"},
            }
        ],
        "Ipv6CidrBlockAssociationSet": [],
        "DhcpOptionsId": "default",
        "InstanceTenancy": "default",
        "IsDefault": False,
        "Tags": [{"Key": "Name", "Value": "a"}],
    }
    named = {"Filters": [{"Name": "tag:Name", "Values": ["a"]}]}
    assert me(describe_vpcs, **named)["Vpcs"] == [made]
    assert openstack.named(vpc, "routers")["external_gateway_info"] is None
    assert openstack.named(vpc)["project_id"] == MINE
    [item] = me.db.read(lambda s: queries.items_by_ids(s, MINE, [vpc]))
    assert item.os_id == openstack.named(vpc, "routers")["id"]
    table = item.data.pop("route_table_id")
    assert item.data == {"cidr_block": "10.0.0.0/16", "is_default": False}
    [rtb] = me.db.read(lambda s: queries.items_by_ids(s, MINE, [table]))
    local = {"destination_cidr_block": "10.0.0.0/16", "gateway_id": None}
    assert (rtb.vpc_id, rtb.data) == (vpc, {"routes": [local]})
    [group] = me(describe_security_groups)["SecurityGroups"]
    assert (group["GroupId"], group["GroupName"]) == (ids.derive(vpc, "sg"), "default")


@pytest.mark.parametrize(
    ("cidr", "code"),
    [
        ("10.0.0.0/15", "InvalidVpc.Range"),
        ("10.0.0.0/29", "InvalidVpc.Range"),
        ("10.0.0.0/8", "InvalidVpc.Range"),
        ("224.1.0.0/16", "InvalidVpc.Range"),
        ("127.0.0.0/16", "InvalidVpc.Range"),
        ("fd00::/16", "InvalidParameterValue"),
        ("::ffff:10.0.0.0/112", "InvalidParameterValue"),
        ("10.0.0.0", "InvalidParameterValue"),
        ("10.0.0.256/16", "InvalidParameterValue"),
        ("10.0.0.0/33", "InvalidParameterValue"),
        ("٣.0.0.0/16", "InvalidParameterValue"),
        ("", "MissingParameter"),
    ],
)
def test_ranges_that_no_vpc_has(openstack: Neutron, me: Caller, cidr: str, code: str) -> None:
    assert code_of(me, create_vpc, CidrBlock=cidr) == code
    assert openstack.calls(NEUTRON) == []


def test_host_bits_are_masked_off(openstack: Neutron, me: Caller) -> None:
    made = me(create_vpc, CidrBlock="100.68.0.18/18")["Vpc"]
    assert made["CidrBlock"] == "100.68.0.0/18"
    subnet = me(create_subnet, VpcId=made["VpcId"], CidrBlock="100.68.3.9/24")["Subnet"]
    assert subnet["CidrBlock"] == "100.68.3.0/24"


@pytest.mark.parametrize(
    "request_",
    [
        {"Ipv4IpamPoolId": "ipam-pool-1"},
        {"AmazonProvidedIpv6CidrBlock": True},
        {"InstanceTenancy": "dedicated"},
    ],
)
def test_what_a_vpc_cannot_have_is_refused(
    openstack: Neutron, me: Caller, request_: dict[str, Any]
) -> None:
    assert code_of(me, create_vpc, CidrBlock="10.0.0.0/16", **request_) == "UnsupportedOperation"
    harmless: dict[str, Any] = {"AmazonProvidedIpv6CidrBlock": False, "InstanceTenancy": "default"}
    assert _vpc(me, **harmless)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("availabilityZoneId", "nova", True),
        ("private-dns-name-options-on-launch.hostname-type", "ip-name", True),
        ("private-dns-name-options-on-launch.enable-resource-name-dns-a-record", "false", True),
        ("private-dns-name-options-on-launch.enable-resource-name-dns-aaaa-record", "true", False),
        ("customer-owned-ipv4-pool", "*", False),
        ("enable-lni-at-device-index", "1", False),
    ],
)
def test_every_filter_of_subnets_that_aws_has(
    openstack: Neutron, me: Caller, name: str, value: str, found: bool
) -> None:
    subnet = _subnet(me, _vpc(me))
    shown = me(describe_subnets, Filters=[{"Name": name, "Values": [value]}])["Subnets"]
    assert [row["SubnetId"] for row in shown] == ([subnet] if found else [])


def test_there_are_no_more_ranges_than_the_first(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    more = {"VpcId": vpc, "CidrBlock": "10.1.0.0/16"}
    assert code_of(me, associate_vpc_cidr_block, **more) == "UnsupportedOperation"
    unknown = {**more, "VpcId": "vpc-00000001"}
    assert code_of(me, associate_vpc_cidr_block, **unknown) == "InvalidVpcID.NotFound"
    six = {"SubnetId": _subnet(me, vpc), "Ipv6CidrBlock": "fd00::/64"}
    assert code_of(me, associate_subnet_cidr_block, **six) == "UnsupportedOperation"
    unknown = {**six, "SubnetId": "subnet-00000001"}
    assert code_of(me, associate_subnet_cidr_block, **unknown) == "InvalidSubnetID.NotFound"
    [shown] = me(describe_vpcs)["Vpcs"]
    [first] = shown["CidrBlockAssociationSet"]
    take = disassociate_vpc_cidr_block
    assert code_of(me, take, AssociationId=first["AssociationId"]) == "OperationNotPermitted"
    code = "InvalidVpcCidrBlockAssociationID.NotFound"
    assert code_of(me, take, AssociationId="vpc-cidr-assoc-00000001") == code
    take = disassociate_subnet_cidr_block
    code = "InvalidSubnetCidrBlockAssociationID.NotFound"
    assert code_of(me, take, AssociationId="subnet-cidr-assoc-00000001") == code


def test_the_tenancy_of_a_vpc(openstack: Neutron, me: Caller) -> None:
    asked = {"VpcId": _vpc(me), "InstanceTenancy": "default"}
    assert me(modify_vpc_tenancy, **asked) == {"ReturnValue": True}
    assert code_of(me, modify_vpc_tenancy, **asked, DryRun=True) == "DryRunOperation"
    wrong = {**asked, "InstanceTenancy": "dedicated"}
    assert code_of(me, modify_vpc_tenancy, **wrong) == "InvalidParameterValue"
    unknown = {**asked, "VpcId": "vpc-00000001"}
    assert code_of(me, modify_vpc_tenancy, **unknown) == "InvalidVpcID.NotFound"


def test_a_dry_run_makes_nothing(openstack: Neutron, me: Caller) -> None:
    assert code_of(me, create_vpc, CidrBlock="10.0.0.0/16", DryRun=True) == "DryRunOperation"
    assert openstack.calls(NEUTRON) == []


@pytest.mark.parametrize("what", ["routers", "groups"])
def test_a_quota_leaves_nothing(openstack: Neutron, me: Caller, what: str) -> None:
    before = openstack.left()
    openstack.most["routers"] = 0 if what == "routers" else 9
    openstack.most_groups = 0 if what == "groups" else 9
    assert code_of(me, create_vpc, CidrBlock="10.0.0.0/16") == "VpcLimitExceeded"
    assert (openstack.left(), _items(me)) == (before, [])


def test_vpcs_of_others_and_unknown_filters(openstack: Neutron, me: Caller, them: Caller) -> None:
    vpc = _vpc(me)
    assert them(describe_vpcs)["Vpcs"] == []
    assert code_of(them, describe_vpcs, VpcIds=[vpc]) == "InvalidVpcID.NotFound"
    assert code_of(them, delete_vpc, VpcId=vpc) == "InvalidVpcID.NotFound"
    fake = [{"Name": "fake", "Values": ["x"]}]
    assert code_of(them, describe_vpcs, Filters=fake) == "InvalidParameterValue"
    assert code_of(me, describe_vpcs, VpcIds=["subnet-1"]) == "InvalidParameterValue"


def test_pages_and_filters(openstack: Neutron, me: Caller) -> None:
    made = sorted(_vpc(me, f"10.{number}.0.0/16") for number in range(7))
    first = me(describe_vpcs, MaxResults=5)
    rest = me(describe_vpcs, MaxResults=5, NextToken=first["NextToken"])
    shown = [row["VpcId"] for row in (*first["Vpcs"], *rest["Vpcs"])]
    assert (shown, rest["NextToken"]) == (made, None)
    for name in ("cidr", "cidr-block-association.cidr-block"):
        wanted = [{"Name": name, "Values": ["10.3.*"]}]
        [row] = me(describe_vpcs, Filters=wanted)["Vpcs"]
        assert row["CidrBlock"] == "10.3.0.0/16"
    pool = [{"Name": "ipv6-cidr-block-association.ipv6-pool", "Values": ["*"]}]
    assert me(describe_vpcs, Filters=pool)["Vpcs"] == []
    for name in ("isDefault", "is-default"):
        assert me(describe_vpcs, Filters=[{"Name": name, "Values": ["true"]}])["Vpcs"] == []


def test_a_vpc_whose_router_was_deleted_is_gone_with_what_lives_here_only(
    openstack: Neutron, me: Caller
) -> None:
    vpc, other = _vpc(me), _vpc(me, "10.1.0.0/16")
    del openstack.topology["routers"][openstack.named(vpc, "routers")["id"]]
    openstack.fail = {"/routers": 500}
    assert code_of(me, describe_vpcs) == "Unavailable"
    openstack.fail = {}
    assert [row["VpcId"] for row in me(describe_vpcs)["Vpcs"]] == [other]
    tables = me.db.read(lambda s: queries.items_of(s, MINE, ["rtb"]))
    assert [table.vpc_id for table in tables] == [other]


def test_attributes_of_a_vpc(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    defaults = {
        "enableDnsSupport": ("EnableDnsSupport", True),
        "enableDnsHostnames": ("EnableDnsHostnames", False),
        "enableNetworkAddressUsageMetrics": ("EnableNetworkAddressUsageMetrics", False),
    }
    for attribute, (member, value) in defaults.items():
        asked = {"VpcId": vpc, "Attribute": attribute}
        assert me(describe_vpc_attribute, **asked) == {"VpcId": vpc, member: {"Value": value}}
        me(modify_vpc_attribute, VpcId=vpc, **{member: {"Value": not value}})
        assert me(describe_vpc_attribute, **asked)[member] == {"Value": not value}
    assert code_of(me, describe_vpc_attribute, VpcId=vpc, Attribute="x") == "InvalidParameterValue"
    assert code_of(me, modify_vpc_attribute, VpcId=vpc) == "InvalidParameterCombination"


# -- subnets -------------------------------------------------------------------


def test_a_subnet_is_a_network_with_the_router_in_it(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    tags = _tagged("subnet", Name="s")
    made = me(create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24", TagSpecifications=tags)["Subnet"]
    assert made["AvailableIpAddressCount"] <= 253
    expected = {
        "VpcId": vpc,
        "State": "available",
        "CidrBlock": "10.0.1.0/24",
        "AvailabilityZone": "nova",
        "DefaultForAz": False,
        "MapPublicIpOnLaunch": False,
        "OwnerId": MINE,
        "Tags": [{"Key": "Name", "Value": "s"}],
    }
    assert {name: made[name] for name in expected} == expected
    assert made["SubnetArn"].endswith(f":{MINE}:subnet/{made['SubnetId']}")
    assert me(describe_subnets)["Subnets"] == [made]
    subnet = openstack.named(made["SubnetId"], "subnets")
    assert (subnet["cidr"], subnet["gateway_ip"]) == ("10.0.1.0/24", None)
    assert subnet["allocation_pools"] == [{"start": "10.0.1.2", "end": "10.0.1.254"}]
    [port] = openstack.all("ports")
    assert port["device_id"] == openstack.named(vpc, "routers")["id"]
    assert port["fixed_ips"][0]["ip_address"] == "10.0.1.1"
    # No way out: what is in the VPC, and the metadata service.
    assert openstack.routes(made["SubnetId"]) == {
        "10.0.0.0/16": "10.0.1.1",
        "169.254.169.254/32": "10.0.1.1",
    }


@pytest.mark.parametrize(
    ("cidr", "code"),
    [
        ("10.1.0.0/24", "InvalidSubnet.Range"),
        ("10.0.0.0/15", "InvalidSubnet.Range"),
        ("10.0.0.0/29", "InvalidSubnet.Range"),
        ("10.0.0.0/8", "InvalidSubnet.Range"),
        ("10.0.1.77/24", "InvalidSubnet.Conflict"),
        ("10.0.1.128/25", "InvalidSubnet.Conflict"),
        ("10.0.0.0/16", "InvalidSubnet.Conflict"),
        ("10.0.0.0/x", "InvalidParameterValue"),
        ("2001:db8::/64", "InvalidParameterValue"),
        ("::ffff:10.0.2.0/120", "InvalidParameterValue"),
    ],
)
def test_ranges_that_no_subnet_has(openstack: Neutron, me: Caller, cidr: str, code: str) -> None:
    vpc = _vpc(me)
    _subnet(me, vpc)
    before = openstack.left()
    assert code_of(me, create_subnet, VpcId=vpc, CidrBlock=cidr) == code
    assert openstack.left() == before


def test_a_range_that_only_neutron_knows_is_taken(openstack: Neutron, me: Caller) -> None:
    """Subnets of upstream have no range in their items."""
    vpc = _vpc(me)
    old = _subnet(me, vpc)
    data: dict[str, Any] = {}
    me.db.write(lambda s: queries.update_item(s, MINE, old, data=data))
    before = (openstack.left(), _items(me))
    refused = code_of(me, create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/25")
    assert refused == "InvalidSubnet.Conflict"
    assert (openstack.left(), _items(me)) == before
    [shown] = me(describe_subnets)["Subnets"]
    assert (shown["CidrBlock"], shown["AvailabilityZone"]) == ("10.0.1.0/24", "nova")


@pytest.mark.parametrize("what", ["networks", "subnets", "ports"])
def test_neutron_s_other_refusals_say_nothing_of_ranges(
    openstack: Neutron, me: Caller, what: str
) -> None:
    vpc = _vpc(me)
    before = (openstack.left(), _items(me))
    openstack.malformed = {what}
    refused = code_of(me, create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24")
    assert refused == "InvalidParameterValue"
    assert (openstack.left(), _items(me)) == before


@pytest.mark.parametrize("what", ["networks", "subnets", "ports"])
def test_a_quota_of_subnets_leaves_nothing(openstack: Neutron, me: Caller, what: str) -> None:
    vpc = _vpc(me)
    before = (openstack.left(), _items(me))
    openstack.most[what] = len(openstack.all(what))
    assert code_of(me, create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24") == "SubnetLimitExceeded"
    assert (openstack.left(), _items(me)) == before


def test_free_addresses_are_counted_from_ports(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    subnet = _subnet(me, vpc, "10.0.1.0/28")
    network = openstack.named(subnet, "networks")["id"]
    [shown] = me(describe_subnets)["Subnets"]
    assert shown["AvailableIpAddressCount"] == 16 - 2 - 1 - 1
    openstack.port(network, "10.0.1.2", device_owner="network:dhcp")
    [shown] = me(describe_subnets)["Subnets"]
    assert shown["AvailableIpAddressCount"] == 16 - 2 - 2
    for number in range(3, 15):
        openstack.port(network, f"10.0.1.{number}")
    [shown] = me(describe_subnets)["Subnets"]
    assert shown["AvailableIpAddressCount"] == 0


def test_attributes_of_a_subnet(openstack: Neutron, me: Caller) -> None:
    subnet = _subnet(me, _vpc(me))
    me(modify_subnet_attribute, SubnetId=subnet, MapPublicIpOnLaunch={"Value": True})
    [shown] = me(describe_subnets, SubnetIds=[subnet])["Subnets"]
    assert shown["MapPublicIpOnLaunch"] is True
    wanted = [{"Name": "map-public-ip-on-launch", "Values": ["true"]}]
    assert me(describe_subnets, Filters=wanted)["Subnets"] == [shown]
    me(modify_subnet_attribute, SubnetId=subnet, AssignIpv6AddressOnCreation={"Value": False})
    refused = {"AssignIpv6AddressOnCreation": {"Value": True}}
    assert (
        code_of(me, modify_subnet_attribute, SubnetId=subnet, **refused) == "UnsupportedOperation"
    )
    assert code_of(me, modify_subnet_attribute, SubnetId=subnet) == "InvalidParameterCombination"


def test_a_subnet_that_neutron_lost_is_gone(openstack: Neutron, me: Caller) -> None:
    subnet = _subnet(me, _vpc(me))
    openstack.topology["subnets"].clear()
    assert code_of(me, describe_subnets, SubnetIds=[subnet]) == "InvalidSubnetID.NotFound"
    assert me(describe_subnets)["Subnets"] == []


# -- deletes in every wrong order ----------------------------------------------


def test_what_is_used_is_not_deleted_and_stays_whole(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    subnet = _subnet(me, vpc)
    before = (openstack.left(), _items(me))
    assert code_of(me, delete_vpc, VpcId=vpc) == "DependencyViolation"
    foreign = openstack.port(openstack.named(subnet, "networks")["id"], "10.0.1.77", name="x")
    assert code_of(me, delete_subnet, SubnetId=subnet) == "DependencyViolation"
    del openstack.topology["ports"][foreign["id"]]
    interface = NewItem("eni", None, MINE, {"subnet_id": subnet}, vpc, id="eni-00000001")
    me.db.write(lambda s: queries.add_items(s, [interface], ids.mint))
    assert code_of(me, delete_subnet, SubnetId=subnet) == "DependencyViolation"
    assert (openstack.left(), _items(me)) == before
    me.db.write(lambda s: queries.delete_items(s, MINE, ["eni-00000001"]))
    me(delete_subnet, SubnetId=subnet)
    me(delete_vpc, VpcId=vpc)
    empty = {name: set[str]() for name in before[0]}
    assert (openstack.left(), _items(me)) == (empty, [])


def test_a_port_that_comes_in_the_last_moment_keeps_its_subnet(
    openstack: Neutron, me: Caller
) -> None:
    subnet = _subnet(me, _vpc(me))
    network = openstack.named(subnet, "networks")["id"]

    def come(method: str, path: str) -> None:
        if method == "DELETE" and path.endswith(network):
            openstack.port(network, "10.0.1.77", name="x")

    openstack.before = come
    assert code_of(me, delete_subnet, SubnetId=subnet) == "DependencyViolation"
    openstack.before = lambda method, path: None
    [shown] = me(describe_subnets)["Subnets"]
    assert shown["SubnetId"] == subnet
    routers = [row for row in openstack.all("ports") if row["device_owner"]]
    assert [row["fixed_ips"][0]["ip_address"] for row in routers] == ["10.0.1.1"]
    assert run_all(me) == 0, "nothing is left to do"


def test_a_router_that_somebody_else_uses_keeps_its_vpc(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    router = openstack.named(vpc, "routers")["id"]
    network = openstack.put("networks")["id"]
    openstack.put("subnets", network_id=network, cidr="192.0.2.0/24")
    openstack.port(network, "192.0.2.1", device_id=router, device_owner="network:router_interface")
    assert code_of(me, delete_vpc, VpcId=vpc) == "DependencyViolation"
    assert [row["VpcId"] for row in me(describe_vpcs)["Vpcs"]] == [vpc]
    assert openstack.named(vpc)["name"] == vpc
    assert run_all(me) == 0, "nothing is left to do"


def test_tags_go_with_what_they_are_on(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me, TagSpecifications=_tagged("vpc", a="b"))
    me(delete_vpc, VpcId=vpc)
    assert me(describe_tags)["Tags"] == []
    assert code_of(me, delete_vpc, VpcId=vpc) == "InvalidVpcID.NotFound"


# -- when a process dies --------------------------------------------------------

CREATES = [
    (Network, name)
    for name in (
        "create_router",
        "create_security_group",
        "create_network",
        "create_subnet",
        "create_port",
        "add_router_interface",
        "remove_router_interface",
        "delete_router",
        "delete_network",
        "delete_security_group",
    )
] + [(Database, "write")]


def _dies(me: Caller, at: int, action: Any, **request: Any) -> bool:
    """Whether the action died at this moment."""
    deaths = Deaths(at)
    with dying(deaths, *CREATES):
        try:
            me(action, **request)
        except Death:
            return True
        except TrimaranError:
            assert not deaths.fired
            raise
    # In another thread, a death is the thread's only.
    return deaths.fired


@pytest.mark.parametrize("at", range(8))
def test_a_vpc_whose_maker_died_is_there_or_not_at_all(
    openstack: Neutron, me: Caller, at: int
) -> None:
    before = openstack.left()
    try:
        assert _dies(me, at, create_vpc, CidrBlock="10.0.0.0/16"), "there are more moments"
    finally:
        run_all(me)
    vpcs = [row["VpcId"] for row in me(describe_vpcs)["Vpcs"]]
    if vpcs:
        me(delete_vpc, VpcId=vpcs[0])
    assert (openstack.left(), _items(me)) == (before, [])


@pytest.mark.parametrize("at", range(12))
def test_a_subnet_whose_maker_died_is_there_or_not_at_all(
    openstack: Neutron, me: Caller, at: int
) -> None:
    vpc = _vpc(me)
    before = (openstack.left(), _items(me))
    assert _dies(me, at, create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24")
    run_all(me)
    for row in me(describe_subnets)["Subnets"]:
        assert openstack.routes(row["SubnetId"])
        me(delete_subnet, SubnetId=row["SubnetId"])
    assert (openstack.left(), _items(me)) == before


@pytest.mark.parametrize("at", range(8))
def test_the_deletion_of_a_subnet_is_completed(openstack: Neutron, me: Caller, at: int) -> None:
    vpc = _vpc(me)
    before = (openstack.left(), _items(me))
    subnet = _subnet(me, vpc)
    assert _dies(me, at, delete_subnet, SubnetId=subnet)
    run_all(me)
    if me(describe_subnets)["Subnets"]:
        assert at == 0, "the deletion had begun"
        me(delete_subnet, SubnetId=subnet)
    assert (openstack.left(), _items(me)) == before


@pytest.mark.parametrize("at", range(8))
def test_the_deletion_of_a_vpc_is_completed(openstack: Neutron, me: Caller, at: int) -> None:
    before = openstack.left()
    vpc = _vpc(me)
    assert _dies(me, at, delete_vpc, VpcId=vpc)
    run_all(me)
    if me(describe_vpcs)["Vpcs"]:
        assert at == 0, "the deletion had begun"
        me(delete_vpc, VpcId=vpc)
    assert (openstack.left(), _items(me)) == (before, [])


def test_a_slow_maker_whose_work_was_undone_takes_its_objects_back(
    openstack: Neutron, me: Caller
) -> None:
    before = openstack.left()
    done: list[int] = []

    def undo(method: str, path: str) -> None:
        if (method, path) == ("POST", f"{NEUTRON}/routers"):
            openstack.before = lambda method, path: None
            done.append(run_all(me))

    openstack.before = undo
    assert code_of(me, create_vpc, CidrBlock="10.0.0.0/16") == "Unavailable"
    assert done == [1]
    assert (openstack.left(), _items(me)) == (before, [])


# -- speed ----------------------------------------------------------------------


def test_describes_make_a_constant_number_of_calls(openstack: Neutron, me: Caller) -> None:
    vpc = _vpc(me)
    for number in range(3):
        _subnet(me, vpc, f"10.0.{number}.0/24")
    counted = []
    for more in (20, 40):
        with count_calls() as vpcs:
            me(describe_vpcs)
        with count_calls() as subnets:
            me(describe_subnets)
        counted.append((vpcs.total, subnets.total))
        for number in range(12):
            _vpc(me, f"10.{number}.0.0/16")
            _subnet(me, vpc, f"10.0.{number + more}.0/24")
    assert counted == [(1, 2), (1, 2)]
