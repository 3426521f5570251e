"""Security groups and VPNs against a real Neutron, whose own lists say what is there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.conftest import _database
from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_project import Project, fresh_project
from tests.support.ports import free_port
from trimaran.db import migrate

CUSTOMER, RANGE = "198.51.100.77", "172.16.25.0/24"
VPN = ("vpnservices", "ikepolicies", "ipsecpolicies", "ipsec-site-connections")

Row = dict[str, Any]


@pytest.fixture(scope="module")
def project(cloud_env: CloudEnv) -> Iterator[Project]:
    with fresh_project(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def api(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("ec2-groups")
    for database in _database("mariadb", home):
        migrate.upgrade(database, "ec2")
        port = free_port()
        conf = write_conf(home, cloud_env, database, ec2api_listen_port=port)
        with running("ec2-api", conf, port) as it:
            yield it


@pytest.fixture(scope="module")
def ec2(api: Daemon, project: Project) -> Any:
    return api.client(project.keys)


@pytest.fixture(scope="module")
def vpc(ec2: Any) -> str:
    ec2.describe_vpcs()  # the default VPC is there before anything is compared
    return str(ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])


@pytest.fixture
def group(ec2: Any, vpc: str) -> Iterator[str]:
    made = ec2.create_security_group(GroupName="web", Description="of a test", VpcId=vpc)
    yield str(made["GroupId"])
    ec2.delete_security_group(GroupId=made["GroupId"])


def refused(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


def shown(ec2: Any, group_id: str) -> Row:
    [row] = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    return dict(row)


def neutrons(project: Project, name: str, direction: str = "ingress") -> list[Row]:
    """Neutron's rules of the group of that name."""
    [row] = project.listed("security-groups", name=name)
    return [rule for rule in row["security_group_rules"] if rule["direction"] == direction]


def tcp(first: int, last: int, *cidrs: str) -> Row:
    ranges = [{"CidrIp": cidr} for cidr in cidrs or ("0.0.0.0/0",)]
    return {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "IpRanges": ranges}


# -- groups --------------------------------------------------------------------


def test_a_group_from_its_making_to_its_end(ec2: Any, vpc: str, project: Project) -> None:
    before = project.left()
    request = {"GroupName": "life", "Description": "of a group", "VpcId": vpc}
    assert refused(ec2.create_security_group, DryRun=True, **request) == "DryRunOperation"
    tags = [{"ResourceType": "security-group", "Tags": [{"Key": "Name", "Value": "é <1>"}]}]
    made = ec2.create_security_group(TagSpecifications=tags, **request)
    group_id = made["GroupId"]
    ec2.get_waiter("security_group_exists").wait(GroupIds=[group_id])
    [row] = project.listed("security-groups", name="life")
    assert row["description"] == "of a group"
    asked = [{"Name": "tag:Name", "Values": ["é <?>"]}]
    [found] = ec2.describe_security_groups(Filters=asked)["SecurityGroups"]
    assert (found["GroupId"], found["VpcId"]) == (group_id, vpc)
    assert refused(ec2.create_security_group, **request) == "InvalidGroup.Duplicate"
    default = "sg-" + vpc.removeprefix("vpc-")
    assert refused(ec2.delete_security_group, GroupId=default) == "CannotDelete"
    naming = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}
    ec2.authorize_security_group_ingress(GroupId=default, IpPermissions=[naming])
    assert refused(ec2.delete_security_group, GroupId=group_id) == "DependencyViolation"
    ec2.revoke_security_group_ingress(GroupId=default, IpPermissions=[naming])
    assert ec2.delete_security_group(GroupId=group_id)["GroupId"] == group_id
    assert refused(ec2.describe_security_groups, GroupIds=[group_id]) == "InvalidGroup.NotFound"
    assert project.left() == before


