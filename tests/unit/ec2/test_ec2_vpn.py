"""VPN gateways, customers' gateways and connections, and what Neutron's VPN service has of them."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
import sqlalchemy as sa

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_openstack import NEUTRON, Caller, code_of
from tests.support.ec2_vpn import OUTSIDE, Vpn
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.models.ec2 import ItemRow
from trimaran.ec2 import ids
from trimaran.ec2.kinds.vpcs.internet_gateway import (
    attach_internet_gateway,
    create_internet_gateway,
)
from trimaran.ec2.kinds.vpcs.route import create_route, delete_route
from trimaran.ec2.kinds.vpcs.route_table import (
    describe_route_tables,
    disable_vgw_route_propagation,
    enable_vgw_route_propagation,
)
from trimaran.ec2.kinds.vpcs.subnet import delete_subnet, describe_subnets
from trimaran.ec2.kinds.vpcs.subnet_create import create_subnet
from trimaran.ec2.kinds.vpcs.vpc import delete_vpc
from trimaran.ec2.kinds.vpcs.vpc_create import create_vpc
from trimaran.ec2.kinds.vpn.customer_gateway import (
    create_customer_gateway,
    delete_customer_gateway,
    describe_customer_gateways,
)
from trimaran.ec2.kinds.vpn.vpn_connection import (
    create_vpn_connection,
    delete_vpn_connection,
    describe_vpn_connections,
)
from trimaran.ec2.kinds.vpn.vpn_connection_route import (
    create_vpn_connection_route,
    delete_vpn_connection_route,
)
from trimaran.ec2.kinds.vpn.vpn_gateway import (
    attach_vpn_gateway,
    create_vpn_gateway,
    delete_vpn_gateway,
    describe_vpn_gateways,
    detach_vpn_gateway,
)
from trimaran.ec2.protocol.errors import to_ec2
from trimaran.errors import TrimaranError
from trimaran.identity import count_calls

CLOUD = Vpn

CUSTOMER = "198.51.100.77"
RANGE, OTHER = "172.16.25.0/24", "172.16.26.0/24"
CALLS = (
    (Network, "update_router"),
    (Network, "create_vpn_service"),
    (Network, "delete_vpn_service"),
    (Network, "create_ike_policy"),
    (Network, "create_ipsec_policy"),
    (Network, "create_ipsec_connection"),
    (Network, "delete_ipsec_connection"),
    (Database, "write"),
)
PLUGS = ((Network, "create_network"), (Network, "add_router_interface"))

Row = dict[str, Any]


@pytest.fixture
def vpc(openstack: Vpn, me: Caller) -> str:
    return str(me(create_vpc, CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])


@pytest.fixture
def subnet(vpc: str, me: Caller) -> str:
    return make_subnet(me, vpc, "10.0.1.0/24")


@pytest.fixture
def vgw(openstack: Vpn, me: Caller) -> str:
    return str(me(create_vpn_gateway, Type="ipsec.1")["VpnGateway"]["VpnGatewayId"])


@pytest.fixture
def cgw(openstack: Vpn, me: Caller) -> str:
    made = me(create_customer_gateway, Type="ipsec.1", IpAddress=CUSTOMER, BgpAsn=65000)
    return str(made["CustomerGateway"]["CustomerGatewayId"])


@pytest.fixture
def table(vpc: str, me: Caller) -> str:
    [row] = me(describe_route_tables)["RouteTables"]
    return str(row["RouteTableId"])


def make_subnet(me: Caller, vpc: str, cidr: str) -> str:
    return str(me(create_subnet, VpcId=vpc, CidrBlock=cidr)["Subnet"]["SubnetId"])


def connect(me: Caller, cgw: str, vgw: str, **request: Any) -> Row:
    request = {"Options": {"StaticRoutesOnly": True}, "Type": "ipsec.1"} | request
    made = me(create_vpn_connection, CustomerGatewayId=cgw, VpnGatewayId=vgw, **request)
    return dict(made["VpnConnection"])


def gateway_of(openstack: Vpn, vpc: str) -> bool:
    return openstack.named(vpc, "routers")["external_gateway_info"] is not None


# -- customer gateways ---------------------------------------------------------


def test_a_customer_gateway(openstack: Vpn, me: Caller, them: Caller) -> None:
    tags = [{"ResourceType": "customer-gateway", "Tags": [{"Key": "a", "Value": "b"}]}]
    request = {"Type": "ipsec.1", "IpAddress": CUSTOMER, "BgpAsn": 65000}
    assert code_of(me, create_customer_gateway, DryRun=True, **request) == "DryRunOperation"
    made = me(create_customer_gateway, TagSpecifications=tags, DeviceName="x", **request)
    shown = made["CustomerGateway"]
    gateway_id = shown["CustomerGatewayId"]
    assert shown == {
        "CustomerGatewayId": gateway_id,
        "State": "available",
        "Type": "ipsec.1",
        "IpAddress": CUSTOMER,
        "BgpAsn": "65000",
        "DeviceName": "x",
        "Tags": [{"Key": "a", "Value": "b"}],
    }
    # The same address again is the same gateway.
    again = me(create_customer_gateway, Type="ipsec.1", PublicIp=CUSTOMER)
    assert again["CustomerGateway"] == shown
    assert me(describe_customer_gateways)["CustomerGateways"] == [shown]
    asked = {"Name": "ip-address", "Values": [CUSTOMER]}
    assert me(describe_customer_gateways, Filters=[asked])["CustomerGateways"] == [shown]
    assert them(describe_customer_gateways)["CustomerGateways"] == []
    unknown = "InvalidCustomerGatewayID.NotFound"
    assert code_of(them, delete_customer_gateway, CustomerGatewayId=gateway_id) == unknown
    me(delete_customer_gateway, CustomerGatewayId=gateway_id)
    asked_for = {"CustomerGatewayIds": [gateway_id]}
    assert code_of(me, describe_customer_gateways, **asked_for) == unknown


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"Type": "ipsec.2"}, "InvalidParameterValue"),
        ({"IpAddress": None}, "Unsupported"),
        ({"IpAddress": "1.2.3"}, "InvalidParameterValue"),
        ({"IpAddress": "2001:db8::1"}, "InvalidParameterValue"),
        ({"PublicIp": "1.2.3.4"}, "InvalidParameterCombination"),
        ({"BgpAsn": 65001}, "Unsupported"),
        ({"BgpAsnExtended": 4200000000}, "Unsupported"),
        ({"CertificateArn": "arn"}, "UnsupportedOperation"),
        ({"TagSpecifications": [{"ResourceType": "vpc"}]}, "InvalidParameterValue"),
    ],
)
def test_wrong_customer_gateways(openstack: Vpn, me: Caller, request_: Row, code: str) -> None:
    request = {"Type": "ipsec.1", "IpAddress": CUSTOMER} | request_
    assert code_of(me, create_customer_gateway, **request) == code
    assert me(describe_customer_gateways)["CustomerGateways"] == []


# -- VPN gateways --------------------------------------------------------------


def test_a_vpn_gateway(openstack: Vpn, me: Caller, them: Caller) -> None:
    tags = [{"ResourceType": "vpn-gateway", "Tags": [{"Key": "a", "Value": "b"}]}]
    made = me(create_vpn_gateway, Type="ipsec.1", AvailabilityZone="nova", TagSpecifications=tags)
    shown = made["VpnGateway"]
    gateway_id = shown["VpnGatewayId"]
    assert shown == {
        "VpnGatewayId": gateway_id,
        "State": "available",
        "Type": "ipsec.1",
        "VpcAttachments": [],
        "AmazonSideAsn": 64512,
        "Tags": [{"Key": "a", "Value": "b"}],
    }
    other = me(create_vpn_gateway, Type="ipsec.1", AmazonSideAsn=65000)["VpnGateway"]
    assert other["AmazonSideAsn"] == 65000
    asked = [{"Name": "tag:a", "Values": ["b"]}]
    assert me(describe_vpn_gateways, Filters=asked)["VpnGateways"] == [shown]
    assert len(me(describe_vpn_gateways)["VpnGateways"]) == 2
    assert them(describe_vpn_gateways)["VpnGateways"] == []
    me(delete_vpn_gateway, VpnGatewayId=gateway_id)
    unknown = code_of(me, describe_vpn_gateways, VpnGatewayIds=[gateway_id])
    assert unknown == "InvalidVpnGatewayID.NotFound"
    assert code_of(me, create_vpn_gateway, Type="x") == "InvalidParameterValue"
    wrong = {"Type": "ipsec.1", "AmazonSideAsn": 7}
    assert code_of(me, create_vpn_gateway, **wrong) == "InvalidParameterValue"


def test_attached_it_serves_the_subnets(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, vgw: str
) -> None:
    pair = {"VpcId": vpc, "VpnGatewayId": vgw}
    before = openstack.left()
    assert code_of(me, attach_vpn_gateway, DryRun=True, **pair) == "DryRunOperation"
    assert openstack.left() == before
    shown = me(attach_vpn_gateway, **pair)
    assert shown == {"VpcAttachment": {"State": "attached", "VpcId": vpc}}
    assert gateway_of(openstack, vpc)
    assert openstack.vpn_names("vpnservices") == [subnet]
    assert me(attach_vpn_gateway, **pair) == shown, "again is no error"
    # A subnet that is made later is served as well, and one that goes is no longer.
    second = make_subnet(me, vpc, "10.0.2.0/24")
    assert openstack.vpn_names("vpnservices") == sorted([subnet, second])
    me(delete_subnet, SubnetId=second)
    assert openstack.vpn_names("vpnservices") == [subnet]
    asked = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    [row] = me(describe_vpn_gateways, Filters=asked)["VpnGateways"]
    assert row["VpcAttachments"] == [{"State": "attached", "VpcId": vpc}]
    assert code_of(me, delete_vpn_gateway, VpnGatewayId=vgw) == "IncorrectState"
    assert code_of(me, delete_vpc, VpcId=vpc) == "DependencyViolation"
    me(detach_vpn_gateway, **pair)
    assert openstack.left() == before
    assert not gateway_of(openstack, vpc)
    gone = code_of(me, detach_vpn_gateway, **pair)
    assert gone == "InvalidVpnGatewayAttachment.NotFound"
    me(delete_vpn_gateway, VpnGatewayId=vgw)


def test_the_way_out_stays_while_an_internet_gateway_needs_it(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, vgw: str
) -> None:
    igw = me(create_internet_gateway)["InternetGateway"]["InternetGatewayId"]
    me(attach_internet_gateway, InternetGatewayId=igw, VpcId=vpc)
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    me(detach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    assert gateway_of(openstack, vpc)
    assert openstack.vpn_names("vpnservices") == []


def test_wrong_attachments(openstack: Vpn, me: Caller, vpc: str, vgw: str) -> None:
    other = me(create_vpc, CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    second = me(create_vpn_gateway, Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)

    def code(vpc: str, vgw: str) -> str:
        return code_of(me, attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)

    assert code(other, vgw) == "VpnGatewayAttachmentLimitExceeded"
    assert code(vpc, second) == "InvalidVpcState"
    assert code(vpc, "vgw-00000099") == "InvalidVpnGatewayID.NotFound"
    assert code("vpc-00000099", second) == "InvalidVpcID.NotFound"
    assert code(vpc, "igw-00000099") == "InvalidParameterValue"
    for wrong in ({"VpcId": other}, {"VpnGatewayId": second}):
        request = {"VpcId": vpc, "VpnGatewayId": vgw} | wrong
        answer = code_of(me, detach_vpn_gateway, **request)
        assert answer == "InvalidVpnGatewayAttachment.NotFound"
    assert code_of(me, detach_vpn_gateway, VpnGatewayId=vgw) == "MissingParameter"


def test_a_cloud_without_vpn(openstack: Vpn, me: Caller, vpc: str, vgw: str, cgw: str) -> None:
    openstack.vpnaas = False
    before = openstack.left()
    request = {"VpcId": vpc, "VpnGatewayId": vgw}
    assert code_of(me, attach_vpn_gateway, **request) == "UnsupportedOperation"
    assert openstack.left() == before
    assert not gateway_of(openstack, vpc)
    [row] = me(describe_vpn_gateways)["VpnGateways"]
    assert row["VpcAttachments"] == []
    with pytest.raises(TrimaranError) as caught:
        connect(me, cgw, vgw)
    assert to_ec2(caught.value).code == "UnsupportedOperation"
    assert me(describe_vpn_connections)["VpnConnections"] == []
    run_all(me)
    me(delete_customer_gateway, CustomerGatewayId=cgw)
    me(delete_vpn_gateway, VpnGatewayId=vgw)
    me(delete_subnet, SubnetId=make_subnet(me, vpc, "10.0.1.0/24"))


def test_a_gateway_that_comes_while_a_subnet_is_made(
    openstack: Vpn, me: Caller, vpc: str, vgw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its attachment is noted, and has not come to the router yet."""
    plug = Network.add_router_interface

    def noted_meanwhile(*args: Any) -> Any:
        note = sa.update(ItemRow).where(ItemRow.id == vgw).values(vpc_id=vpc)
        me.db.write(lambda s: s.execute(note))
        return plug(*args)

    monkeypatch.setattr(Network, "add_router_interface", noted_meanwhile)
    subnet = make_subnet(me, vpc, "10.0.1.0/24")
    assert gateway_of(openstack, vpc)
    assert openstack.vpn_names("vpnservices") == [subnet]


