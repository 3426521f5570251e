"""Route tables, internet gateways and DHCP options, and what Neutron is told of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_neutron import Neutron
from tests.support.ec2_openstack import MINE, NEUTRON, Caller, code_of
from tests.support.ec2_vpn import Vpn
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.models.ec2 import ItemRow
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.vpcs.dhcp_options import (
    associate_dhcp_options,
    create_dhcp_options,
    delete_dhcp_options,
    describe_dhcp_options,
)
from trimaran.ec2.kinds.vpcs.internet_gateway import (
    attach_internet_gateway,
    create_internet_gateway,
    delete_internet_gateway,
    describe_internet_gateways,
    detach_internet_gateway,
)
from trimaran.ec2.kinds.vpcs.route import create_route, delete_route, replace_route
from trimaran.ec2.kinds.vpcs.route_table import (
    create_route_table,
    delete_route_table,
    describe_route_tables,
    disable_vgw_route_propagation,
    enable_vgw_route_propagation,
)
from trimaran.ec2.kinds.vpcs.route_table_association import (
    associate_route_table,
    disassociate_route_table,
    replace_route_table_association,
)
from trimaran.ec2.kinds.vpcs.subnet_create import create_subnet
from trimaran.ec2.kinds.vpcs.vpc import describe_vpcs
from trimaran.ec2.kinds.vpcs.vpc_create import create_vpc
from trimaran.identity import count_calls

CLOUD = Neutron

LOCAL = {
    "DestinationCidrBlock": "10.0.0.0/16",
    "GatewayId": "local",
    "Origin": "CreateRouteTable",
    "State": "active",
}
ANYWHERE = "0.0.0.0/0"


@pytest.fixture
def vpc(openstack: Neutron, me: Caller) -> str:
    return str(me(create_vpc, CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])


@pytest.fixture
def subnet(vpc: str, me: Caller) -> str:
    made = me(create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]
    return str(made["SubnetId"])


@pytest.fixture
def igw(openstack: Neutron, me: Caller) -> str:
    return str(me(create_internet_gateway)["InternetGateway"]["InternetGatewayId"])


def _main(me: Caller, vpc: str) -> str:
    wanted = [
        {"Name": "association.main", "Values": ["true"]},
        {"Name": "vpc-id", "Values": [vpc]},
    ]
    [table] = me(describe_route_tables, Filters=wanted)["RouteTables"]
    return str(table["RouteTableId"])


def _table(me: Caller, vpc: str, **request: Any) -> str:
    return str(me(create_route_table, VpcId=vpc, **request)["RouteTable"]["RouteTableId"])


def _routes(me: Caller, table: str) -> list[dict[str, Any]]:
    [shown] = me(describe_route_tables, RouteTableIds=[table])["RouteTables"]
    rows: list[dict[str, Any]] = shown["Routes"]
    return rows


def _add(me: Caller, *new: NewItem) -> None:
    me.db.write(lambda s: queries.add_items(s, list(new), ids.mint))


def _interface(me: Caller, vpc: str, number: int, address: str, **data: Any) -> str:
    item = NewItem(
        "eni",
        f"port-{number}",
        MINE,
        {"private_ip_address": address, **data},
        vpc,
        id=f"eni-{number:08x}",
    )
    _add(me, item)
    return item.id


# -- internet gateways -----------------------------------------------------------


def test_a_gateway_gives_its_vpc_a_way_out(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    empty = {"InternetGatewayId": igw, "OwnerId": MINE, "Attachments": [], "Tags": []}
    assert me(describe_internet_gateways)["InternetGateways"] == [empty]
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    router = openstack.named(vpc, "routers")
    assert router["external_gateway_info"] == {"network_id": openstack.external["id"]}
    wanted = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    [shown] = me(describe_internet_gateways, Filters=wanted)["InternetGateways"]
    assert shown["Attachments"] == [{"VpcId": vpc, "State": "available"}]
    table = _main(me, vpc)
    me(create_route, RouteTableId=table, DestinationCidrBlock=ANYWHERE, GatewayId=igw)
    assert openstack.routes(subnet) == {"10.0.0.0/16": "10.0.1.1", ANYWHERE: "10.0.1.1"}
    # Detached: the route is a black hole, and guests have no default route.
    me(detach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    assert router["external_gateway_info"] is None
    [_, route] = _routes(me, table)
    assert (route["GatewayId"], route["State"]) == (igw, "blackhole")
    assert ANYWHERE not in openstack.routes(subnet)
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    assert openstack.routes(subnet)[ANYWHERE] == "10.0.1.1"
    me(detach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    me(delete_internet_gateway, InternetGatewayId=igw)
    assert me(describe_internet_gateways)["InternetGateways"] == []


def test_gateways_in_every_wrong_order(openstack: Neutron, me: Caller, vpc: str, igw: str) -> None:
    pair = {"InternetGatewayId": igw, "VpcId": vpc}
    assert code_of(me, detach_internet_gateway, **pair) == "Gateway.NotAttached"
    me(attach_internet_gateway, **pair)
    assert code_of(me, attach_internet_gateway, **pair) == "Resource.AlreadyAssociated"
    second = me(create_internet_gateway)["InternetGateway"]["InternetGatewayId"]
    other = {"InternetGatewayId": second, "VpcId": vpc}
    assert code_of(me, attach_internet_gateway, **other) == "InvalidParameterValue"
    assert code_of(me, delete_internet_gateway, InternetGatewayId=igw) == "DependencyViolation"
    unknown = {"InternetGatewayId": "igw-00000001"}
    gone = "InvalidInternetGatewayID.NotFound"
    assert code_of(me, delete_internet_gateway, **unknown) == gone
    assert code_of(me, attach_internet_gateway, **unknown, VpcId=vpc) == gone
    nowhere = {"InternetGatewayId": second, "VpcId": "vpc-00000001"}
    assert code_of(me, attach_internet_gateway, **nowhere) == "InvalidVpcID.NotFound"


@pytest.mark.parametrize("networks", [0, 2])
def test_an_external_network_that_is_none_or_ambiguous(
    openstack: Neutron, me: Caller, vpc: str, igw: str, networks: int
) -> None:
    del openstack.topology["networks"][openstack.external["id"]]
    for _ in range(networks):
        openstack.put("networks", project_id="operator", external=True)
    pair = {"InternetGatewayId": igw, "VpcId": vpc}
    assert code_of(me, attach_internet_gateway, **pair) == "Unsupported"
    [shown] = me(describe_internet_gateways)["InternetGateways"]
    assert shown["Attachments"] == []


def test_mapped_addresses_keep_the_gateway(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    pair = {"InternetGatewayId": igw, "VpcId": vpc}
    interface = _interface(me, vpc, 1, "10.0.1.7")
    address = NewItem(
        "eipalloc", None, MINE, {"network_interface_id": interface}, id="eipalloc-00000001"
    )
    _add(me, address)
    assert code_of(me, detach_internet_gateway, **pair) == "DependencyViolation"
    me.db.write(lambda s: queries.delete_items(s, MINE, [address.id]))
    # An address that was mapped in Neutron only.
    port = openstack.port(openstack.named(subnet, "networks")["id"], "10.0.1.7")
    openstack.put("floatingips", port_id=port["id"])
    assert code_of(me, detach_internet_gateway, **pair) == "DependencyViolation"
    [shown] = me(describe_internet_gateways)["InternetGateways"]
    assert shown["Attachments"] == [{"VpcId": vpc, "State": "available"}]
    run_all(me)
    assert openstack.named(vpc, "routers")["external_gateway_info"] is not None


# -- route tables ----------------------------------------------------------------


def test_a_new_table_has_the_local_route(openstack: Neutron, me: Caller, vpc: str) -> None:
    tags = [{"ResourceType": "route-table", "Tags": [{"Key": "k", "Value": "v"}]}]
    asked = {"VpcId": vpc, "ClientToken": "t", "TagSpecifications": tags}
    made = me(create_route_table, **asked)["RouteTable"]
    assert made == {
        "RouteTableId": made["RouteTableId"],
        "VpcId": vpc,
        "OwnerId": MINE,
        "Routes": [LOCAL],
        "Associations": [],
        "PropagatingVgws": [],
        "Tags": [{"Key": "k", "Value": "v"}],
    }
    assert me(create_route_table, **asked)["RouteTable"] == made
    mismatch = {"VpcId": vpc, "ClientToken": "t"}
    assert code_of(me, create_route_table, **mismatch) == "IdempotentParameterMismatch"
    assert len(me(describe_route_tables)["RouteTables"]) == 2


def test_the_main_table_is_associated_with_the_vpc(
    openstack: Neutron, me: Caller, vpc: str
) -> None:
    main = _main(me, vpc)
    [shown] = me(describe_route_tables, RouteTableIds=[main])["RouteTables"]
    assert shown["Associations"] == [
        {
            "RouteTableAssociationId": ids.derive(vpc, "rtbassoc"),
            "RouteTableId": main,
            "AssociationState": {"State": "associated"},
            "Main": True,
        }
    ]
    assert code_of(me, delete_route_table, RouteTableId=main) == "DependencyViolation"
    association = ids.derive(vpc, "rtbassoc")
    refused = code_of(me, disassociate_route_table, AssociationId=association)
    assert refused == "InvalidParameterValue"


def test_subnets_use_their_table_or_the_main_one(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    table = _table(me, vpc)
    me(create_route, RouteTableId=table, DestinationCidrBlock=ANYWHERE, GatewayId=igw)
    assert ANYWHERE not in openstack.routes(subnet)
    made = me(associate_route_table, RouteTableId=table, SubnetId=subnet)
    assert made["AssociationId"] == ids.derive(subnet, "rtbassoc")
    assert openstack.routes(subnet)[ANYWHERE] == "10.0.1.1"
    wanted = [{"Name": "association.subnet-id", "Values": [subnet]}]
    [shown] = me(describe_route_tables, Filters=wanted)["RouteTables"]
    [association] = shown["Associations"]
    assert (association["SubnetId"], association["Main"]) == (subnet, False)
    assert (
        code_of(me, associate_route_table, RouteTableId=table, SubnetId=subnet)
        == "Resource.AlreadyAssociated"
    )
    assert code_of(me, delete_route_table, RouteTableId=table) == "DependencyViolation"
    other = _table(me, vpc)
    replaced = me(
        replace_route_table_association,
        AssociationId=made["AssociationId"],
        RouteTableId=other,
    )
    assert replaced["NewAssociationId"] == made["AssociationId"]
    assert ANYWHERE not in openstack.routes(subnet)
    me(disassociate_route_table, AssociationId=made["AssociationId"])
    gone = code_of(me, disassociate_route_table, AssociationId=made["AssociationId"])
    assert gone == "InvalidAssociationID.NotFound"
    # Another main table changes what all others use.
    main = ids.derive(vpc, "rtbassoc")
    me(replace_route_table_association, AssociationId=main, RouteTableId=table)
    assert openstack.routes(subnet)[ANYWHERE] == "10.0.1.1"
    assert _main(me, vpc) == table


def test_tables_of_another_vpc_are_refused(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    elsewhere = str(me(create_vpc, CidrBlock="10.5.0.0/16")["Vpc"]["VpcId"])
    table = _table(me, elsewhere)
    pair = {"RouteTableId": table, "SubnetId": subnet}
    assert code_of(me, associate_route_table, **pair) == "InvalidParameterValue"
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    route = {"RouteTableId": table, "DestinationCidrBlock": ANYWHERE}
    assert code_of(me, create_route, **route, GatewayId=igw) == "InvalidParameterValue"
    interface = _interface(me, vpc, 1, "10.0.1.7")
    refused = code_of(me, create_route, **route, NetworkInterfaceId=interface)
    assert refused == "InvalidParameterValue"
    main = ids.derive(vpc, "rtbassoc")
    replace = {"AssociationId": main, "RouteTableId": table}
    assert code_of(me, replace_route_table_association, **replace) == "InvalidParameterValue"


# -- routes ----------------------------------------------------------------------


def test_routes_that_there_cannot_be(openstack: Neutron, me: Caller, vpc: str, igw: str) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    table = _main(me, vpc)
    to = {"RouteTableId": table, "DestinationCidrBlock": ANYWHERE}
    inside = {"RouteTableId": table, "DestinationCidrBlock": "10.0.5.0/24", "GatewayId": igw}
    assert code_of(me, create_route, **inside) == "InvalidParameterValue"
    assert code_of(me, create_route, **to) == "MissingParameter"
    both = {"GatewayId": igw, "InstanceId": "i-00000001"}
    assert code_of(me, create_route, **to, **both) == "InvalidParameterCombination"
    peer = {"VpcPeeringConnectionId": "pcx-00000001"}
    assert code_of(me, create_route, **to, **peer) == "InvalidRequest"
    assert code_of(me, create_route, **to, NatGatewayId="nat-1") == "UnsupportedOperation"
    ipv6 = {"RouteTableId": table, "DestinationIpv6CidrBlock": "::/0", "GatewayId": igw}
    assert code_of(me, create_route, **ipv6) == "UnsupportedOperation"
    vgw = "vgw-00000001"
    assert code_of(me, create_route, **to, GatewayId=vgw) == "InvalidGatewayID.NotFound"
    gone = {
        "GatewayId": ("igw-00000001", "InvalidInternetGatewayID.NotFound"),
        "InstanceId": ("i-00000001", "InvalidInstanceID.NotFound"),
        "NetworkInterfaceId": ("eni-00000009", "InvalidNetworkInterfaceID.NotFound"),
    }
    for parameter, (target, code) in gone.items():
        assert code_of(me, create_route, **to, **{parameter: target}) == code
    bad = {**to, "DestinationCidrBlock": "10.0.0.0/99", "GatewayId": igw}
    assert code_of(me, create_route, **bad) == "InvalidParameterValue"
    local = {"RouteTableId": table, "DestinationCidrBlock": "10.0.0.0/16"}
    assert code_of(me, delete_route, **local) == "InvalidParameterValue"
    assert code_of(me, delete_route, **to) == "InvalidRoute.NotFound"
    assert code_of(me, replace_route, **to, GatewayId=igw) == "InvalidRoute.NotFound"
    assert _routes(me, table) == [LOCAL]


def test_the_same_route_twice_and_another_target(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    table = _main(me, vpc)
    to = {"RouteTableId": table, "DestinationCidrBlock": ANYWHERE}
    for _ in range(2):
        assert me(create_route, **to, GatewayId=igw) == {"Return": True}
    interface = _interface(me, vpc, 1, "10.0.1.7")
    refused = code_of(me, create_route, **to, NetworkInterfaceId=interface)
    assert refused == "RouteAlreadyExists"
    me(replace_route, **to, NetworkInterfaceId=interface)
    # Through a guest that routes: the others learn its address as their way out.
    assert openstack.routes(subnet)[ANYWHERE] == "10.0.1.7"
    masked = {"RouteTableId": table, "DestinationCidrBlock": "192.168.7.9/24"}
    me(create_route, **masked, GatewayId=igw)
    assert openstack.routes(subnet)["192.168.7.0/24"] == "10.0.1.1"
    me(delete_route, **masked)
    me(delete_route, **to)
    assert _routes(me, table) == [LOCAL]
    assert set(openstack.routes(subnet)) == {"10.0.0.0/16", "169.254.169.254/32"}


def test_a_route_to_an_instance(openstack: Neutron, me: Caller, vpc: str, subnet: str) -> None:
    table = _main(me, vpc)
    server = openstack.server(status="ACTIVE")
    _add(me, NewItem("i", server["id"], MINE, {}, vpc, id="i-00000001"))
    to = {"RouteTableId": table, "DestinationCidrBlock": "192.168.0.0/16"}
    assert code_of(me, create_route, **to, InstanceId="i-00000001") == "InvalidParameterValue"
    first = _interface(me, vpc, 1, "10.0.1.7", instance_id="i-00000001")
    me(create_route, **to, InstanceId="i-00000001")
    [_, route] = _routes(me, table)
    assert route == {
        "DestinationCidrBlock": "192.168.0.0/16",
        "NetworkInterfaceId": first,
        "InstanceId": "i-00000001",
        "InstanceOwnerId": MINE,
        "Origin": "CreateRoute",
        "State": "active",
    }
    server["status"] = "SHUTOFF"
    assert _routes(me, table)[1]["State"] == "blackhole"
    _interface(me, vpc, 2, "10.0.1.8", instance_id="i-00000001")
    again = {**to, "DestinationCidrBlock": "192.0.2.0/24", "InstanceId": "i-00000001"}
    assert code_of(me, create_route, **again) == "InvalidInstanceID"
    # A vanished target is a black hole, to guests as well once something is told.
    me.db.write(lambda s: queries.delete_items(s, MINE, [first]))
    assert _routes(me, table)[1]["State"] == "blackhole"
    me(associate_route_table, RouteTableId=_table(me, vpc), SubnetId=subnet)
    me(disassociate_route_table, AssociationId=ids.derive(subnet, "rtbassoc"))
    assert openstack.routes(subnet)["192.168.0.0/16"] == "127.0.0.1"


@pytest.mark.parametrize("openstack", [Vpn], indirect=True)
def test_routes_of_a_vpn_gateway_come_by_propagation(
    openstack: Neutron, me: Caller, vpc: str, subnet: str
) -> None:
    table = _main(me, vpc)
    both = {"RouteTableId": table, "GatewayId": "vgw-00000001"}
    missing = code_of(me, enable_vgw_route_propagation, **both)
    assert missing == "InvalidVpnGatewayID.NotFound"
    me(disable_vgw_route_propagation, **both)
    _add(me, NewItem("vgw", None, MINE, id="vgw-00000001"))
    assert code_of(me, enable_vgw_route_propagation, **both) == "Gateway.NotAttached"
    me.db.write(lambda s: queries.update_item(s, MINE, "vgw-00000001", vpc_id=vpc))
    outside = {"network_id": openstack.external["id"]}
    openstack.named(vpc, "routers")["external_gateway_info"] = outside
    connection = {"vpn_gateway_id": "vgw-00000001", "cidrs": ["192.168.9.0/24"]}
    _add(me, NewItem("vpn", None, MINE, connection, id="vpn-00000001"))
    me(enable_vgw_route_propagation, **both)
    [shown] = me(describe_route_tables, RouteTableIds=[table])["RouteTables"]
    assert shown["PropagatingVgws"] == [{"GatewayId": "vgw-00000001"}]
    assert shown["Routes"][1]["Origin"] == "EnableVgwRoutePropagation"
    assert openstack.routes(subnet)["192.168.9.0/24"] == "10.0.1.1"
    me(disable_vgw_route_propagation, **both)
    assert "192.168.9.0/24" not in openstack.routes(subnet)


@pytest.mark.parametrize("openstack", [Vpn], indirect=True)
def test_a_propagated_route_is_of_the_gateway_that_is_attached(
    openstack: Neutron, me: Caller, vpc: str
) -> None:
    table = _main(me, vpc)
    for number in ("1", "2"):
        gateway, tunnel = f"vgw-0000000{number}", f"vpn-0000000{number}"
        _add(me, NewItem("vgw", None, MINE, vpc_id=vpc, id=gateway))
        connection = {"vpn_gateway_id": gateway, "cidrs": [f"192.168.{number}.0/24"]}
        _add(me, NewItem("vpn", None, MINE, connection, id=tunnel))
        me(enable_vgw_route_propagation, RouteTableId=table, GatewayId=gateway)
        if number == "1":
            me.db.write(lambda s: queries.update_item(s, MINE, "vgw-00000001", vpc_id=None))
    [shown] = me(describe_route_tables, RouteTableIds=[table])["RouteTables"]
    [route] = [row for row in shown["Routes"] if row["Origin"] == "EnableVgwRoutePropagation"]
    assert (route["GatewayId"], route["DestinationCidrBlock"]) == ("vgw-00000002", "192.168.2.0/24")
    me.db.write(lambda s: queries.update_item(s, MINE, "vgw-00000002", vpc_id=None))
    [shown] = me(describe_route_tables, RouteTableIds=[table])["RouteTables"]
    assert [row["GatewayId"] for row in shown["Routes"]] == ["local"]


def test_what_neutron_refuses_is_taken_back(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    table = _main(me, vpc)
    for number in range(18):
        cidr = f"192.168.{number}.0/24"
        me(create_route, RouteTableId=table, DestinationCidrBlock=cidr, GatewayId=igw)
    before = openstack.routes(subnet)
    one_too_many = {"RouteTableId": table, "DestinationCidrBlock": "192.168.99.0/24"}
    assert code_of(me, create_route, **one_too_many, GatewayId=igw) == "RouteLimitExceeded"
    assert len(_routes(me, table)) == 19
    run_all(me)
    assert openstack.routes(subnet) == before


def test_a_subnet_of_upstream_keeps_its_gateway(
    openstack: Neutron, me: Caller, vpc: str, subnet: str
) -> None:
    """``gateway_ip`` cannot be taken away again: two halves are more specific."""
    openstack.named(subnet, "subnets")["gateway_ip"] = "10.0.1.1"
    interface = _interface(me, vpc, 1, "10.0.1.7")
    table = _main(me, vpc)
    to = {"RouteTableId": table, "DestinationCidrBlock": ANYWHERE}
    me(create_route, **to, NetworkInterfaceId=interface)
    routes = openstack.routes(subnet)
    assert (routes["0.0.0.0/1"], routes["128.0.0.0/1"]) == ("10.0.1.7", "10.0.1.7")
    me(delete_route, **to)
    assert openstack.named(subnet, "subnets")["gateway_ip"] == "10.0.1.1"
    assert not {"0.0.0.0/1", ANYWHERE} & set(openstack.routes(subnet))


# -- races and deaths --------------------------------------------------------------


def test_of_two_who_tell_neutron_the_later_one_wins(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    table = _main(me, vpc)

    def overtake(method: str, path: str) -> None:
        if method == "PUT" and "/subnets/" in path:
            openstack.before = lambda method, path: None
            second = {"RouteTableId": table, "DestinationCidrBlock": "192.168.2.0/24"}
            me(create_route, **second, GatewayId=igw)

    openstack.before = overtake
    first = {"RouteTableId": table, "DestinationCidrBlock": "192.168.1.0/24"}
    me(create_route, **first, GatewayId=igw)
    assert {"192.168.1.0/24", "192.168.2.0/24"} <= set(openstack.routes(subnet))


def test_a_subnet_learns_a_route_that_came_while_it_was_made(
    openstack: Neutron, me: Caller, vpc: str, igw: str
) -> None:
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    table = _main(me, vpc)

    def come(method: str, path: str) -> None:
        if method == "POST" and path.endswith("/ports"):
            openstack.before = lambda method, path: None
            me(create_route, RouteTableId=table, DestinationCidrBlock=ANYWHERE, GatewayId=igw)

    openstack.before = come
    made = me(create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]
    assert openstack.routes(made["SubnetId"])[ANYWHERE] == "10.0.1.1"


@pytest.mark.parametrize("at", range(8))
def test_a_gateway_whose_process_died_is_attached_or_not(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str, at: int
) -> None:
    second = me(create_internet_gateway)["InternetGateway"]["InternetGatewayId"]
    table = _main(me, vpc)
    pair = {"InternetGatewayId": igw, "VpcId": vpc}
    route = {"RouteTableId": table, "DestinationCidrBlock": ANYWHERE}
    me(attach_internet_gateway, **pair)
    me(create_route, **route, GatewayId=igw)
    me(detach_internet_gateway, **pair)
    calls = [(Network, "update_router"), (Network, "update_subnet"), (Database, "write")]
    deaths = Deaths(at)
    with dying(deaths, *calls), pytest.raises(Death):
        me(attach_internet_gateway, **pair)
    assert deaths.fired
    run_all(me)
    attached = {
        row["InternetGatewayId"]: bool(row["Attachments"])
        for row in me(describe_internet_gateways)["InternetGateways"]
    }
    assert not attached[second]
    there = openstack.named(vpc, "routers")["external_gateway_info"] is not None
    assert there == attached[igw] == (at > 0)
    assert (ANYWHERE in openstack.routes(subnet)) == attached[igw]
    assert (_routes(me, table)[1]["State"] == "active") == attached[igw]


def test_an_answer_that_got_lost_is_made_good(
    openstack: Neutron, me: Caller, vpc: str, subnet: str, igw: str
) -> None:
    openstack.fail = {"/routers/": 503}
    pair = {"InternetGatewayId": igw, "VpcId": vpc}
    assert code_of(me, attach_internet_gateway, **pair) == "Unavailable"
    openstack.fail = {}
    run_all(me)
    assert openstack.named(vpc, "routers")["external_gateway_info"] is not None


# -- DHCP options ------------------------------------------------------------------


def _options(me: Caller, **options: list[str]) -> str:
    rows = [{"Key": key.replace("_", "-"), "Values": values} for key, values in options.items()]
    made = me(create_dhcp_options, DhcpConfigurations=rows)["DhcpOptions"]
    return str(made["DhcpOptionsId"])


def test_a_set_of_options(openstack: Neutron, me: Caller) -> None:
    made = _options(me, domain_name=["example.org"], ntp_servers=["192.0.2.1", "192.0.2.2"])
    [shown] = me(describe_dhcp_options)["DhcpOptions"]
    assert shown == {
        "DhcpOptionsId": made,
        "OwnerId": MINE,
        "DhcpConfigurations": [
            {"Key": "domain-name", "Values": [{"Value": "example.org"}]},
            {"Key": "ntp-servers", "Values": [{"Value": "192.0.2.1"}, {"Value": "192.0.2.2"}]},
        ],
        "Tags": [],
    }
    for name in ("dhcp-options-id", "dhcp_options_id"):
        wanted = [{"Name": name, "Values": [made]}]
        assert me(describe_dhcp_options, Filters=wanted)["DhcpOptions"] == [shown]
    by_value = [{"Name": "value", "Values": ["192.0.2.*"]}, {"Name": "key", "Values": ["ntp*"]}]
    assert me(describe_dhcp_options, Filters=by_value)["DhcpOptions"] == [shown]
    me(delete_dhcp_options, DhcpOptionsId=made)
    unknown = code_of(me, describe_dhcp_options, DhcpOptionsIds=[made])
    assert unknown == "InvalidDhcpOptionsID.NotFound"


@pytest.mark.parametrize(
    ("key", "values", "code"),
    [
        ("domain-name-servers", ["nowhere"], "InvalidParameterValue"),
        ("ntp-servers", ["AmazonProvidedDNS"], "InvalidParameterValue"),
        ("netbios-node-type", ["3"], "InvalidParameterValue"),
        ("domain-name", ["a\nb"], "InvalidParameterValue"),
        ("domain-name", [], "InvalidParameterValue"),
        ("default-router", ["192.0.2.1"], "InvalidParameterValue"),
    ],
)
def test_options_that_there_are_not(
    openstack: Neutron, me: Caller, key: str, values: list[str], code: str
) -> None:
    rows = [{"Key": key, "Values": values}]
    assert code_of(me, create_dhcp_options, DhcpConfigurations=rows) == code
    assert me(describe_dhcp_options)["DhcpOptions"] == []


def _execute(session: Session, statement: Any) -> None:
    session.execute(statement)


def test_interfaces_of_that_vpc_and_no_other_learn_the_options(
    openstack: Neutron, me: Caller, vpc: str, subnet: str
) -> None:
    elsewhere = str(me(create_vpc, CidrBlock="10.5.0.0/16")["Vpc"]["VpcId"])
    network = openstack.named(subnet, "networks")["id"]
    mine, other = (openstack.port(network, f"10.0.1.{number}") for number in (7, 8))
    for number, port, where in ((1, mine, vpc), (2, other, elsewhere)):
        _interface(me, where, number, "10.0.1.7")
        change = sa.update(ItemRow).where(ItemRow.id == f"eni-{number:08x}")
        me.db.write(partial(_execute, statement=change.values(os_id=port["id"])))
    options = _options(me, domain_name=["example.org"], domain_name_servers=["AmazonProvidedDNS"])
    pair = {"DhcpOptionsId": options, "VpcId": vpc}
    me(associate_dhcp_options, **pair)
    told = {row["opt_name"]: row["opt_value"] for row in mine["extra_dhcp_opts"]}
    assert told == {"domain-name": "example.org", "mtu": "1500"}
    assert other["extra_dhcp_opts"] == []
    shown = {row["VpcId"]: row["DhcpOptionsId"] for row in me(describe_vpcs)["Vpcs"]}
    assert shown == {vpc: options, elsewhere: "default"}
    assert code_of(me, delete_dhcp_options, DhcpOptionsId=options) == "DependencyViolation"
    puts = len([call for call in openstack.calls(NEUTRON) if call[0] == "PUT"])
    me(associate_dhcp_options, **pair)
    again = len([call for call in openstack.calls(NEUTRON) if call[0] == "PUT"])
    assert puts == again, "what agrees is not told again"
    me(associate_dhcp_options, DhcpOptionsId="default", VpcId=vpc)
    assert [row["opt_name"] for row in mine["extra_dhcp_opts"]] == ["mtu"]
    [shown_vpc] = me(describe_vpcs, VpcIds=[vpc])["Vpcs"]
    assert shown_vpc["DhcpOptionsId"] == "default"
    me(delete_dhcp_options, DhcpOptionsId=options)


# -- speed -------------------------------------------------------------------------


def test_describes_make_a_constant_number_of_calls_and_statements(
    openstack: Neutron, me: Caller, vpc: str
) -> None:
    statements: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    sa.event.listen(me.db.engine, "before_cursor_execute", note)
    counted = []
    for _ in range(2):
        for action in (describe_route_tables, describe_internet_gateways):
            statements.clear()
            with count_calls() as calls:
                me(action)
            counted.append((calls.total, len([s for s in statements if " FROM items" in s])))
        for _ in range(20):
            _table(me, vpc)
            me(create_internet_gateway)
    assert counted[:2] == counted[2:]
    assert [calls for calls, _ in counted] == [0, 0, 0, 0]