def test_a_group_that_a_port_is_in_stays(ec2: Any, vpc: str, project: Project, group: str) -> None:
    [row] = project.listed("security-groups", name="web")
    network = project.neutron("POST", "networks", json={"network": {"name": "odd"}})["network"]
    body = {"port": {"network_id": network["id"], "security_groups": [row["id"]]}}
    port = project.neutron("POST", "ports", json=body)["port"]
    assert refused(ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    assert project.listed("security-groups", name="web")
    project.neutron("DELETE", f"ports/{port['id']}")
    project.neutron("DELETE", f"networks/{network['id']}")


def test_every_rule_of_a_request(ec2: Any, project: Project, group: str) -> None:
    wanted = [
        tcp(22, 22, "10.1.2.3/8", "192.0.2.0/24"),
        tcp(1, 255),
        tcp(0, 80),
        tcp(0, 65535, "10.3.0.0/16"),
        tcp(1, 65535, "10.4.0.0/16"),
        {"IpProtocol": "icmp", "FromPort": 8, "ToPort": -1, "IpRanges": [{"CidrIp": "1.1.1.1/32"}]},
        {"IpProtocol": "50", "IpRanges": [{"CidrIp": "1.1.1.1/32"}]},
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "Description": "self"}]},
        {
            "IpProtocol": "58",
            "FromPort": -1,
            "ToPort": -1,
            "Ipv6Ranges": [{"CidrIpv6": "2001:db8::1/32"}],
        },
    ]
    made = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=wanted)
    assert len(made["SecurityGroupRules"]) == 10
    told = {
        (row["protocol"], row["port_range_min"], row["port_range_max"], row["normalized_cidr"])
        for row in neutrons(project, "web")
    }
    assert told == {
        ("tcp", 22, 22, "10.0.0.0/8"),
        ("tcp", 22, 22, "192.0.2.0/24"),
        ("tcp", 1, 255, "0.0.0.0/0"),
        ("tcp", 1, 80, "0.0.0.0/0"),
        ("tcp", None, None, "10.3.0.0/16"),
        ("tcp", None, None, "10.4.0.0/16"),
        ("icmp", 8, None, "1.1.1.1/32"),
        ("50", None, None, "1.1.1.1/32"),
        (None, None, None, None),
        ("ipv6-icmp", None, None, "2001:db8::/32"),
    }
    ports = {
        (row["IpProtocol"], row.get("FromPort"), row.get("ToPort"))
        for row in shown(ec2, group)["IpPermissions"]
    }
    assert ports == {
        ("tcp", 22, 22),
        ("tcp", 1, 255),
        ("tcp", 0, 80),
        ("tcp", 0, 65535),
        ("tcp", 1, 65535),
        ("icmp", 8, -1),
        ("50", None, None),
        ("-1", None, None),
        ("icmpv6", -1, -1),
    }
    again = refused(ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=wanted)
    assert again == "InvalidPermission.Duplicate"
    partly = [tcp(99, 99), wanted[0]]
    again = refused(ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=partly)
    assert again == "InvalidPermission.Duplicate"
    assert len(neutrons(project, "web")) == 10
    # The very answer of a describe revokes everything.
    all_of_it = shown(ec2, group)["IpPermissions"]
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=all_of_it)
    assert neutrons(project, "web") == []
    gone = refused(ec2.revoke_security_group_ingress, GroupId=group, IpPermissions=[wanted[0]])
    assert gone == "InvalidPermission.NotFound"


