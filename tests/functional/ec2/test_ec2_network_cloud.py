"""Interfaces, addresses and launches into a VPC on a real cloud, asked what is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import DEMO, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.ports import free_port
from trimaran.db import migrate

WAIT = {"Delay": 1, "MaxAttempts": 300}
FLAVOR = "cirros256"


@dataclass
class World:
    """A VPC with a way out.

    Attributes:
        ec2: the client of the project's member.
    """

    ec2: Any
    tenant: Tenant
    vpc: str
    subnet: str
    gateway: str
    image: str

    def interface(self, **request: Any) -> str:
        made = self.ec2.create_network_interface(SubnetId=self.subnet, **request)
        return str(made["NetworkInterface"]["NetworkInterfaceId"])

    def shown(self, interface: str) -> dict[str, Any]:
        rows = self.ec2.describe_network_interfaces(NetworkInterfaceIds=[interface])
        [row] = rows["NetworkInterfaces"]
        return dict(row)

    def run(self, **request: Any) -> dict[str, Any]:
        asked = {"ImageId": self.image, "InstanceType": FLAVOR, "MinCount": 1, "MaxCount": 1}
        [made] = self.ec2.run_instances(**{**asked, **request})["Instances"]
        return dict(made)

    def instance(self, instance: str) -> dict[str, Any]:
        answer = self.ec2.describe_instances(InstanceIds=[instance])
        return dict(answer["Reservations"][0]["Instances"][0])

    def wait(self, waiter: str, **request: Any) -> None:
        self.ec2.get_waiter(waiter).wait(WaiterConfig=WAIT, **request)

    def end(self, *instances: str) -> None:
        self.ec2.terminate_instances(InstanceIds=list(instances))
        self.wait("instance_terminated", InstanceIds=list(instances))


@pytest.fixture(scope="module")
def api(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home: Path = tmp_path_factory.mktemp("ec2-network")
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    with running("ec2-api", write_conf(home, cloud_env, url, ec2api_listen_port=port), port) as it:
        yield it


@pytest.fixture(scope="module")
def world(api: Daemon, cloud_env: CloudEnv) -> Iterator[World]:
    with tenant(cloud_env) as made:
        ec2 = api.client(made.keys)
        ec2.describe_vpcs()  # the default VPC is there before anything is compared
        vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.1.0/24")["Subnet"]["SubnetId"]
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
        [image] = ec2.describe_images(Filters=named)["Images"]
        yield World(ec2, made, vpc, subnet, gateway, image["ImageId"])


@pytest.fixture
def nothing_left(world: World) -> Iterator[None]:
    """The test leaves Neutron and Nova as they were."""
    before = world.tenant.left()
    yield
    with contextlib.suppress(AssertionError):
        until(lambda: world.tenant.left() == before)
    assert world.tenant.left() == before


def _refused(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


@pytest.mark.usefixtures("nothing_left")
def test_an_interface_from_birth_to_death(world: World, api: Daemon, cloud_env: CloudEnv) -> None:
    ec2, cloud = world.ec2, world.tenant
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "k", "Value": "<1> ü"}]}]
    interface = world.interface(
        Description="007",
        PrivateIpAddress="10.20.1.9",
        SecondaryPrivateIpAddressCount=1,
        TagSpecifications=tags,
    )
    port = cloud.port(interface)
    fixed = sorted(row["ip_address"] for row in port["fixed_ips"])
    shown = world.shown(interface)
    assert sorted(row["PrivateIpAddress"] for row in shown["PrivateIpAddresses"]) == fixed
    assert (shown["PrivateIpAddress"], shown["MacAddress"]) == ("10.20.1.9", port["mac_address"])
    assert (shown["TagSet"], shown["Description"]) == (tags[0]["Tags"], "007")
    [group] = cloud.rows("security-groups", name=world.vpc)
    assert port["security_groups"] == [group["id"]]
    assert shown["Groups"][0]["GroupName"] == "default"
    theirs = api.client(keys_of(cloud_env, DEMO))
    unknown = "InvalidNetworkInterfaceID.NotFound"
    assert _refused(theirs.delete_network_interface, NetworkInterfaceId=interface) == unknown
    asked = {"NetworkInterfaceId": interface}

    ec2.modify_network_interface_attribute(**asked, SourceDestCheck={"Value": False})
    assert cloud.port(interface)["allowed_address_pairs"][0]["ip_address"] == "0.0.0.0/0"
    ec2.reset_network_interface_attribute(**asked, SourceDestCheck="sourceDestCheck")
    assert cloud.port(interface)["allowed_address_pairs"] == []
    web = ec2.create_security_group(GroupName="web", Description="d", VpcId=world.vpc)["GroupId"]
    ec2.modify_network_interface_attribute(**asked, Groups=[web])
    assert [row["GroupId"] for row in world.shown(interface)["Groups"]] == [web]
    assert cloud.port(interface)["security_groups"] != [group["id"]]
    assert _refused(ec2.delete_security_group, GroupId=web) == "DependencyViolation"

    answer = ec2.assign_private_ip_addresses(**asked, PrivateIpAddresses=["10.20.1.40"])
    assert answer["AssignedPrivateIpAddresses"] == [{"PrivateIpAddress": "10.20.1.40"}]
    assert len(cloud.port(interface)["fixed_ips"]) == 3
    ec2.unassign_private_ip_addresses(**asked, PrivateIpAddresses=["10.20.1.40"])
    assert sorted(r["ip_address"] for r in cloud.port(interface)["fixed_ips"]) == fixed

    # Rows 54 to 57 of the conformance checks.
    create = ec2.create_network_interface
    bad = "InvalidParameterValue"
    for address in ("10.21.0.1", "10.20.1.255", "10.20.1.1", "10.20.1.9"):
        assert _refused(create, SubnetId=world.subnet, PrivateIpAddress=address) == bad
    unassign = ec2.unassign_private_ip_addresses
    assert _refused(unassign, **asked, PrivateIpAddresses=["10.20.1.9"]) == bad
    modify = ec2.modify_network_interface_attribute
    combination = "InvalidParameterCombination"
    assert _refused(modify, **asked) == combination
    both = {"Description": {"Value": "x"}, "SourceDestCheck": {"Value": True}}
    assert _refused(modify, **asked, **both) == combination
    assert _refused(ec2.delete_subnet, SubnetId=world.subnet) == "DependencyViolation"
    ec2.delete_network_interface(**asked)
    assert _refused(ec2.describe_network_interfaces, NetworkInterfaceIds=[interface]) == unknown
    ec2.delete_security_group(GroupId=web)


@pytest.mark.usefixtures("nothing_left")
def test_an_elastic_ip_from_birth_to_death(world: World) -> None:
    ec2, cloud = world.ec2, world.tenant
    first, second = world.interface(), world.interface(SecondaryPrivateIpAddressCount=1)
    # Rows 47 to 53.
    assert _refused(ec2.allocate_address, Domain="bad") == "InvalidParameterValue"
    tags = [{"ResourceType": "elastic-ip", "Tags": [{"Key": "k", "Value": "v"}]}]
    made = ec2.allocate_address(Domain="vpc", TagSpecifications=tags)
    allocation, public = made["AllocationId"], made["PublicIp"]
    assert cloud.address(public)["description"] == allocation
    alone = ec2.create_vpc(CidrBlock="10.30.0.0/16")["Vpc"]["VpcId"]
    closed = ec2.create_subnet(VpcId=alone, CidrBlock="10.30.0.0/24")["Subnet"]["SubnetId"]
    island = ec2.create_network_interface(SubnetId=closed)["NetworkInterface"]
    asked = {"AllocationId": allocation}
    assert (
        _refused(ec2.associate_address, **asked, NetworkInterfaceId=island["NetworkInterfaceId"])
        == "Gateway.NotAttached"
    )
    one = ec2.associate_address(**asked, NetworkInterfaceId=first)["AssociationId"]
    assert cloud.address(public)["port_id"] == cloud.port(first)["id"]
    again = ec2.associate_address(**asked, NetworkInterfaceId=first)
    assert again["AssociationId"] == one
    move = {**asked, "NetworkInterfaceId": second}
    assert _refused(ec2.associate_address, **move) == "Resource.AlreadyAssociated"
    two = ec2.associate_address(**move, AllowReassociation=True)["AssociationId"]
    assert cloud.address(public)["port_id"] == cloud.port(second)["id"]
    gone = "InvalidAssociationID.NotFound"
    for unknown in ("eipassoc-00000001", one):
        assert _refused(ec2.disassociate_address, AssociationId=unknown) == gone
    by_tag = [{"Name": "tag:k", "Values": ["v"]}, {"Name": "association-id", "Values": [two]}]
    [row] = ec2.describe_addresses(Filters=by_tag)["Addresses"]
    assert (row["NetworkInterfaceId"], row["PublicIp"]) == (second, public)
    other = ec2.allocate_address(Domain="vpc")["AllocationId"]
    rival = {"AllocationId": other, "NetworkInterfaceId": second}
    assert _refused(ec2.associate_address, **rival) == "Resource.AlreadyAssociated"
    rows = world.shown(second)["PrivateIpAddresses"]
    secondary = next(row["PrivateIpAddress"] for row in rows if not row["Primary"])
    ec2.associate_address(**rival, PrivateIpAddress=secondary)
    ec2.unassign_private_ip_addresses(NetworkInterfaceId=second, PrivateIpAddresses=[secondary])
    assert "AssociationId" not in ec2.describe_addresses(AllocationIds=[other])["Addresses"][0]
    ec2.release_address(AllocationId=other)
    assert _refused(ec2.release_address, PublicIp=public) == "InvalidParameterValue"
    assert _refused(ec2.release_address, AllocationId=allocation) == "InvalidIPAddress.InUse"
    detach = {"InternetGatewayId": world.gateway, "VpcId": world.vpc}
    assert _refused(ec2.detach_internet_gateway, **detach) == "DependencyViolation"
    # What is done in Neutron is seen.
    path = f"floatingips/{cloud.address(public)['id']}"
    cloud.project.neutron("PUT", path, json={"floatingip": {"port_id": None}})
    [row] = ec2.describe_addresses(AllocationIds=[allocation])["Addresses"]
    assert "AssociationId" not in row
    ec2.release_address(AllocationId=allocation)
    assert cloud.rows("floatingips", floating_ip_address=public) == []
    for each in (first, second, island["NetworkInterfaceId"]):
        ec2.delete_network_interface(NetworkInterfaceId=each)
    ec2.delete_subnet(SubnetId=closed)
    ec2.delete_vpc(VpcId=alone)


@pytest.mark.usefixtures("nothing_left")
def test_the_life_of_an_instance_in_a_subnet(world: World) -> None:
    """Rows 58, 64, 70 and 72: interfaces new and old, a public address, and what stays."""
    ec2, cloud = world.ec2, world.tenant
    old = world.interface(Description="old")
    interfaces = [
        {
            "DeviceIndex": 0,
            "SubnetId": world.subnet,
            "AssociatePublicIpAddress": True,
            "PrivateIpAddress": "10.20.1.50",
        },
        {"DeviceIndex": 1, "NetworkInterfaceId": old},
    ]
    instance = world.run(NetworkInterfaces=interfaces)["InstanceId"]
    world.wait("instance_running", InstanceIds=[instance])
    server = cloud.servers()[instance]
    shown = world.instance(instance)
    [row] = cloud.rows("floatingips")
    assert shown["PublicIpAddress"] == row["floating_ip_address"]
    assert (shown["VpcId"], shown["SubnetId"]) == (world.vpc, world.subnet)
    assert shown["PrivateIpAddress"] == "10.20.1.50"
    plugged = [each["NetworkInterfaceId"] for each in shown["NetworkInterfaces"]]
    assert plugged[1] == old
    ports = [cloud.port(each) for each in plugged]
    assert {port["device_id"] for port in ports} == {server["id"]}
    listed = cloud.nova("GET", f"/servers/{server['id']}/os-interface")["interfaceAttachments"]
    assert {each["port_id"] for each in listed} == {port["id"] for port in ports}
    assert ec2.describe_addresses()["Addresses"] == []
    attribute = {"InstanceId": instance, "Attribute": "groupSet"}
    assert _refused(ec2.describe_instance_attribute, **attribute) == "InvalidInstanceID"
    assert _refused(ec2.delete_network_interface, NetworkInterfaceId=old) == (
        "InvalidParameterValue"
    )
    # A third one comes and goes while the instance runs.
    hot = world.interface()
    attach = {"NetworkInterfaceId": hot, "InstanceId": instance}
    assert _refused(ec2.attach_network_interface, **attach, DeviceIndex=1) == (
        "InvalidParameterValue"
    )
    attachment = ec2.attach_network_interface(**attach, DeviceIndex=2)["AttachmentId"]
    assert cloud.port(hot)["device_id"] == server["id"]
    assert world.shown(hot)["Attachment"]["Status"] == "attached"
    ec2.detach_network_interface(AttachmentId=attachment)
    world.wait("network_interface_available", NetworkInterfaceIds=[hot])
    listed = cloud.nova("GET", f"/servers/{server['id']}/os-interface")["interfaceAttachments"]
    assert cloud.port(hot)["id"] not in {each["port_id"] for each in listed}
    ec2.delete_network_interface(NetworkInterfaceId=hot)
    ec2.terminate_instances(InstanceIds=[instance])
    # Nobody looks, and yet what goes with the instance goes.
    until(lambda: not cloud.rows("floatingips") and not cloud.rows("ports", name=plugged[0]))
    world.wait("instance_terminated", InstanceIds=[instance])
    assert world.shown(old)["Status"] == "available"
    ec2.delete_network_interface(NetworkInterfaceId=old)


@pytest.mark.usefixtures("nothing_left")
def test_what_the_quota_refuses_in_the_middle_is_undone(world: World) -> None:
    ec2, cloud = world.ec2, world.tenant
    old = world.interface()
    interfaces = [
        {"DeviceIndex": 0, "SubnetId": world.subnet, "AssociatePublicIpAddress": True},
        {"DeviceIndex": 1, "NetworkInterfaceId": old},
        {"DeviceIndex": 2, "SubnetId": world.subnet},
    ]
    request = {"NetworkInterfaces": interfaces, "ClientToken": "quota"}
    before = cloud.left()
    cloud.quota(port=len(cloud.rows("ports")) + 1)
    try:
        with pytest.raises(ClientError, match="InsufficientFreeAddressesInSubnet"):
            world.run(**request)
        assert cloud.left() == before
        assert world.shown(old)["Status"] == "available"
        assert ec2.describe_instances()["Reservations"] == [] or all(
            each["State"]["Name"] == "terminated"
            for row in ec2.describe_instances()["Reservations"]
            for each in row["Instances"]
        )
    finally:
        cloud.quota(port=500)
    instance = world.run(**request)["InstanceId"]
    world.wait("instance_running", InstanceIds=[instance])
    assert len(world.instance(instance)["NetworkInterfaces"]) == 3
    world.end(instance)
    ec2.delete_network_interface(NetworkInterfaceId=old)


@pytest.mark.usefixtures("nothing_left")
def test_a_server_deleted_in_nova_takes_its_interface_along(world: World) -> None:
    cloud = world.tenant
    made = world.run(SubnetId=world.subnet)
    instance = made["InstanceId"]
    world.wait("instance_running", InstanceIds=[instance])
    interface = made["NetworkInterfaces"][0]["NetworkInterfaceId"]
    world.instance(instance)
    cloud.nova("DELETE", f"/servers/{cloud.servers()[instance]['id']}")
    until(lambda: instance not in cloud.servers())
    code = "InvalidNetworkInterfaceID.NotFound"
    assert _refused(world.ec2.describe_network_interfaces, NetworkInterfaceIds=[interface]) == code
    assert world.instance(instance)["State"]["Name"] == "terminated"
    assert cloud.rows("ports", name=interface) == []


def test_with_nothing_named_it_is_the_default_vpc(world: World) -> None:
    ec2 = world.ec2
    instance = world.run()["InstanceId"]
    [vpc] = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    world.wait("instance_running", InstanceIds=[instance])
    shown = world.instance(instance)
    assert shown["VpcId"] == vpc["VpcId"]
    assert shown["PublicIpAddress"]
    assert shown["SecurityGroups"][0]["GroupName"] == "default"
    address = ec2.allocate_address()
    ec2.associate_address(AllocationId=address["AllocationId"], InstanceId=instance)
    assert world.instance(instance)["PublicIpAddress"] == address["PublicIp"]
    [row] = world.tenant.rows("floatingips")
    assert row["floating_ip_address"] == address["PublicIp"]
    # In the default VPC releasing includes disassociating.
    ec2.release_address(AllocationId=address["AllocationId"])
    assert world.tenant.rows("floatingips") == []
    world.end(instance)


def test_a_launch_and_a_deletion_of_its_subnet_exclude_each_other(world: World) -> None:
    ec2 = world.ec2
    made = ec2.create_subnet(VpcId=world.vpc, CidrBlock="10.20.9.0/24")["Subnet"]["SubnetId"]
    instance = world.run(SubnetId=made)["InstanceId"]
    assert _refused(ec2.delete_subnet, SubnetId=made) == "DependencyViolation"
    world.wait("instance_running", InstanceIds=[instance])
    world.end(instance)
    ec2.delete_subnet(SubnetId=made)
    launch = {"ImageId": world.image, "InstanceType": FLAVOR, "MinCount": 1, "MaxCount": 1}
    assert _refused(ec2.run_instances, **launch, SubnetId=made) == "InvalidSubnetID.NotFound"