def test_a_subnet_is_made_also_when_neutron_refuses_its_service(
    openstack: Vpn, me: Caller, vpc: str, vgw: str
) -> None:
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    openstack.most_vpn["vpnservices"] = 0
    subnet = make_subnet(me, vpc, "10.0.1.0/24")
    assert openstack.vpn_names("vpnservices") == []
    openstack.most_vpn.clear()
    run_all(me)
    assert openstack.vpn_names("vpnservices") == [subnet]


def test_a_subnet_that_goes_while_a_gateway_is_attached(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, vgw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_subnet(me, vpc, "10.0.2.0/24")
    serve = Network.create_vpn_service

    def gone_meanwhile(network: Network, body: Row) -> Any:
        if body["name"] == subnet:
            monkeypatch.setattr(Network, "create_vpn_service", serve)
            me(delete_subnet, SubnetId=subnet)
        return serve(network, body)

    monkeypatch.setattr(Network, "create_vpn_service", gone_meanwhile)
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    assert openstack.vpn_names("vpnservices") == [other]


def test_a_refused_service_leaves_nothing_attached(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, vgw: str
) -> None:
    make_subnet(me, vpc, "10.0.2.0/24")
    openstack.most_vpn["vpnservices"] = 1
    before = openstack.left()
    code = code_of(me, attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    assert code == "VpnConnectionLimitExceeded"
    run_all(me)
    assert openstack.left() == before
    assert not gateway_of(openstack, vpc)
    assert me(describe_vpn_gateways)["VpnGateways"][0]["VpcAttachments"] == []


# -- connections ---------------------------------------------------------------


def test_a_connection(
    openstack: Vpn, me: Caller, them: Caller, vpc: str, subnet: str, vgw: str, cgw: str
) -> None:
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    tags = [{"ResourceType": "vpn-connection", "Tags": [{"Key": "a", "Value": "b"}]}]
    made = connect(me, cgw, vgw, TagSpecifications=tags)
    connection_id = made["VpnConnectionId"]
    assert ids.is_id(connection_id, ["vpn"])
    text = made.pop("CustomerGatewayConfiguration")
    assert made == {
        "VpnConnectionId": connection_id,
        "State": "available",
        "Type": "ipsec.1",
        "Category": "VPN",
        "CustomerGatewayId": cgw,
        "VpnGatewayId": vgw,
        "Options": {
            "EnableAcceleration": False,
            "StaticRoutesOnly": True,
            "LocalIpv4NetworkCidr": "0.0.0.0/0",
            "RemoteIpv4NetworkCidr": "0.0.0.0/0",
            "TunnelInsideIpVersion": "ipv4",
        },
        "Routes": [],
        "VgwTelemetry": [],
        "Tags": [{"Key": "a", "Value": "b"}],
    }
    [ike], [ipsec] = (openstack.vpn[each].values() for each in ("ikepolicies", "ipsecpolicies"))
    assert (ike["name"], ike["ike_version"], ike["auth_algorithm"]) == (
        connection_id,
        "v1",
        "sha256",
    )
    assert (ipsec["name"], ipsec["lifetime"]["value"]) == (connection_id, 3600)
    root = ElementTree.fromstring(text)
    assert root.get("id") == connection_id
    tunnels = root.findall("ipsec_tunnel")
    assert len(tunnels) == 2, "Terraform's provider panics without a second one"
    for tunnel in tunnels:
        assert tunnel.findtext("customer_gateway/tunnel_outside_address/ip_address") == CUSTOMER
        assert tunnel.findtext("vpn_gateway/tunnel_outside_address/ip_address") == OUTSIDE
        assert tunnel.findtext("ike/pre_shared_key") == ike["description"]
        assert tunnel.findtext("ike/lifetime") == "28800"
        assert tunnel.findtext("ipsec/tcp_mss_adjustment") == "1387"
    assert len(ike["description"]) == 32
    [shown] = me(describe_vpn_connections)["VpnConnections"]
    assert shown == {**made, "CustomerGatewayConfiguration": text}
    # Asked for again, it is the same one.
    assert connect(me, cgw, vgw) == shown
    assert them(describe_vpn_connections)["VpnConnections"] == []
    stored = me.db.read(lambda s: [row.data for row in s.scalars(sa.select(ItemRow))])
    assert ike["description"] not in str(stored), "no secret in the database (F20)"
    assert code_of(me, delete_customer_gateway, CustomerGatewayId=cgw) == "IncorrectState"
    me(detach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    assert code_of(me, delete_vpn_gateway, VpnGatewayId=vgw) == "IncorrectState"
    unknown = "InvalidVpnConnectionID.NotFound"
    assert code_of(them, delete_vpn_connection, VpnConnectionId=connection_id) == unknown
    assert code_of(me, delete_vpn_connection, VpnConnectionId=connection_id, DryRun=True) == (
        "DryRunOperation"
    )
    me(delete_vpn_connection, VpnConnectionId=connection_id)
    assert openstack.vpn_names("ikepolicies") == openstack.vpn_names("ipsecpolicies") == []
    asked = {"VpnConnectionIds": [connection_id]}
    assert code_of(me, describe_vpn_connections, **asked) == unknown
    me(delete_customer_gateway, CustomerGatewayId=cgw)
    me(delete_vpn_gateway, VpnGatewayId=vgw)


def test_filters_of_connections(openstack: Vpn, me: Caller, vgw: str, cgw: str) -> None:
    made = connect(me, cgw, vgw)
    me(
        create_vpn_connection_route,
        VpnConnectionId=made["VpnConnectionId"],
        DestinationCidrBlock=RANGE,
    )

    def found(name: str, value: str) -> int:
        asked = [{"Name": name, "Values": [value]}]
        return len(me(describe_vpn_connections, Filters=asked)["VpnConnections"])

    assert found("customer-gateway-id", cgw) == 1
    assert found("vpn-gateway-id", "vgw-x") == 0
    assert found("option.static-routes-only", "true") == 1
    assert found("route.destination-cidr-block", RANGE) == 1
    assert found("route.destination-cidr-block", OTHER) == 0
    assert found("customer-gateway-configuration", "*NoBGP*") == 1
    wrong = [{"Name": "fake", "Values": ["x"]}]
    assert code_of(me, describe_vpn_connections, Filters=wrong) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"Options": None}, "Unsupported"),
        ({"Options": {"StaticRoutesOnly": False}}, "Unsupported"),
        ({"Type": "ipsec.2"}, "InvalidParameterValue"),
        ({"VpnGatewayId": None}, "MissingParameter"),
        ({"VpnGatewayId": "vgw-00000099"}, "InvalidVpnGatewayID.NotFound"),
        ({"CustomerGatewayId": "cgw-00000099"}, "InvalidCustomerGatewayID.NotFound"),
        ({"TransitGatewayId": "tgw-1"}, "InvalidTransitGatewayID.NotFound"),
        ({"Options": {"StaticRoutesOnly": True, "EnableAcceleration": True}},
         "UnsupportedOperation"),
        ({"Options": {"StaticRoutesOnly": True, "TunnelOptions": [{"PreSharedKey": "0short"}]}},
         "InvalidParameterValue"),
        ({"Options": {"StaticRoutesOnly": True, "TunnelOptions": [{"IKEVersions": ["x"]}]}},
         "UnsupportedOperation"),
    ],
)  # fmt: skip
def test_wrong_connections(
    openstack: Vpn, me: Caller, vgw: str, cgw: str, request_: Row, code: str
) -> None:
    request = {
        "CustomerGatewayId": cgw,
        "VpnGatewayId": vgw,
        "Type": "ipsec.1",
        "Options": {"StaticRoutesOnly": True},
    } | request_
    assert code_of(me, create_vpn_connection, **request) == code
    assert openstack.vpn_names("ikepolicies") == []