def test_terraforms_first_revocation(ec2: Any, project: Project, group: str) -> None:
    assert len(neutrons(project, "web", "egress")) == 2
    everything: Row = {"IpProtocol": "-1", "FromPort": 0, "ToPort": 0}
    for ranges in (
        {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
        {"Ipv6Ranges": [{"CidrIpv6": "::/0"}]},
    ):
        ec2.revoke_security_group_egress(GroupId=group, IpPermissions=[everything | ranges])
    assert neutrons(project, "web", "egress") == []
    assert shown(ec2, group)["IpPermissionsEgress"] == []


def test_rules_keep_their_ids(ec2: Any, project: Project, group: str) -> None:
    tags = [{"ResourceType": "security-group-rule", "Tags": [{"Key": "a", "Value": "b"}]}]
    request = {"GroupId": group, "IpPermissions": [tcp(22, 22)], "TagSpecifications": tags}
    [made] = ec2.authorize_security_group_ingress(**request)["SecurityGroupRules"]
    rule_id = made["SecurityGroupRuleId"]
    change = {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 81, "CidrIpv4": "10.0.0.0/8"}
    updates = [{"SecurityGroupRuleId": rule_id, "SecurityGroupRule": change}]
    ec2.modify_security_group_rules(GroupId=group, SecurityGroupRules=updates)
    [row] = neutrons(project, "web")
    assert (row["port_range_min"], row["normalized_cidr"]) == (80, "10.0.0.0/8")
    said = [{"SecurityGroupRuleId": rule_id, "Description": "said later"}]
    ec2.update_security_group_rule_descriptions_ingress(
        GroupId=group, SecurityGroupRuleDescriptions=said
    )
    [found] = ec2.describe_security_group_rules(SecurityGroupRuleIds=[rule_id])[
        "SecurityGroupRules"
    ]
    told = {name: found[name] for name in ("FromPort", "ToPort", "CidrIpv4", "Description")}
    assert told == {"FromPort": 80, "ToPort": 81, "CidrIpv4": "10.0.0.0/8",
                    "Description": "said later"}  # fmt: skip
    assert found["Tags"] == [{"Key": "a", "Value": "b"}]
    ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[rule_id])
    assert neutrons(project, "web") == []
    left = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [rule_id]}])
    assert left["Tags"] == []


def test_250_rules_in_one_call(ec2: Any, project: Project, group: str) -> None:
    wanted = [tcp(1000 + number, 1000 + number, f"10.0.{number}.0/24") for number in range(250)]
    made = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=wanted)
    assert len(made["SecurityGroupRules"]) == 250
    assert len(neutrons(project, "web")) == 250
    assert len(shown(ec2, group)["IpPermissions"]) == 250


def test_a_default_group_that_was_deleted_is_made_again_once(
    ec2: Any, vpc: str, project: Project
) -> None:
    [row] = project.listed("security-groups", name=vpc)
    project.neutron("DELETE", f"security-groups/{row['id']}")
    asked = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": ["default"]}]

    def look(_: int) -> str:
        [found] = ec2.describe_security_groups(Filters=asked)["SecurityGroups"]
        return str(found["GroupId"])

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(look, range(4))) == {"sg-" + vpc.removeprefix("vpc-")}
    assert len(project.listed("security-groups", name=vpc)) == 1


def test_names_are_made_once(ec2: Any, vpc: str, project: Project) -> None:
    def make(_: int) -> str:
        request = {"GroupName": "race", "Description": "x", "VpcId": vpc}
        try:
            return str(ec2.create_security_group(**request)["GroupId"])
        except ClientError as error:
            return str(error.response["Error"]["Code"])

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(make, range(5)))
    assert answers.count("InvalidGroup.Duplicate") == 4
    assert len(project.listed("security-groups", name="race")) == 1
    ec2.delete_security_group(GroupId=next(each for each in answers if each.startswith("sg-")))


# -- VPN -----------------------------------------------------------------------


def vpn(project: Project) -> dict[str, list[str]]:
    """The names of what the project has of Neutron's VPN service."""
    made = {}
    for what in VPN:
        answer = project.neutron("GET", f"vpn/{what}?project_id={project.id}")
        made[what] = sorted(row["name"] for row in answer[what.replace("-", "_")])
    return made


