"""Elastic IPs on a Neutron of dictionaries: allocated, associated, shown, released."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_openstack import MINE, OPERATOR, Caller, code_of, instances_of
from tests.support.ec2_ports import Place, Ports
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.interfaces.address import describe_addresses, describe_addresses_attribute
from trimaran.ec2.kinds.interfaces.address_allocate import allocate_address, release_address
from trimaran.ec2.kinds.interfaces.address_associate import associate_address, disassociate_address
from trimaran.ec2.kinds.interfaces.network_interface import (
    delete_network_interface,
    describe_network_interfaces,
)
from trimaran.ec2.kinds.interfaces.network_interface_assign import unassign_private_ip_addresses
from trimaran.ec2.kinds.interfaces.network_interface_attach import attach_network_interface
from trimaran.ec2.kinds.interfaces.network_interface_create import create_network_interface
from trimaran.ec2.kinds.tag import create_tags, describe_tags
from trimaran.ec2.kinds.vpcs.internet_gateway import detach_internet_gateway
from trimaran.identity import count_calls

CLOUD = Ports


@pytest.fixture
def vpc_only(me: Caller) -> Caller:
    """A caller for whom there is no EC2-Classic."""
    me.conf.set_override("disable_ec2_classic", True)
    return me


@pytest.fixture
def place(openstack: Ports, vpc_only: Caller) -> Place:
    return Place(vpc_only)


def _interface(me: Caller, place: Place, **request: Any) -> str:
    made = me(create_network_interface, SubnetId=place.subnet, **request)["NetworkInterface"]
    return str(made["NetworkInterfaceId"])


def _allocate(me: Caller, **request: Any) -> tuple[str, str]:
    made = me(allocate_address, **request)
    return made["AllocationId"], made["PublicIp"]


def _shown(me: Caller, allocation: str) -> dict[str, Any]:
    [row] = me(describe_addresses, AllocationIds=[allocation])["Addresses"]
    return dict(row)


def _items(me: Caller) -> dict[str, Any]:
    rows = me.db.read(lambda s: queries.items_of(s, MINE, ["eipalloc"]))
    return {row.id: row.data for row in rows}


def test_an_address_is_a_floating_ip(openstack: Ports, vpc_only: Caller) -> None:
    me = vpc_only
    tags = [{"ResourceType": "elastic-ip", "Tags": [{"Key": "Name", "Value": "1"}]}]
    assert code_of(me, allocate_address, Domain="vpc", DryRun=True) == "DryRunOperation"
    made = me(allocate_address, Domain="vpc", PublicIpv4Pool="amazon", TagSpecifications=tags)
    allocation = made["AllocationId"]
    [row] = openstack.all("floatingips")
    assert made == {
        "PublicIp": row["floating_ip_address"],
        "AllocationId": allocation,
        "Domain": "vpc",
        "PublicIpv4Pool": "amazon",
        "NetworkBorderGroup": "RegionOne",
    }
    assert row["floating_network_id"] == openstack.external["id"]
    assert row["description"] == allocation
    assert _shown(me, allocation) == {**made, "Tags": [{"Key": "Name", "Value": "1"}]}
    me(create_tags, Resources=[allocation], Tags=[{"Key": "k", "Value": "v"}])
    by_tag = [{"Name": "tag:k", "Values": ["v"]}]
    assert len(me(describe_addresses, Filters=by_tag)["Addresses"]) == 1
    [kind] = {tag["ResourceType"] for tag in me(describe_tags)["Tags"]}
    assert kind == "elastic-ip"
    assert me(describe_addresses_attribute, AllocationIds=[allocation]) == {"Addresses": []}
    me(release_address, AllocationId=allocation)
    assert openstack.all("floatingips") == []
    assert _items(me) == {}
    assert me(describe_tags)["Tags"] == []
    unknown = "InvalidAllocationID.NotFound"
    assert code_of(me, release_address, AllocationId=allocation) == unknown
    assert code_of(me, describe_addresses, AllocationIds=[allocation]) == unknown


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"Domain": "bad"}, "InvalidParameterValue"),
        ({"Address": "172.24.4.9"}, "UnsupportedOperation"),
        ({"IpamPoolId": "ipam-1"}, "UnsupportedOperation"),
        ({"PublicIpv4Pool": "mine"}, "InvalidPublicIpv4PoolID.NotFound"),
        ({"NetworkBorderGroup": "mars"}, "InvalidParameterValue"),
        ({"TagSpecifications": [{"ResourceType": "vpc", "Tags": []}]}, "InvalidParameterValue"),
    ],
)
def test_wrong_allocations(
    openstack: Ports, vpc_only: Caller, request_: dict[str, Any], code: str
) -> None:
    assert code_of(vpc_only, allocate_address, **request_) == code
    assert openstack.all("floatingips") == []


def test_quota_and_external_networks(openstack: Ports, vpc_only: Caller) -> None:
    openstack.most["floatingips"] = 1
    _allocate(vpc_only)
    assert code_of(vpc_only, allocate_address) == "AddressLimitExceeded"
    assert len(_items(vpc_only)) == 1
    openstack.put("networks", name="public2", project_id=OPERATOR, external=True)
    assert code_of(vpc_only, allocate_address) == "Unsupported"
    openstack.topology["networks"].clear()
    assert code_of(vpc_only, allocate_address) == "Unsupported"


@pytest.mark.parametrize("moment", range(4))
def test_a_crash_of_an_allocation_leaves_all_or_nothing(
    openstack: Ports, vpc_only: Caller, moment: int
) -> None:
    deaths = Deaths(moment)
    watched = ((Network, "create_floating_ip"), (Database, "write"))
    with pytest.raises(Death), dying(deaths, *watched):
        _allocate(vpc_only)
    run_all(vpc_only)
    shown = [row["PublicIp"] for row in vpc_only(describe_addresses)["Addresses"]]
    assert shown == [row["floating_ip_address"] for row in openstack.all("floatingips")]
    for row in vpc_only(describe_addresses)["Addresses"]:
        vpc_only(release_address, AllocationId=row["AllocationId"])
    assert openstack.all("floatingips") == []


def test_associations(openstack: Ports, vpc_only: Caller, place: Place) -> None:
    me = vpc_only
    first = _interface(me, place, PrivateIpAddress="10.0.1.9", SecondaryPrivateIpAddressCount=1)
    second = _interface(me, place)
    [other] = set(openstack.addresses(first)) - {"10.0.1.9"}
    allocation, public = _allocate(me)
    asked = {"AllocationId": allocation}
    assert code_of(me, associate_address, **asked, NetworkInterfaceId=first, DryRun=True) == (
        "DryRunOperation"
    )
    association = me(associate_address, **asked, NetworkInterfaceId=first)["AssociationId"]
    row = openstack.address(public)
    assert row["port_id"] == openstack.named(first, "ports")["id"]
    assert row["fixed_ip_address"] == "10.0.1.9"
    shown = _shown(me, allocation)
    assert (shown["AssociationId"], shown["NetworkInterfaceId"]) == (association, first)
    assert (shown["PrivateIpAddress"], shown["NetworkInterfaceOwnerId"]) == ("10.0.1.9", MINE)
    assert "InstanceId" not in shown
    [seen] = me(describe_network_interfaces, NetworkInterfaceIds=[first])["NetworkInterfaces"]
    assert seen["Association"] == {
        "AllocationId": allocation,
        "AssociationId": association,
        "IpOwnerId": MINE,
        "PublicDnsName": "",
        "PublicIp": public,
    }
    # Again: nothing to do.
    again = me(associate_address, **asked, NetworkInterfaceId=first)
    assert again == {"AssociationId": association}
    for target in (
        {"NetworkInterfaceId": second},
        {"NetworkInterfaceId": first, "PrivateIpAddress": other},
    ):
        assert code_of(me, associate_address, **asked, **target) == "Resource.AlreadyAssociated"
        moved = me(associate_address, **asked, **target, AllowReassociation=True)
        assert moved["AssociationId"] not in (association, ids.derive(allocation, "eipassoc"))
        assert code_of(me, disassociate_address, AssociationId=association) == (
            "InvalidAssociationID.NotFound"
        )
        association = moved["AssociationId"]
    assert openstack.address(public)["fixed_ip_address"] == other
    me(disassociate_address, AssociationId=association)
    assert openstack.address(public)["port_id"] is None
    assert "AssociationId" not in _shown(me, allocation)
    # By its number there must be something to end.
    assert code_of(me, disassociate_address, PublicIp=public) == "InvalidParameterValue"
    # One more of the same is no error (for the address's own id), and not for an unknown one.
    me(disassociate_address, AssociationId=ids.derive(allocation, "eipassoc"))
    for unknown in ("eipassoc-00000001", association):
        assert code_of(me, disassociate_address, AssociationId=unknown) == (
            "InvalidAssociationID.NotFound"
        )


def test_an_address_leads_to_the_one_interface_of_an_instance(
    openstack: Ports, vpc_only: Caller, place: Place
) -> None:
    me = vpc_only
    openstack.image()
    openstack.server()
    instance = instances_of(me(describe_instances))[0]["InstanceId"]
    allocation, public = _allocate(me)
    asked = {"AllocationId": allocation, "InstanceId": instance}
    assert code_of(me, associate_address, **asked) == "InvalidParameterCombination"
    plugged = [_interface(me, place) for _ in range(2)]
    attach = attach_network_interface
    me(attach, NetworkInterfaceId=plugged[0], InstanceId=instance, DeviceIndex=1)
    me(associate_address, **asked)
    assert openstack.address(public)["port_id"] == openstack.named(plugged[0], "ports")["id"]
    assert _shown(me, allocation)["InstanceId"] == instance
    [seen] = instances_of(me(describe_instances))
    assert seen["PublicIpAddress"] == public
    by_address = [{"Name": "network-interface.addresses.association.public-ip", "Values": [public]}]
    assert len(instances_of(me(describe_instances, Filters=by_address))) == 1
    me(disassociate_address, PublicIp=public)
    me(attach, NetworkInterfaceId=plugged[1], InstanceId=instance, DeviceIndex=2)
    assert code_of(me, associate_address, **asked) == "InvalidInstanceID"
    # The interface must be the instance's.
    foreign = {**asked, "NetworkInterfaceId": _interface(me, place)}
    assert code_of(me, associate_address, **foreign) == "InvalidParameterCombination"
    me(associate_address, **{**asked, "NetworkInterfaceId": plugged[1]})


@pytest.mark.parametrize(
    ("action", "request_", "code"),
    [
        (associate_address, {}, "MissingParameter"),
        (associate_address, {"AllocationId": "{allocation}"}, "MissingParameter"),
        (
            associate_address,
            {"AllocationId": "{allocation}", "PublicIp": "{public}", "InstanceId": "i-1"},
            "InvalidParameterCombination",
        ),
        (
            associate_address,
            {"AllocationId": "eipalloc-1", "NetworkInterfaceId": "{interface}"},
            "InvalidAllocationID.NotFound",
        ),
        (
            associate_address,
            {"AllocationId": "{allocation}", "NetworkInterfaceId": "eni-1"},
            "InvalidNetworkInterfaceID.NotFound",
        ),
        (
            associate_address,
            {"AllocationId": "{allocation}", "InstanceId": "i-1"},
            "InvalidInstanceID.NotFound",
        ),
        (
            associate_address,
            {
                "AllocationId": "{allocation}",
                "NetworkInterfaceId": "{interface}",
                "PrivateIpAddress": "10.0.1.77",
            },
            "InvalidParameterValue",
        ),
        (
            associate_address,
            {"PublicIp": "192.0.2.1", "NetworkInterfaceId": "{interface}"},
            "AuthFailure",
        ),
        (disassociate_address, {}, "MissingParameter"),
        (
            disassociate_address,
            {"AssociationId": "eipassoc-1", "PublicIp": "192.0.2.1"},
            "InvalidParameterCombination",
        ),
        (disassociate_address, {"PublicIp": "192.0.2.1"}, "AuthFailure"),
        (disassociate_address, {"AssociationId": "eipalloc-1"}, "InvalidParameterValue"),
        (release_address, {}, "MissingParameter"),
        (release_address, {"PublicIp": "{public}"}, "InvalidParameterValue"),
        (release_address, {"PublicIp": "192.0.2.1"}, "AuthFailure"),
        (
            release_address,
            {"AllocationId": "{allocation}", "PublicIp": "{public}"},
            "InvalidParameterCombination",
        ),
        (describe_addresses, {"PublicIps": ["192.0.2.1"]}, "InvalidAllocationID.NotFound"),
        (describe_addresses, {"PublicIps": ["192.0.2"]}, "InvalidParameterValue"),
        (release_address, {"PublicIp": "mine"}, "InvalidParameterValue"),
        (disassociate_address, {"PublicIp": "192.0.2.256"}, "InvalidParameterValue"),
        (
            associate_address,
            {"PublicIp": "::1", "NetworkInterfaceId": "{interface}"},
            "InvalidParameterValue",
        ),
        (
            describe_addresses,
            {"Filters": [{"Name": "fake", "Values": ["x"]}]},
            "InvalidParameterValue",
        ),
        (describe_addresses_attribute, {"Attribute": "fake"}, "InvalidParameterValue"),
        (
            describe_addresses_attribute,
            {"AllocationIds": ["eipalloc-1"]},
            "InvalidAllocationID.NotFound",
        ),
    ],
)
def test_wrong_requests(
    vpc_only: Caller, place: Place, action: Any, request_: dict[str, Any], code: str
) -> None:
    allocation, public = _allocate(vpc_only)
    names = {
        "{allocation}": allocation,
        "{public}": public,
        "{interface}": _interface(vpc_only, place),
    }
    request = {
        name: names.get(value, value) if isinstance(value, str) else value
        for name, value in request_.items()
    }
    assert code_of(vpc_only, action, **request) == code


def test_without_a_way_out_there_is_no_association(openstack: Ports, vpc_only: Caller) -> None:
    place = Place(vpc_only, gateway=False)
    allocation, _ = _allocate(vpc_only)
    asked = {"AllocationId": allocation, "NetworkInterfaceId": _interface(vpc_only, place)}
    assert code_of(vpc_only, associate_address, **asked) == "Gateway.NotAttached"


def test_gateway_and_interface_in_use(openstack: Ports, vpc_only: Caller, place: Place) -> None:
    me = vpc_only
    interface = _interface(me, place, SecondaryPrivateIpAddressCount=1)
    allocation, public = _allocate(me)
    me(associate_address, AllocationId=allocation, NetworkInterfaceId=interface)
    gateway = {"InternetGatewayId": place.gateway, "VpcId": place.vpc}
    assert code_of(me, detach_internet_gateway, **gateway) == "DependencyViolation"
    assert code_of(me, release_address, AllocationId=allocation) == "InvalidIPAddress.InUse"
    # The same private address cannot have two.
    second, _ = _allocate(me)
    asked = {"AllocationId": second, "NetworkInterfaceId": interface}
    assert code_of(me, associate_address, **asked) == "Resource.AlreadyAssociated"
    # Without its private address, and without its interface, an address is free.
    private = openstack.address(public)["fixed_ip_address"]
    [other] = set(openstack.addresses(interface)) - {private}
    me(associate_address, **asked, PrivateIpAddress=other)
    me(unassign_private_ip_addresses, NetworkInterfaceId=interface, PrivateIpAddresses=[other])
    assert "AssociationId" not in _shown(me, second)
    me(delete_network_interface, NetworkInterfaceId=interface)
    assert "AssociationId" not in _shown(me, allocation)
    me(release_address, AllocationId=allocation)


def test_in_the_default_vpc_release_disassociates(
    openstack: Ports, vpc_only: Caller, place: Place
) -> None:
    me = vpc_only
    allocation, _ = _allocate(me)
    me(associate_address, AllocationId=allocation, NetworkInterfaceId=_interface(me, place))
    [vpc] = me.db.read(lambda s: queries.items_by_ids(s, MINE, [place.vpc]))
    data = {**vpc.data, "is_default": True}
    me.db.write(lambda s: queries.update_item(s, MINE, vpc.id, data=data))
    me(release_address, AllocationId=allocation)
    assert openstack.all("floatingips") == []


def test_neutron_is_the_truth_about_associations(
    openstack: Ports, vpc_only: Caller, place: Place
) -> None:
    me = vpc_only
    first, second = (_interface(me, place) for _ in range(2))
    allocation, public = _allocate(me)
    association = me(associate_address, AllocationId=allocation, NetworkInterfaceId=first)
    row = openstack.address(public)
    row.update(port_id=None, fixed_ip_address=None)
    assert "AssociationId" not in _shown(me, allocation)
    assert set(_items(me)[allocation]) == {"public_ip"}
    port = openstack.named(second, "ports")
    row.update(port_id=port["id"], fixed_ip_address=port["fixed_ips"][0]["ip_address"])
    shown = _shown(me, allocation)
    assert shown["NetworkInterfaceId"] == second
    assert shown["AssociationId"] == ids.derive(allocation, "eipassoc")
    assert shown["AssociationId"] != association["AssociationId"]
    me(disassociate_address, AssociationId=shown["AssociationId"])
    assert row["port_id"] is None


@pytest.mark.parametrize("moment", range(4))
def test_a_crash_of_an_association_leaves_what_neutron_says(
    openstack: Ports, vpc_only: Caller, place: Place, moment: int
) -> None:
    me = vpc_only
    interface = _interface(me, place)
    allocation, public = _allocate(me)
    deaths = Deaths(moment)
    asked = {"AllocationId": allocation, "NetworkInterfaceId": interface}
    with (
        pytest.raises(Death),
        dying(deaths, (Network, "update_floating_ip"), (Database, "write")),
    ):
        me(associate_address, **asked)
    run_all(me)
    there = openstack.address(public)["port_id"] is not None
    shown = _shown(me, allocation)
    assert ("AssociationId" in shown) is there is (moment > 0)
    # The client's retry, and the way back.
    again = me(associate_address, **asked)["AssociationId"]
    me(disassociate_address, AssociationId=again)
    assert openstack.address(public)["port_id"] is None


def test_what_others_made_is_the_projects_too(
    openstack: Ports, vpc_only: Caller, them: Caller
) -> None:
    for project in (MINE, "p2"):
        openstack.put(
            "floatingips",
            project_id=project,
            floating_ip_address=f"172.24.9.{len(project) + (project == MINE)}",
            port_id=None,
            fixed_ip_address=None,
            description="by hand",
        )
    [row] = vpc_only(describe_addresses)["Addresses"]
    assert row["Domain"] == "vpc"
    assert _shown(vpc_only, row["AllocationId"]) == row
    by_ip = vpc_only(describe_addresses, PublicIps=[row["PublicIp"]])["Addresses"]
    assert by_ip == [row]
    asked = {"AllocationIds": [row["AllocationId"]]}
    assert code_of(them, describe_addresses, **asked) == "InvalidAllocationID.NotFound"
    del openstack.topology["floatingips"][openstack.address(row["PublicIp"])["id"]]
    assert vpc_only(describe_addresses)["Addresses"] == []
    assert _items(vpc_only) == {}


@pytest.mark.parametrize("details", [True, False])
def test_calls_do_not_grow_with_addresses(
    openstack: Ports, vpc_only: Caller, place: Place, details: bool
) -> None:
    me = vpc_only
    openstack.details = details
    counts = []
    for _ in range(2):
        for _ in range(3):
            allocation, _public = _allocate(me)
            me(
                associate_address,
                AllocationId=allocation,
                NetworkInterfaceId=_interface(me, place),
            )
        with count_calls() as counted:
            assert me(describe_addresses)["Addresses"]
        counts.append(counted.total)
    assert counts[0] == counts[1] == (1 if details else 2)


# -- EC2-Classic -------------------------------------------------------------------


def test_standard_addresses_have_no_item(openstack: Ports, me: Caller) -> None:
    openstack.image()
    network = openstack.put("networks", name="private")
    subnet = openstack.put("subnets", network_id=network["id"], cidr="10.9.0.0/24")
    router = openstack.put("routers", external_gateway_info={"network_id": "public"})
    openstack.put(
        "ports",
        network_id=network["id"],
        device_id=router["id"],
        device_owner="network:router_interface",
        fixed_ips=[{"subnet_id": subnet["id"], "ip_address": "10.9.0.1"}],
    )
    server = openstack.server()
    openstack.port(network["id"], "10.9.0.5", device_id=server["id"], device_owner="compute:nova")
    instance = instances_of(me(describe_instances))[0]["InstanceId"]
    made = me(allocate_address)
    assert made["Domain"] == "standard"
    assert "AllocationId" not in made
    public = made["PublicIp"]
    assert _items(me) == {}
    assert me(describe_addresses)["Addresses"] == [
        {"PublicIp": public, "Domain": "standard", "PublicIpv4Pool": "amazon"}
    ]
    assert me(associate_address, PublicIp=public, InstanceId=instance) == {}
    [row] = me(describe_addresses, PublicIps=[public])["Addresses"]
    assert (row["InstanceId"], row["PrivateIpAddress"]) == (instance, "10.9.0.5")
    me(disassociate_address, PublicIp=public)
    assert openstack.address(public)["port_id"] is None
    vpc = me(allocate_address, Domain="vpc")
    assert code_of(me, release_address, PublicIp=vpc["PublicIp"]) == "InvalidParameterValue"
    assert [row["Domain"] for row in me(describe_addresses)["Addresses"]].count("vpc") == 1
    me(release_address, PublicIp=public)
    assert code_of(me, release_address, PublicIp=public) == "AuthFailure"
    assert len(openstack.all("floatingips")) == 1