def test_a_key_of_ones_own(openstack: Vpn, me: Caller, vgw: str, cgw: str) -> None:
    tunnels: list[Row] = [{"PreSharedKey": "my.own_key"}, {"TunnelInsideCidr": ""}]
    options = {
        "StaticRoutesOnly": True,
        "EnableAcceleration": False,
        "TunnelInsideIpVersion": "ipv4",
        "LocalIpv4NetworkCidr": "0.0.0.0/0",
        "TunnelOptions": tunnels,
    }
    made = connect(me, cgw, vgw, Options=options)
    assert "<pre_shared_key>my.own_key</pre_shared_key>" in made["CustomerGatewayConfiguration"]
    second = me(create_vpn_gateway, Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    with pytest.raises(TrimaranError) as caught:
        connect(me, cgw, second)
    assert to_ec2(caught.value).code == "InvalidCustomerGateway.DuplicateIpAddress"


def test_a_refused_connection_leaves_nothing(
    openstack: Vpn, me: Caller, vgw: str, cgw: str
) -> None:
    openstack.most_vpn["ipsecpolicies"] = 0
    before = openstack.left()
    with pytest.raises(TrimaranError) as caught:
        connect(me, cgw, vgw)
    assert to_ec2(caught.value).code == "ResourceLimitExceeded"
    assert openstack.left() == before
    openstack.most_vpn.clear()
    connect(me, cgw, vgw)
    run_all(me)
    assert len(openstack.vpn_names("ikepolicies")) == 1


# -- routes --------------------------------------------------------------------


@pytest.fixture
def linked(me: Caller, vpc: str, subnet: str, vgw: str, cgw: str) -> str:
    """A connection of a gateway that is attached."""
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    return str(connect(me, cgw, vgw)["VpnConnectionId"])


def test_static_routes_make_tunnels(
    openstack: Vpn, me: Caller, linked: str, subnet: str, table: str, vgw: str
) -> None:
    name = f"{linked}/{subnet}"
    assert openstack.links() == {}
    route = {"RouteTableId": table, "DestinationCidrBlock": RANGE}
    me(create_route, **route, GatewayId=vgw)
    assert openstack.links() == {name: [RANGE]}
    [row] = openstack.vpn["ipsec-site-connections"].values()
    told = {each: row[each] for each in ("peer_address", "peer_id", "mtu", "initiator")}
    assert told == {
        "peer_address": CUSTOMER,
        "peer_id": CUSTOMER,
        "mtu": "1427",
        "initiator": "response-only",
    }
    [ike] = openstack.vpn["ikepolicies"].values()
    assert row["psk"] == ike["description"]
    assert openstack.routes(subnet)[RANGE] == "10.0.1.1"
    me(create_route, RouteTableId=table, DestinationCidrBlock=OTHER, GatewayId=vgw)
    assert openstack.links() == {name: [RANGE, OTHER]}
    me(delete_route, RouteTableId=table, DestinationCidrBlock=OTHER)
    me(delete_route, **route)
    assert openstack.links() == {}


@pytest.mark.parametrize("settled", [False, True])
def test_propagated_routes(
    openstack: Vpn, me: Caller, linked: str, subnet: str, table: str, vgw: str, settled: bool
) -> None:
    """Whether Neutron changes a connection or refuses to, as long as it has not built it."""
    openstack.settled = settled
    name = f"{linked}/{subnet}"
    route = {"VpnConnectionId": linked, "DestinationCidrBlock": RANGE}
    me(create_vpn_connection_route, **route)
    me(create_vpn_connection_route, **route)
    [shown] = me(describe_vpn_connections)["VpnConnections"]
    assert shown["Routes"] == [
        {"DestinationCidrBlock": RANGE, "Source": "Static", "State": "available"}
    ]
    assert openstack.links() == {}
    pair = {"RouteTableId": table, "GatewayId": vgw}
    me(enable_vgw_route_propagation, **pair)
    assert openstack.links() == {name: [RANGE]}
    assert openstack.routes(subnet)[RANGE] == "10.0.1.1"
    before = list(openstack.vpn["ipsec-site-connections"])
    me(create_vpn_connection_route, VpnConnectionId=linked, DestinationCidrBlock="172.16.26.9/24")
    assert openstack.links() == {name: [RANGE, OTHER]}
    assert (list(openstack.vpn["ipsec-site-connections"]) == before) == settled
    second = make_subnet(me, _vpc_of(me), "10.0.2.0/24")
    assert set(openstack.links()) == {name, f"{linked}/{second}"}
    me(delete_vpn_connection_route, VpnConnectionId=linked, DestinationCidrBlock=OTHER)
    assert openstack.links()[name] == [RANGE]
    me(disable_vgw_route_propagation, **pair)
    assert openstack.links() == {}
    gone = {"VpnConnectionId": linked, "DestinationCidrBlock": OTHER}
    assert code_of(me, delete_vpn_connection_route, **gone) == "InvalidRoute.NotFound"


def _vpc_of(me: Caller) -> str:
    [row] = me(describe_vpn_gateways)["VpnGateways"]
    return str(row["VpcAttachments"][0]["VpcId"])


@pytest.mark.parametrize("cidr", ["", "10.0.0.0", "10.0.0.0/33", "::/0", "x/1", None])
def test_wrong_routes(openstack: Vpn, me: Caller, linked: str, cidr: str | None) -> None:
    request = {"VpnConnectionId": linked, "DestinationCidrBlock": cidr}
    code = code_of(me, create_vpn_connection_route, **request)
    assert code == ("InvalidParameterValue" if cidr else "MissingParameter")


def test_deleting_a_connection_with_tunnels(
    openstack: Vpn, me: Caller, linked: str, subnet: str, table: str, vgw: str, cgw: str
) -> None:
    me(create_route, RouteTableId=table, DestinationCidrBlock=RANGE, GatewayId=vgw)
    assert openstack.links()
    me(delete_vpn_connection, VpnConnectionId=linked)
    assert openstack.links() == {}
    assert openstack.vpn_names("ikepolicies") == []
    assert openstack.vpn_names("vpnservices") == [subnet]
    # The route stands: a new connection serves it at once.
    again = connect(me, cgw, vgw)["VpnConnectionId"]
    assert openstack.links() == {f"{again}/{subnet}": [RANGE]}
    me(delete_subnet, SubnetId=subnet)
    assert openstack.links() == {}
    assert openstack.vpn_names("vpnservices") == []


def test_what_others_changed_in_neutron_is_made_good(
    openstack: Vpn, me: Caller, linked: str, subnet: str, table: str, vgw: str
) -> None:
    me(create_route, RouteTableId=table, DestinationCidrBlock=RANGE, GatewayId=vgw)
    openstack.vpn["ipsec-site-connections"].clear()
    [service] = openstack.vpn["vpnservices"].values()
    twin = {**service, "id": "twin"}
    openstack.vpn["vpnservices"]["twin"] = twin
    me(create_route, RouteTableId=table, DestinationCidrBlock=OTHER, GatewayId=vgw)
    assert openstack.links() == {f"{linked}/{subnet}": [RANGE, OTHER]}
    assert openstack.vpn_names("vpnservices") == [subnet]


def test_calls_do_not_grow_with_the_connections(openstack: Vpn, me: Caller, vgw: str) -> None:
    def cost() -> tuple[int, int]:
        before = len(openstack.calls(NEUTRON))
        with count_calls() as calls:
            me(describe_vpn_connections)
        return calls.total, len(openstack.calls(NEUTRON)) - before

    def more(number: int) -> None:
        made = me(create_customer_gateway, Type="ipsec.1", IpAddress=f"198.51.100.{number}")
        connect(me, made["CustomerGateway"]["CustomerGatewayId"], vgw)

    more(1)
    first = cost()
    for number in range(2, 8):
        more(number)
    assert cost() == first == (3, 3)


# -- what a dead process leaves ------------------------------------------------


@pytest.mark.parametrize("at", range(8))
def test_a_gateway_whose_process_died_is_attached_or_not(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, vgw: str, at: int
) -> None:
    deaths = Deaths(at)
    with dying(deaths, *CALLS), pytest.raises(Death):
        me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    run_all(me)
    attached = bool(me(describe_vpn_gateways)["VpnGateways"][0]["VpcAttachments"])
    assert attached == (at > 0), deaths.moment
    assert gateway_of(openstack, vpc) == attached
    assert openstack.vpn_names("vpnservices") == ([subnet] if attached else [])


@pytest.mark.parametrize("at", range(8))
def test_a_gateway_whose_process_died_is_detached_or_not(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, vgw: str, at: int
) -> None:
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    deaths = Deaths(at)
    with dying(deaths, *CALLS), pytest.raises(Death):
        me(detach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    run_all(me)
    attached = bool(me(describe_vpn_gateways)["VpnGateways"][0]["VpcAttachments"])
    assert attached == (at == 0), deaths.moment
    assert gateway_of(openstack, vpc) == attached
    assert openstack.vpn_names("vpnservices") == ([subnet] if attached else [])


@pytest.mark.parametrize("at", range(10))
def test_a_subnet_whose_process_died_is_there_with_its_service_or_not(
    openstack: Vpn, me: Caller, vpc: str, vgw: str, at: int
) -> None:
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    before = openstack.left()
    deaths = Deaths(at)
    with dying(deaths, *CALLS, *PLUGS), pytest.raises(Death):
        make_subnet(me, vpc, "10.0.1.0/24")
    run_all(me)
    shown = [row["SubnetId"] for row in me(describe_subnets)["Subnets"]]
    assert openstack.vpn_names("vpnservices") == shown, deaths.moment
    if not shown:
        assert openstack.left() == before, deaths.moment
    assert len(shown) == (at > 6), deaths.moment


@pytest.mark.parametrize("at", range(12))
def test_a_connection_whose_process_died_is_there_or_not(
    openstack: Vpn, me: Caller, vpc: str, subnet: str, table: str, vgw: str, cgw: str, at: int
) -> None:
    me(attach_vpn_gateway, VpcId=vpc, VpnGatewayId=vgw)
    me(create_route, RouteTableId=table, DestinationCidrBlock=RANGE, GatewayId=vgw)
    before = openstack.left()
    deaths = Deaths(at)
    with dying(deaths, *CALLS), pytest.raises(Death):
        connect(me, cgw, vgw)
    run_all(me)
    shown = me(describe_vpn_connections)["VpnConnections"]
    if not shown:
        assert openstack.left() == before, deaths.moment
    else:
        assert openstack.links() == {f"{shown[0]['VpnConnectionId']}/{subnet}": [RANGE]}
    # Either way it can be had.
    again = connect(me, cgw, vgw)["VpnConnectionId"]
    assert openstack.links() == {f"{again}/{subnet}": [RANGE]}
    assert openstack.vpn_names("ikepolicies") == openstack.vpn_names("ipsecpolicies") == [again]


@pytest.mark.parametrize("at", range(7))
def test_a_connection_whose_process_died_is_deleted_or_not(
    openstack: Vpn, me: Caller, linked: str, subnet: str, table: str, vgw: str, cgw: str, at: int
) -> None:
    me(create_route, RouteTableId=table, DestinationCidrBlock=RANGE, GatewayId=vgw)
    deaths = Deaths(at)
    with dying(deaths, *CALLS), pytest.raises(Death):
        me(delete_vpn_connection, VpnConnectionId=linked)
    run_all(me)
    shown = me(describe_vpn_connections)["VpnConnections"]
    assert bool(shown) == (at == 0), deaths.moment
    assert bool(openstack.links()) == bool(openstack.vpn_names("ikepolicies")) == (at == 0)
    assert openstack.vpn_names("vpnservices") == [subnet]
