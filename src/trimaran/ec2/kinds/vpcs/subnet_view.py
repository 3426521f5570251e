"""How a subnet looks on the wire (spec ec2.md 3.13 and appendix B)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.subnet_kind import CIDR, DEFAULT_FOR_ZONE, MAP_PUBLIC, ZONE

Row = Mapping[str, Any]

#: Owners of the port that serves DHCP in a network; its address is counted in advance.
_SERVICES = ("network:dhcp", "network:distributed")


def shown_subnet(
    ctx: Context,
    item: Item,
    subnet: Row,
    *,
    ports: Iterable[Row] | None = None,
    zone: str = "",
    tags: Sequence[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """The subnet of an item as boto3 shows it.

    Args:
        ctx: the request.
        item: the item.
        subnet: Neutron's JSON.
        ports: the ports of its network; None for a new one, which has the router's only.
        zone: shown when the item has none.
        tags: its tags.
    """
    cidr = str(subnet.get("cidr") or item.data.get(CIDR) or "")
    where = item.data.get(ZONE) or zone
    made: dict[str, Any] = {
        "SubnetId": item.id,
        "SubnetArn": f"arn:aws:ec2:{ctx.region}:{ctx.project_id}:subnet/{item.id}",
        "OwnerId": ctx.project_id,
        "VpcId": item.vpc_id,
        "State": "available",
        "CidrBlock": cidr,
        "AvailableIpAddressCount": free_addresses(cidr, ports),
        "AvailabilityZone": where,
        "AvailabilityZoneId": where,
        "DefaultForAz": bool(item.data.get(DEFAULT_FOR_ZONE)),
        "MapPublicIpOnLaunch": bool(item.data.get(MAP_PUBLIC)),
        "MapCustomerOwnedIpOnLaunch": False,
        "AssignIpv6AddressOnCreation": False,
        "Ipv6CidrBlockAssociationSet": [],
        "Ipv6Native": False,
        "EnableDns64": False,
        "PrivateDnsNameOptionsOnLaunch": {
            "HostnameType": "ip-name",
            "EnableResourceNameDnsARecord": False,
            "EnableResourceNameDnsAAAARecord": False,
        },
    }
    return {**made, "Tags": list(tags)} if tags else made


def free_addresses(cidr: str, ports: Iterable[Row] | None) -> int:
    """How many interfaces the subnet still has addresses for (never less than 0).

    Not counted are network and broadcast address, the ports' addresses, the
    router's, and one for the DHCP port that may come.
    """
    network = IPv4Network(cidr)
    taken = {network[1]}
    service = 0
    for port in ports or ():
        here = {
            address
            for row in port.get("fixed_ips") or ()
            if (address := IPv4Address(row["ip_address"])) in network
        }
        taken |= here
        service += bool(here) and port["device_owner"] in _SERVICES
    waiting = 0 if service else 1
    return max(0, network.num_addresses - 2 - len(taken) - waiting)
