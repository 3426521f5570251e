"""What this cloud has none of: empty lists, but no nonsense is taken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_openstack import MINE, Caller
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds import nothing
from trimaran.ec2.kinds.vpcs import egress_only_gateway, nothing_network
from trimaran.ec2.protocol import model
from trimaran.ec2.protocol.errors import EC2Error, to_ec2
from trimaran.ec2.protocol.render import render
from trimaran.errors import TrimaranError

VPC = "vpc-0000000a"
_NAMES = {model.snake_case(name): name for name in model.load().names}


def _actions() -> dict[str, Any]:
    found = {}
    for module in (nothing, nothing_network, egress_only_gateway):
        for attribute, function in vars(module).items():
            name = _NAMES.get(attribute)
            if name and name.startswith("Describe") and function.__module__ == module.__name__:
                found[name] = function
    return found


ACTIONS = _actions()
#: Those that ask for something that does exist.
WANTING = {"DescribeStaleSecurityGroups": "VpcId", "DescribeSecurityGroupReferences": "GroupId"}


def test_the_whole_set_is_there() -> None:
    wanted = (
        "NatGateways EgressOnlyInternetGateways VpcEndpoints VpcPeeringConnections "
        "TransitGateways ManagedPrefixLists PrefixLists ClassicLinkInstances VpcClassicLink "
        "FlowLogs PlacementGroups SpotInstanceRequests ReservedInstances Hosts "
        "CapacityReservations IamInstanceProfileAssociations LaunchTemplates"
    )
    assert {f"Describe{name}" for name in wanted.split()} <= set(ACTIONS)


@pytest.mark.parametrize("name", sorted(set(ACTIONS) - set(WANTING)))
def test_an_empty_list(me: Caller, name: str) -> None:
    action, operation = ACTIONS[name], model.load().operation(name)
    assert operation is not None
    assert operation.output is not None
    answer = action(me.context(name), {})
    assert [value for value in answer.values() if value] == []
    # The list's name is one of the answer's.
    assert set(answer) <= set(operation.output.members)
    assert render(operation, answer, version="2016-11-15", request_id="req-1")


@pytest.mark.parametrize("name", sorted(set(ACTIONS) - set(WANTING)))
def test_what_is_asked_for_does_not_exist(me: Caller, name: str) -> None:
    operation = model.load().operation(name)
    assert operation is not None
    assert operation.input is not None
    asking = {
        member: shape
        for member, shape in operation.input.members.items()
        if member.endswith(("Ids", "IdSet", "GroupNames", "TemplateNames", "PublicIps", "PathId"))
    }
    for parameter, member in asking.items():
        value: Any = ["vpc-00000001"] if member.shape.kind == "list" else "x-1"
        with pytest.raises(EC2Error) as caught:
            ACTIONS[name](me.context(name), {parameter: value})
        code = caught.value.code
        assert code.startswith("Invalid") or code == "NatGatewayNotFound"


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_filters_and_pages_are_checked(me: Caller, name: str) -> None:
    operation = model.load().operation(name)
    assert operation is not None
    assert operation.input is not None
    members = operation.input.members
    member = next((each for each in ("Filters", "Filter") if each in members), None)
    action = ACTIONS[name]

    def code(**request: Any) -> str:
        with pytest.raises(TrimaranError) as caught:
            action(me.context(name), request)
        return to_ec2(caught.value).code

    if member:
        assert code(**{member: [{"Name": "x"}]}) == "InvalidFilter"
        assert code(**{member: [{"Values": ["x"]}]}) == "InvalidFilter"
    if "MaxResults" in members:
        assert code(MaxResults=3) == "InvalidParameterValue"
        assert code(NextToken="garbage") == "InvalidNextToken"


@pytest.mark.parametrize(
    ("name", "known", "unknown"),
    [
        ("DescribeNatGateways", ["vpc-id", "state", "tag:a", "tag-key"], ["fake", "vpc_id"]),
        ("DescribeVpcEndpoints", ["service-name", "vpc-endpoint-state"], ["state"]),
        ("DescribePrefixLists", ["prefix-list-name"], ["tag:a", "owner-id"]),
        ("DescribeManagedPrefixLists", ["owner-id", "tag-key"], ["name"]),
        ("DescribeIpams", ["anything"], []),
        ("DescribeVpcClassicLink", ["is-classic-link-enabled", "tag:a"], ["vpc-id"]),
        ("DescribeHosts", ["state", "tag-key"], ["host"]),
    ],
)
def test_filters_by_name(me: Caller, name: str, known: list[str], unknown: list[str]) -> None:
    member = "Filter" if name in ("DescribeNatGateways", "DescribeHosts") else "Filters"
    for each in known:
        asked = {member: [{"Name": each, "Values": ["x"]}]}
        assert not any(ACTIONS[name](me.context(name), asked).values())
    for each in unknown:
        with pytest.raises(EC2Error) as caught:
            ACTIONS[name](me.context(name), {member: [{"Name": each, "Values": ["x"]}]})
        assert caught.value.code == "InvalidParameterValue"


def _put(me: Caller, item_id: str, **fields: Any) -> None:
    new = NewItem(ids.kind_of(item_id), None, MINE, id=item_id, **fields)
    me.db.write(lambda s: queries.add_items(s, [new], ids.mint))


def _code(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        me(action, **request)
    return caught.value.code


def test_what_is_about_a_vpc(me: Caller) -> None:
    _put(me, VPC, data={"cidr_block": "10.0.0.0/16"})
    stale = nothing_network.describe_stale_security_groups
    assert me(stale, VpcId=VPC) == {"StaleSecurityGroupSet": []}
    assert _code(me, stale, VpcId="vpc-00000099") == "InvalidVpcID.NotFound"
    for action, shown in (
        (nothing_network.describe_vpc_classic_link, "ClassicLinkEnabled"),
        (nothing_network.describe_vpc_classic_link_dns_support, "ClassicLinkDnsSupported"),
    ):
        [row] = me(action)["Vpcs"]
        assert (row["VpcId"], row[shown]) == (VPC, False)
        assert me(action, VpcIds=[VPC])["Vpcs"] == [row]
        assert _code(me, action, VpcIds=["vpc-00000099"]) == "InvalidVpcID.NotFound"


def test_security_group_references(me: Caller) -> None:
    action = nothing_network.describe_security_group_references
    assert _code(me, action) == "MissingParameter"
    assert _code(me, action, GroupId=["sg-00000099"]) == "InvalidGroup.NotFound"


def test_egress_only_gateways(me: Caller) -> None:
    _put(me, VPC, data={"cidr_block": "10.0.0.0/16"})
    make = egress_only_gateway.create_egress_only_internet_gateway
    assert _code(me, make, VpcId=VPC) == "UnsupportedOperation"
    assert _code(me, make, VpcId="vpc-00000099") == "InvalidVpcID.NotFound"
    delete = egress_only_gateway.delete_egress_only_internet_gateway
    assert _code(me, delete, EgressOnlyInternetGatewayId="eigw-1") == (
        "InvalidEgressOnlyInternetGatewayId.NotFound"
    )
    assert _code(me, delete) == "MissingParameter"


def test_encryption_by_default(me: Caller) -> None:
    assert me(nothing.get_ebs_encryption_by_default) == {"EbsEncryptionByDefault": False}
