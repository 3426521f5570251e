"""VPCs against a real Neutron, whose own lists say what is there after each call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_project import Project, fresh_project
from tests.support.ec2_wrong_order import Topology
from tests.support.ports import free_port
from trimaran.db import migrate

ANYWHERE = "0.0.0.0/0"
METADATA = "169.254.169.254/32"


@pytest.fixture(scope="module")
def project(cloud_env: CloudEnv) -> Iterator[Project]:
    with fresh_project(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def api(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home: Path = tmp_path_factory.mktemp("ec2-vpc")
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    with running("ec2-api", write_conf(home, cloud_env, url, ec2api_listen_port=port), port) as it:
        yield it


@pytest.fixture(scope="module")
def ec2(api: Daemon, project: Project) -> Any:
    return api.client(project.keys)


def _refused(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


def _router(project: Project, vpc: str) -> dict[str, Any]:
    [row] = project.listed("routers", name=vpc)
    return row


def _routes(project: Project, subnet: str) -> dict[str, str]:
    [row] = project.listed("subnets", name=subnet)
    return {each["destination"]: each["nexthop"] for each in row["host_routes"]}


def test_the_first_look_makes_a_default_vpc(ec2: Any, project: Project) -> None:
    [vpc] = ec2.describe_vpcs()["Vpcs"]
    assert (vpc["CidrBlock"], vpc["IsDefault"]) == ("172.31.0.0/16", True)
    [subnet] = ec2.describe_subnets()["Subnets"]
    assert (subnet["CidrBlock"], subnet["VpcId"]) == ("172.31.0.0/20", vpc["VpcId"])
    assert (subnet["DefaultForAz"], subnet["MapPublicIpOnLaunch"]) == (True, True)
    [igw] = ec2.describe_internet_gateways()["InternetGateways"]
    assert igw["Attachments"] == [{"VpcId": vpc["VpcId"], "State": "available"}]
    [table] = ec2.describe_route_tables()["RouteTables"]
    routes = {r["DestinationCidrBlock"]: (r["GatewayId"], r["State"]) for r in table["Routes"]}
    assert routes == {
        "172.31.0.0/16": ("local", "active"),
        ANYWHERE: (igw["InternetGatewayId"], "active"),
    }
    groups = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])[
        "SecurityGroups"
    ]
    assert [(g["GroupName"], g["GroupId"]) for g in groups] == [
        ("default", "sg-" + vpc["VpcId"].removeprefix("vpc-"))
    ]
    account = ec2.describe_account_attributes(AttributeNames=["default-vpc"])
    [attribute] = account["AccountAttributes"]
    assert attribute["AttributeValues"] == [{"AttributeValue": vpc["VpcId"]}]
    router = _router(project, vpc["VpcId"])
    assert router["external_gateway_info"]["network_id"]
    assert _routes(project, subnet["SubnetId"])[ANYWHERE] == "172.31.0.1"


def test_a_topology_from_nothing_to_nothing(ec2: Any, project: Project) -> None:
    ec2.describe_vpcs()
    before = project.left()
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    assert _router(project, vpc)["external_gateway_info"] is None
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    [row] = project.listed("subnets", name=subnet)
    [port] = project.listed("ports", device_id=_router(project, vpc)["id"])
    assert port["fixed_ips"] == [{"subnet_id": row["id"], "ip_address": "10.0.1.1"}]
    assert _routes(project, subnet) == {"10.0.0.0/16": "10.0.1.1", METADATA: "10.0.1.1"}
    overlapping = {"VpcId": vpc, "CidrBlock": "10.0.1.128/25"}
    assert _refused(ec2.create_subnet, **overlapping) == "InvalidSubnet.Conflict"
    igw = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=igw, VpcId=vpc)
    assert _router(project, vpc)["external_gateway_info"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock=ANYWHERE, GatewayId=igw)
    association = ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)["AssociationId"]
    assert _routes(project, subnet)[ANYWHERE] == "10.0.1.1"
    whole = project.left()
    # Every wrong order.
    assert _refused(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
    assert _refused(ec2.delete_route_table, RouteTableId=table) == "DependencyViolation"
    assert _refused(ec2.delete_internet_gateway, InternetGatewayId=igw) == "DependencyViolation"
    assert project.left() == whole
    # An address that was mapped behind our back keeps the gateway.
    network = row["network_id"]
    guest = project.neutron("POST", "ports", json={"port": {"network_id": network}})["port"]
    outside = _router(project, vpc)["external_gateway_info"]["network_id"]
    body = {"floating_network_id": outside, "port_id": guest["id"]}
    address = project.neutron("POST", "floatingips", json={"floatingip": body})["floatingip"]
    pair = {"InternetGatewayId": igw, "VpcId": vpc}
    assert _refused(ec2.detach_internet_gateway, **pair) == "DependencyViolation"
    [shown] = ec2.describe_internet_gateways(InternetGatewayIds=[igw])["InternetGateways"]
    assert shown["Attachments"]
    project.neutron("DELETE", f"floatingips/{address['id']}")
    assert _refused(ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
    project.neutron("DELETE", f"ports/{guest['id']}")
    # The route goes, and with it the guests' way out.
    ec2.detach_internet_gateway(**pair)
    [shown_table] = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    assert [route["State"] for route in shown_table["Routes"]] == ["active", "blackhole"]
    assert _router(project, vpc)["external_gateway_info"] is None
    assert ANYWHERE not in _routes(project, subnet)
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock=ANYWHERE)
    ec2.disassociate_route_table(AssociationId=association)
    ec2.delete_route_table(RouteTableId=table)
    ec2.delete_internet_gateway(InternetGatewayId=igw)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)
    assert project.left() == before
    assert _refused(ec2.describe_vpcs, VpcIds=[vpc]) == "InvalidVpcID.NotFound"


def test_deletes_in_wrong_orders_change_nothing(ec2: Any, project: Project) -> None:
    ec2.describe_vpcs()

    def left() -> Any:
        rules = {row["id"] for row in project.listed("security-group-rules")}
        mapped = {row["id"]: row["port_id"] for row in project.listed("floatingips")}
        return project.left(), rules, mapped

    topology = Topology(
        do=lambda name, **request: getattr(ec2, name)(**request),
        refused=lambda name, **request: _refused(getattr(ec2, name), **request),
        left=left,
    )
    before = left()
    topology.build()
    assert topology.raze("mapping", "subnet") > 12
    assert left() == before


def test_what_neutron_lost_is_not_shown(ec2: Any, project: Project) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    router = _router(project, vpc)["id"]
    project.neutron("DELETE", f"routers/{router}")
    assert _refused(ec2.describe_vpcs, VpcIds=[vpc]) == "InvalidVpcID.NotFound"
    wanted = [{"Name": "vpc-id", "Values": [vpc]}]
    assert ec2.describe_route_tables(Filters=wanted)["RouteTables"] == []


def test_a_default_vpc_that_was_deleted_stays_away_until_asked_for(
    ec2: Any, project: Project
) -> None:
    [vpc] = ec2.describe_vpcs(Filters=[{"Name": "isDefault", "Values": ["true"]}])["Vpcs"]
    inside = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
    assert _refused(ec2.create_default_vpc) == "DefaultVpcAlreadyExists"
    [subnet] = ec2.describe_subnets(Filters=inside)["Subnets"]
    zone = subnet["AvailabilityZone"]
    twice = _refused(ec2.create_default_subnet, AvailabilityZone=zone)
    assert twice == "DefaultSubnetAlreadyExistsInAvailabilityZone"
    attached = [{"Name": "attachment.vpc-id", "Values": [vpc["VpcId"]]}]
    [igw] = ec2.describe_internet_gateways(Filters=attached)["InternetGateways"]
    ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    again = ec2.create_default_subnet(AvailabilityZone=zone)["Subnet"]
    assert (again["CidrBlock"], again["DefaultForAz"]) == ("172.31.0.0/20", True)
    ec2.delete_subnet(SubnetId=again["SubnetId"])
    pair = {"InternetGatewayId": igw["InternetGatewayId"], "VpcId": vpc["VpcId"]}
    ec2.detach_internet_gateway(**pair)
    ec2.delete_internet_gateway(InternetGatewayId=igw["InternetGatewayId"])
    ec2.delete_vpc(VpcId=vpc["VpcId"])
    assert project.listed("routers", name=vpc["VpcId"]) == []
    defaults = {"Filters": [{"Name": "is-default", "Values": ["true"]}]}
    assert ec2.describe_vpcs(**defaults)["Vpcs"] == []
    assert _refused(ec2.create_default_subnet, AvailabilityZone=zone) == "DefaultVpcDoesNotExist"
    made = ec2.create_default_vpc()["Vpc"]
    assert [row["VpcId"] for row in ec2.describe_vpcs(**defaults)["Vpcs"]] == [made["VpcId"]]
    assert _router(project, made["VpcId"])["external_gateway_info"]
