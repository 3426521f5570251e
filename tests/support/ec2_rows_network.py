"""Rows of networks (spec ec2.md 10, rows 22 to 57, 64 and 96 to 100).

They are asked in their order: what a row makes, later ones use.  The world is
that of the other rows with a VPC of its own, and Neutron is asked what came of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from tests.support.ec2_rows import KEPT, TYPE, Row, World, held, said

BAD = "InvalidParameterValue 400"
ANYWHERE = "0.0.0.0/0"
TCP_22 = {
    "IpProtocol": "tcp",
    "FromPort": 22,
    "ToPort": 22,
    "IpRanges": [{"CidrIp": ANYWHERE}],
}
EVERYTHING = {"IpProtocol": "-1", "FromPort": 0, "ToPort": 0, "IpRanges": [{"CidrIp": ANYWHERE}]}


class Network(World):
    """A service, and the topology that the rows look at, made when first asked for."""

    def begin(self) -> None:
        """Nothing is to be started: the first row wants a project with nothing in it."""

    @cached_property
    def vpc(self) -> str:
        return self.new_vpc("10.60.0.0/16")

    @cached_property
    def inner(self) -> str:
        """A subnet of the VPC."""
        return self.new_subnet(self.vpc, "10.60.1.0/24")

    @cached_property
    def gateway(self) -> str:
        """An internet gateway, attached to the VPC."""
        made = str(self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"])
        self.ec2.attach_internet_gateway(InternetGatewayId=made, VpcId=self.vpc)
        return made

    @cached_property
    def table(self) -> str:
        """A route table of the VPC with no routes but the local one."""
        made = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]
        return str(made["RouteTableId"])

    @cached_property
    def group(self) -> str:
        made = self.ec2.create_security_group(GroupName="web", Description="d", VpcId=self.vpc)
        return str(made["GroupId"])

    @cached_property
    def interface(self) -> str:
        return self.new_interface(self.inner)

    @cached_property
    def allocation(self) -> str:
        return str(self.ec2.allocate_address(Domain="vpc")["AllocationId"])

    @cached_property
    def launched(self) -> dict[str, Any]:
        """An instance in the subnet, with a public address, while the gateway is attached."""
        wanted = {"DeviceIndex": 0, "SubnetId": self.inner, "AssociatePublicIpAddress": True}
        made = self.launch(InstanceType=TYPE, NetworkInterfaces=[wanted])["Instances"][0]
        self.wait("instance_running", InstanceIds=[made["InstanceId"]])
        return self.look(made["InstanceId"])

    def new_vpc(self, cidr: str) -> str:
        return str(self.ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"])

    def new_subnet(self, vpc: str, cidr: str) -> str:
        return str(self.ec2.create_subnet(VpcId=vpc, CidrBlock=cidr)["Subnet"]["SubnetId"])

    def new_interface(self, subnet: str) -> str:
        made = self.ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]
        return str(made["NetworkInterfaceId"])

    def main_table(self, vpc: str) -> dict[str, Any]:
        wanted = [
            {"Name": "vpc-id", "Values": [vpc]},
            {"Name": "association.main", "Values": ["true"]},
        ]
        [row] = self.ec2.describe_route_tables(Filters=wanted)["RouteTables"]
        return dict(row)

    def routes(self, table: str) -> dict[str, tuple[str, str]]:
        """Target and state by destination."""
        [row] = self.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
        return {
            each["DestinationCidrBlock"]: (each.get("GatewayId", ""), each["State"])
            for each in row["Routes"]
        }

    def rules(self, group: str) -> list[dict[str, Any]]:
        [row] = self.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
        return list(row["IpPermissions"])


#: The rows by number, in the order in which they are asked.
NETWORK: dict[str, Row] = {}

Ask = Callable[[Any], str]


def row(number: str, call: str, *targets: str) -> Callable[[Ask], Ask]:
    """Registers a row; without a target it is ``as wanted``."""

    def keep(ask: Ask) -> Ask:
        assert number not in NETWORK
        NETWORK[number] = Row(number, call, targets or (KEPT,), ask)
        return ask

    return keep


def each(*answers: str) -> str:
    """Several answers in one."""
    return ", ".join(answers)


# -- VPCs and subnets ---------------------------------------------------------


@row("22", "first describe_vpcs of a fresh project")
def _(w: Network) -> str:
    [vpc] = w.ec2.describe_vpcs()["Vpcs"]
    [subnet] = w.ec2.describe_subnets()["Subnets"]
    [gateway] = w.ec2.describe_internet_gateways()["InternetGateways"]
    own = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
    [group] = w.ec2.describe_security_groups(Filters=own)["SecurityGroups"]
    main = w.main_table(vpc["VpcId"])
    routes = w.routes(main["RouteTableId"])
    [router] = w.mine.rows("routers")
    return held(
        range=(vpc["CidrBlock"], vpc["IsDefault"]) == ("172.31.0.0/16", True),
        subnet=subnet["CidrBlock"] == "172.31.0.0/20",
        gateway=gateway["Attachments"] == [{"State": "available", "VpcId": vpc["VpcId"]}],
        routes=routes[ANYWHERE] == (gateway["InternetGatewayId"], "active"),
        local_route=routes["172.31.0.0/16"] == ("local", "active"),
        group=(group["GroupName"], group["GroupId"])
        == ("default", "sg-" + vpc["VpcId"].removeprefix("vpc-")),
        router=router["name"] == vpc["VpcId"] and bool(router["external_gateway_info"]),
    )


@row("23", "20 first describe_subnets at once, two processes", "20 ok, one default VPC")
def _(w: Network) -> str:
    clients = [w.client(w.other.keys) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        told = list(pool.map(lambda client: said(client.describe_subnets), clients))
    vpcs = w.alt.describe_vpcs()["Vpcs"]
    routers = w.other.listed("routers")
    number = "one default VPC" if len(vpcs) == len(routers) == 1 else f"{len(routers)} routers"
    return f"{told.count('ok')} ok, {number}"


@row("24", "create_vpc: /15, /29, /8", ", ".join(["InvalidVpc.Range 400"] * 3))
def _(w: Network) -> str:
    ranges = ("10.0.0.0/15", "10.0.0.0/29", "10.0.0.0/8")
    return each(*(said(w.ec2.create_vpc, CidrBlock=cidr) for cidr in ranges))


@row("25", "create_vpc(10.0.0.0/16)")
def _(w: Network) -> str:
    made = w.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
    w.ec2.delete_vpc(VpcId=made["VpcId"])
    return held(
        id=made["VpcId"].startswith("vpc-"),
        state=made["State"] == "available",
        no_default=made["IsDefault"] is False,
        dhcp_options=made["DhcpOptionsId"] == "default",
        gone=w.mine.rows("routers", name=made["VpcId"]) == [],
    )


@row("26", "create_vpc with a tag, describe_vpcs(tag:Name)", "found")
def _(w: Network) -> str:
    tags = [{"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": "a"}]}]
    made = w.ec2.create_vpc(CidrBlock="10.62.0.0/16", TagSpecifications=tags)["Vpc"]
    wanted = [{"Name": "tag:Name", "Values": ["a"]}]
    rows = w.ec2.describe_vpcs(Filters=wanted)["Vpcs"]
    w.ec2.delete_vpc(VpcId=made["VpcId"])
    return "found" if [each["VpcId"] for each in rows] == [made["VpcId"]] else f"{len(rows)} rows"


@row(
    "27",
    "create_subnet outside the VPC, overlapping",
    "InvalidSubnet.Range 400, InvalidSubnet.Conflict 400",
)
def _(w: Network) -> str:
    assert w.inner
    return each(
        *(
            said(w.ec2.create_subnet, VpcId=w.vpc, CidrBlock=cidr)
            for cidr in ("10.61.0.0/24", "10.60.1.128/25")
        )
    )


@row("28", "create_subnet(/24)")
def _(w: Network) -> str:
    made = w.ec2.create_subnet(VpcId=w.vpc, CidrBlock="10.60.2.7/24")["Subnet"]
    w.ec2.delete_subnet(SubnetId=made["SubnetId"])
    return held(
        free_addresses=0 < made["AvailableIpAddressCount"] <= 253,
        state=made["State"] == "available",
        zone=bool(made.get("AvailabilityZone")),
        host_bits=made["CidrBlock"] == "10.60.2.0/24",
    )


@row("29", "delete_vpc with a subnet", "DependencyViolation 400")
def _(w: Network) -> str:
    assert w.inner
    return said(w.ec2.delete_vpc, VpcId=w.vpc)


# -- routes and gateways ------------------------------------------------------


@row("30", "create_route_table, as boto3 of today sends it")
def _(w: Network) -> str:
    made = w.ec2.create_route_table(VpcId=w.vpc)["RouteTable"]
    w.ec2.delete_route_table(RouteTableId=made["RouteTableId"])
    local = {
        "DestinationCidrBlock": "10.60.0.0/16",
        "GatewayId": "local",
        "Origin": "CreateRouteTable",
        "State": "active",
    }
    return held(routes=made["Routes"] == [local], vpc=made["VpcId"] == w.vpc)


@row("31", "create_route inside the VPC's range", BAD)
def _(w: Network) -> str:
    inside = {"DestinationCidrBlock": "10.60.5.0/24", "GatewayId": w.gateway}
    return said(w.ec2.create_route, RouteTableId=w.table, **inside)


@row(
    "32",
    "create_route 0.0.0.0/0: twice to one gateway, to another target",
    "ok, ok, RouteAlreadyExists 400",
)
def _(w: Network) -> str:
    route = {"RouteTableId": w.table, "DestinationCidrBlock": ANYWHERE}
    return each(
        said(w.ec2.create_route, **route, GatewayId=w.gateway),
        said(w.ec2.create_route, **route, GatewayId=w.gateway),
        said(w.ec2.create_route, **route, NetworkInterfaceId=w.interface),
    )


@row("33", "delete_route: the local one, an unknown one", f"{BAD}, InvalidRoute.NotFound 400")
def _(w: Network) -> str:
    return each(
        *(
            said(w.ec2.delete_route, RouteTableId=w.table, DestinationCidrBlock=cidr)
            for cidr in ("10.60.0.0/16", "192.168.0.0/24")
        )
    )


@row("34", "detach the gateway of a route", "blackhole, then active again")
def _(w: Network) -> str:
    table, pair = w.table, {"InternetGatewayId": w.gateway, "VpcId": w.vpc}
    w.ec2.detach_internet_gateway(**pair)
    [router] = w.mine.rows("routers", name=w.vpc)
    _, state = w.routes(table)[ANYWHERE]
    w.ec2.attach_internet_gateway(**pair)
    _, later = w.routes(table)[ANYWHERE]
    if router["external_gateway_info"]:
        return "the router kept its way out"
    return f"{state}, then {later} again"


@row("35", "associate_route_table twice", "ok, Resource.AlreadyAssociated 400")
def _(w: Network) -> str:
    request = {"RouteTableId": w.table, "SubnetId": w.inner}
    return each(*(said(w.ec2.associate_route_table, **request) for _ in range(2)))


@row("36", "disassociate the main association", BAD)
def _(w: Network) -> str:
    [main] = w.main_table(w.vpc)["Associations"]
    association = main["RouteTableAssociationId"]
    return said(w.ec2.disassociate_route_table, AssociationId=association)


@row("37", "delete the main table, an associated one", ", ".join(["DependencyViolation 400"] * 2))
def _(w: Network) -> str:
    main = w.main_table(w.vpc)["RouteTableId"]
    return each(*(said(w.ec2.delete_route_table, RouteTableId=it) for it in (main, w.table)))


@row(
    "38",
    "attach_internet_gateway twice, a second gateway",
    f"Resource.AlreadyAssociated 400, {BAD}",
)
def _(w: Network) -> str:
    again = said(w.ec2.attach_internet_gateway, InternetGatewayId=w.gateway, VpcId=w.vpc)
    second = w.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    told = said(w.ec2.attach_internet_gateway, InternetGatewayId=second, VpcId=w.vpc)
    w.ec2.delete_internet_gateway(InternetGatewayId=second)
    return each(again, told)


# -- security groups ----------------------------------------------------------


@row("39", "create_security_group: default, in a VPC", BAD)
def _(w: Network) -> str:
    request = {"GroupName": "default", "Description": "d", "VpcId": w.vpc}
    return said(w.ec2.create_security_group, **request)


@row("40", "a group's name twice in one VPC, in another VPC", "InvalidGroup.Duplicate 400, ok")
def _(w: Network) -> str:
    assert w.group
    request = {"GroupName": "web", "Description": "d"}
    twice = said(w.ec2.create_security_group, **request, VpcId=w.vpc)
    [default] = w.ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    made = w.ec2.create_security_group(**request, VpcId=default["VpcId"])
    w.ec2.delete_security_group(GroupId=made["GroupId"])
    return each(twice, "ok")


@row("41", 'group name name%" in a VPC', "ValidationError 400", BAD)
def _(w: Network) -> str:
    request = {"GroupName": 'name%"', "Description": "d", "VpcId": w.vpc}
    return said(w.ec2.create_security_group, **request)


@row("42", "authorize tcp 22 twice", "true, InvalidPermission.Duplicate 400")
def _(w: Network) -> str:
    request = {"GroupId": w.group, "IpPermissions": [TCP_22]}
    first = w.ec2.authorize_security_group_ingress(**request)["Return"]
    again = said(w.ec2.authorize_security_group_ingress, **request)
    return each(str(first).lower(), again)


@row("43", "authorize one permission with two ranges", "10.0.0.0/8 and 192.0.2.0/24")
def _(w: Network) -> str:
    ranges = [{"CidrIp": "10.0.0.0/8"}, {"CidrIp": "192.0.2.0/24"}]
    wanted = {**TCP_22, "FromPort": 80, "ToPort": 80, "IpRanges": ranges}
    w.ec2.authorize_security_group_ingress(GroupId=w.group, IpPermissions=[wanted])
    [shown] = [each for each in w.rules(w.group) if each["FromPort"] == 80]
    return " and ".join(sorted(each["CidrIp"] for each in shown["IpRanges"]))


@row("44", "revoke tcp 22 twice", "ok, InvalidPermission.NotFound 400")
def _(w: Network) -> str:
    request = {"GroupId": w.group, "IpPermissions": [TCP_22]}
    return each(*(said(w.ec2.revoke_security_group_ingress, **request) for _ in range(2)))


@row("45", "revoke egress -1, 0 to 0, 0.0.0.0/0 of a new group", "true")
def _(w: Network) -> str:
    request = {"GroupId": w.group, "IpPermissions": [EVERYTHING]}
    return str(w.ec2.revoke_security_group_egress(**request)["Return"]).lower()


@row("46", "delete a VPC's default group", "CannotDelete 400")
def _(w: Network) -> str:
    return said(w.ec2.delete_security_group, GroupId="sg-" + w.vpc.removeprefix("vpc-"))


# -- addresses and interfaces -------------------------------------------------


@row("47", "allocate_address(vpc)")
def _(w: Network) -> str:
    made = w.ec2.allocate_address(Domain="vpc")
    [seen] = w.mine.rows("floatingips")
    w.ec2.release_address(AllocationId=made["AllocationId"])
    return held(
        address=made["PublicIp"] == seen["floating_ip_address"],
        allocation=made["AllocationId"].startswith("eipalloc-"),
        domain=made["Domain"] == "vpc",
    )


@row("48", "allocate_address(bad)", BAD)
def _(w: Network) -> str:
    return said(w.ec2.allocate_address, Domain="bad")


@row("49", "associate to an interface in a VPC without gateway", "Gateway.NotAttached 400")
def _(w: Network) -> str:
    island = w.new_vpc("10.61.0.0/16")
    subnet = w.new_subnet(island, "10.61.0.0/24")
    interface = w.new_interface(subnet)
    request = {"AllocationId": w.allocation, "NetworkInterfaceId": interface}
    told = said(w.ec2.associate_address, **request)
    w.ec2.delete_network_interface(NetworkInterfaceId=interface)
    w.ec2.delete_subnet(SubnetId=subnet)
    w.ec2.delete_vpc(VpcId=island)
    return told


@row(
    "50",
    "associate, to another interface without and with AllowReassociation",
    "ok, Resource.AlreadyAssociated 400, ok",
)
def _(w: Network) -> str:
    one, two = w.interface, w.new_interface(w.inner)
    associate = w.ec2.associate_address
    told = each(
        said(associate, AllocationId=w.allocation, NetworkInterfaceId=one),
        said(associate, AllocationId=w.allocation, NetworkInterfaceId=two),
        said(associate, AllocationId=w.allocation, NetworkInterfaceId=two, AllowReassociation=True),
    )
    [seen] = [r for r in w.mine.rows("floatingips") if r["port_id"] == w.mine.port(two)["id"]]
    return told if seen["fixed_ip_address"] else "Neutron does not know"


@row("51", "release a VPC address by PublicIp", BAD)
def _(w: Network) -> str:
    [shown] = w.ec2.describe_addresses(AllocationIds=[w.allocation])["Addresses"]
    return said(w.ec2.release_address, PublicIp=shown["PublicIp"])


@row("52", "disassociate eipassoc-00000001", "InvalidAssociationID.NotFound 400")
def _(w: Network) -> str:
    return said(w.ec2.disassociate_address, AssociationId="eipassoc-00000001")


@row(
    "53", "release an address in use in another VPC than the default", "InvalidIPAddress.InUse 400"
)
def _(w: Network) -> str:
    return said(w.ec2.release_address, AllocationId=w.allocation)


@row("54", "create_network_interface: an address outside the subnet", BAD)
def _(w: Network) -> str:
    request = {"SubnetId": w.inner, "PrivateIpAddress": "10.60.9.9"}
    return said(w.ec2.create_network_interface, **request)


@row("55", "delete an attached interface", BAD, "InvalidNetworkInterface.InUse 400")
def _(w: Network) -> str:
    [attached] = w.launched["NetworkInterfaces"]
    interface = attached["NetworkInterfaceId"]
    return said(w.ec2.delete_network_interface, NetworkInterfaceId=interface)


@row("56", "unassign the primary address", BAD)
def _(w: Network) -> str:
    interfaces = [w.interface]
    [shown] = w.ec2.describe_network_interfaces(NetworkInterfaceIds=interfaces)["NetworkInterfaces"]
    return said(
        w.ec2.unassign_private_ip_addresses,
        NetworkInterfaceId=w.interface,
        PrivateIpAddresses=[shown["PrivateIpAddress"]],
    )


@row(
    "57",
    "modify_network_interface_attribute: two attributes, none",
    ", ".join(["InvalidParameterCombination 400"] * 2),
)
def _(w: Network) -> str:
    two = {"Description": {"Value": "x"}, "SourceDestCheck": {"Value": True}}
    modify = w.ec2.modify_network_interface_attribute
    return each(*(said(modify, NetworkInterfaceId=w.interface, **it) for it in (two, {})))


@row("64", "run_instances: AssociatePublicIpAddress in a subnet")
def _(w: Network) -> str:
    shown = w.launched
    public = shown.get("PublicIpAddress")
    port = w.mine.port(shown["NetworkInterfaces"][0]["NetworkInterfaceId"])
    seen = [r["port_id"] for r in w.mine.rows("floatingips") if r["floating_ip_address"] == public]
    return held(
        the_subnet_that_was_asked_for=shown["SubnetId"] == w.inner,
        public_address=bool(public),
        in_Neutron=seen == [port["id"]],
    )


# -- VPNs and DHCP options ----------------------------------------------------


@row("96", "create_vpn_connection without StaticRoutesOnly", "Unsupported 400")
def _(w: Network) -> str:
    customer = w.ec2.create_customer_gateway(Type="ipsec.1", PublicIp="198.51.100.96", BgpAsn=65000)
    ours = w.ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    theirs = customer["CustomerGateway"]["CustomerGatewayId"]
    request = {"CustomerGatewayId": theirs, "VpnGatewayId": ours, "Type": "ipsec.1"}
    told = said(w.ec2.create_vpn_connection, **request)
    w.ec2.delete_vpn_gateway(VpnGatewayId=ours)
    w.ec2.delete_customer_gateway(CustomerGatewayId=theirs)
    return told


@row("97", "create_customer_gateway: one address twice, BgpAsn 65001", "one id, Unsupported 400")
def _(w: Network) -> str:
    request = {"Type": "ipsec.1", "PublicIp": "198.51.100.97"}
    create = w.ec2.create_customer_gateway
    made = {
        create(**request, BgpAsn=65000)["CustomerGateway"]["CustomerGatewayId"] for _ in range(2)
    }
    told = said(create, **{**request, "PublicIp": "198.51.100.98"}, BgpAsn=65001)
    for gateway in made:
        w.ec2.delete_customer_gateway(CustomerGatewayId=gateway)
    return each("one id" if len(made) == 1 else f"{len(made)} ids", told)


def _options(w: Network) -> str:
    values = [{"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]}]
    made = w.ec2.create_dhcp_options(DhcpConfigurations=values)["DhcpOptions"]
    return str(made["DhcpOptionsId"])


@row("98", "create_dhcp_options: AmazonProvidedDNS", "ok")
def _(w: Network) -> str:
    w.ec2.delete_dhcp_options(DhcpOptionsId=_options(w))
    return "ok"


@row("99", "associate_dhcp_options: a set, then default", "the set, default")
def _(w: Network) -> str:
    values = [{"Key": "domain-name", "Values": ["example.org"]}]
    made = w.ec2.create_dhcp_options(DhcpConfigurations=values)["DhcpOptions"]["DhcpOptionsId"]
    seen = []
    for options in (made, "default"):
        w.ec2.associate_dhcp_options(DhcpOptionsId=options, VpcId=w.vpc)
        [shown] = w.ec2.describe_vpcs(VpcIds=[w.vpc])["Vpcs"]
        seen.append(shown.get("DhcpOptionsId", ""))
    with contextlib.suppress(ClientError):
        w.ec2.delete_dhcp_options(DhcpOptionsId=made)
    return each(*("the set" if it == made else it or "nothing" for it in seen))


@row("100", "describe_vpc_attribute(enableDnsSupport)", "true")
def _(w: Network) -> str:
    request = {"VpcId": w.vpc, "Attribute": "enableDnsSupport"}
    shown = w.ec2.describe_vpc_attribute(**request)
    return str(shown["EnableDnsSupport"]["Value"]).lower()


@row("left", "delete all of it in the order of dependence: Neutron's lists", "as before")
def _(w: Network) -> str:
    mine = {"InstanceIds": [w.launched["InstanceId"]]}
    w.ec2.terminate_instances(**mine)
    w.wait("instance_terminated", **mine)
    _raze(w)
    named = {
        name for rows in w.mine.project.left().values() for name in rows if name.startswith("sg-")
    }
    [default] = w.ec2.describe_vpcs()["Vpcs"]
    return held(
        routers=[each["name"] for each in w.mine.rows("routers")] == [default["VpcId"]],
        networks=len(w.mine.rows("networks")) == 1,
        addresses=w.mine.rows("floatingips") == [],
        groups=named == set(),
    ).replace(KEPT, "as before")


def _raze(w: Network) -> None:
    ec2 = w.ec2
    for address in ec2.describe_addresses()["Addresses"]:
        if "AssociationId" in address:
            ec2.disassociate_address(AssociationId=address["AssociationId"])
        ec2.release_address(AllocationId=address["AllocationId"])
    for each_ in ec2.describe_network_interfaces()["NetworkInterfaces"]:
        ec2.delete_network_interface(NetworkInterfaceId=each_["NetworkInterfaceId"])
    ec2.detach_internet_gateway(InternetGatewayId=w.gateway, VpcId=w.vpc)
    ec2.delete_internet_gateway(InternetGatewayId=w.gateway)
    ec2.delete_subnet(SubnetId=w.inner)
    ec2.delete_route_table(RouteTableId=w.table)
    ec2.delete_security_group(GroupId=w.group)
    ec2.delete_vpc(VpcId=w.vpc)