def test_a_vpn_from_nothing_to_nothing(ec2: Any, vpc: str, project: Project) -> None:
    nothing: dict[str, list[str]] = {what: [] for what in VPN}
    before = project.left()
    assert vpn(project) == nothing
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    [table] = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])[
        "RouteTables"
    ]
    cgw = ec2.create_customer_gateway(Type="ipsec.1", PublicIp=CUSTOMER, BgpAsn=65000)
    cgw = cgw["CustomerGateway"]["CustomerGatewayId"]
    vgw = ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=vgw)
    assert vpn(project) == nothing | {"vpnservices": [subnet]}
    [router] = project.listed("routers", name=vpc)
    assert router["external_gateway_info"]
    request = {
        "CustomerGatewayId": cgw,
        "VpnGatewayId": vgw,
        "Type": "ipsec.1",
        "Options": {"StaticRoutesOnly": True},
    }
    made = ec2.create_vpn_connection(**request)["VpnConnection"]
    connection = made["VpnConnectionId"]
    ec2.get_waiter("vpn_connection_available").wait(VpnConnectionIds=[connection])
    outside = [row["ip_address"] for row in router["external_gateway_info"]["external_fixed_ips"]]
    assert f"<ip_address>{outside[0]}</ip_address>" in made["CustomerGatewayConfiguration"]
    ec2.create_vpn_connection_route(VpnConnectionId=connection, DestinationCidrBlock=RANGE)
    assert vpn(project)["ipsec-site-connections"] == []
    ec2.enable_vgw_route_propagation(RouteTableId=table["RouteTableId"], GatewayId=vgw)
    name = f"{connection}/{subnet}"
    assert vpn(project) == {
        "vpnservices": [subnet],
        "ikepolicies": [connection],
        "ipsecpolicies": [connection],
        "ipsec-site-connections": [name],
    }
    ec2.create_vpn_connection_route(VpnConnectionId=connection, DestinationCidrBlock="10.8.0.0/16")
    [row] = project.neutron("GET", f"vpn/ipsec-site-connections?project_id={project.id}")[
        "ipsec_site_connections"
    ]
    assert sorted(row["peer_cidrs"]) == ["10.8.0.0/16", RANGE]
    assert (row["peer_address"], row["mtu"]) == (CUSTOMER, 1427)
    assert f"<pre_shared_key>{row['psk']}</pre_shared_key>" in made["CustomerGatewayConfiguration"]
    # Every wrong order.
    assert refused(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
    assert refused(ec2.delete_vpn_gateway, VpnGatewayId=vgw) == "IncorrectState"
    assert refused(ec2.delete_customer_gateway, CustomerGatewayId=cgw) == "IncorrectState"
    # A second subnet comes and goes with what belongs to it.
    second = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.2.0/24")["Subnet"]["SubnetId"]
    assert vpn(project)["ipsec-site-connections"] == sorted([name, f"{connection}/{second}"])
    ec2.delete_subnet(SubnetId=second)
    assert vpn(project)["vpnservices"] == [subnet]
    ec2.detach_vpn_gateway(VpcId=vpc, VpnGatewayId=vgw)
    assert vpn(project) == nothing | {"ikepolicies": [connection], "ipsecpolicies": [connection]}
    [router] = project.listed("routers", name=vpc)
    assert router["external_gateway_info"] is None
    ec2.attach_vpn_gateway(VpcId=vpc, VpnGatewayId=vgw)
    assert vpn(project)["ipsec-site-connections"] == [name]
    ec2.delete_vpn_connection(VpnConnectionId=connection)
    assert vpn(project) == nothing | {"vpnservices": [subnet]}
    asked = {"VpnConnectionIds": [connection]}
    assert refused(ec2.describe_vpn_connections, **asked) == "InvalidVpnConnectionID.NotFound"
    ec2.detach_vpn_gateway(VpcId=vpc, VpnGatewayId=vgw)
    ec2.delete_vpn_gateway(VpnGatewayId=vgw)
    ec2.delete_customer_gateway(CustomerGatewayId=cgw)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)
    assert vpn(project) == nothing
    assert project.left() == before


def test_acls_and_what_there_is_none_of(ec2: Any, vpc: str) -> None:
    asked = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "default", "Values": ["true"]}]
    [acl] = ec2.describe_network_acls(Filters=asked)["NetworkAcls"]
    assert acl["NetworkAclId"] == "acl-" + vpc.removeprefix("vpc-")
    assert refused(ec2.create_network_acl, VpcId=vpc) == "UnsupportedOperation"
    for name in (
        "nat_gateways",
        "vpc_endpoints",
        "vpc_peering_connections",
        "transit_gateways",
        "flow_logs",
        "managed_prefix_lists",
        "egress_only_internet_gateways",
    ):
        answer = getattr(ec2, f"describe_{name}")()
        assert [value for value in answer.values() if isinstance(value, list)] == [[]]
