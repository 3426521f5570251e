"""The tree ``network/interfaces/macs``: each interface by its MAC address (spec ec2.md 6.5).

Listing the addresses needs Neutron's ports only; what stands below one is made
from subnets, groups and floating addresses, which are asked for when a guest
goes there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimaran.ec2.kinds.instances.instance_metadata import Interface, Surroundings
from trimaran.ec2.metadata.later import Later
from trimaran.ec2.metadata.tree import Deferred, Node


def network(
    interfaces: Sequence[Interface],
    around: Later[Surroundings],
    instance: Mapping[str, Any],
) -> dict[str, Any]:
    """The directory ``network``."""
    macs: dict[str, Node] = {
        str(each.port["mac_address"]): Deferred(around, _maker(each, instance), is_directory=True)
        for each in interfaces
    }
    return {"interfaces": {"macs": macs}}


def group_names(interface: Interface, around: Surroundings) -> list[str]:
    """The names of an interface's security groups."""
    found = (around.groups.get(group) for group in interface.port.get("security_groups") or ())
    return sorted(name for name in found if name)


def public_address(interface: Interface, around: Surroundings) -> str:
    """The floating address of an interface's first private address that has one, or ""."""
    public = {fixed: address for address, fixed in _floating(interface, around).items()}
    return next((public[each] for each in interface.addresses if each in public), "")


def _floating(interface: Interface, around: Surroundings) -> dict[str, str]:
    """Private addresses by public ones."""
    return {
        str(row["floating_ip_address"]): str(row.get("fixed_ip_address") or "")
        for row in around.floating
        if row.get("port_id") == interface.port["id"]
    }


def _maker(interface: Interface, instance: Mapping[str, Any]) -> Callable[[Surroundings], Node]:
    return lambda around: _interface(interface, around, instance)


def _interface(
    interface: Interface, around: Surroundings, instance: Mapping[str, Any]
) -> dict[str, Any]:
    port, item = interface.port, interface.item
    public = _floating(interface, around)
    groups = port.get("security_groups") or ()
    vpc_id = item.vpc_id if item else None
    made: dict[str, Any] = {
        "device-number": str(interface.index),
        "interface-id": item.id if item else None,
        "ipv4-associations": {address: [fixed] for address, fixed in public.items()},
        "ipv6s": _of_version(interface.addresses, 6),
        "local-hostname": instance.get("PrivateDnsName") if interface.index == 0 else None,
        "local-ipv4s": _of_version(interface.addresses, 4),
        "mac": port["mac_address"],
        "owner-id": instance.get("OwnerId"),
        "public-ipv4s": list(public),
        "security-group-ids": sorted(around.ids[group] for group in groups if group in around.ids),
        "security-groups": group_names(interface, around),
        "vpc-id": vpc_id,
        **_subnet(interface, around),
        **_vpc(around.vpcs.get(vpc_id or "")),
    }
    return {name: node for name, node in made.items() if node}


def _subnet(interface: Interface, around: Surroundings) -> dict[str, Any]:
    """The subnet of the primary IPv4 address; it has an id where it is EC2's."""
    first = (interface.addresses or [""])[0]
    for row in interface.port.get("fixed_ips") or ():
        subnet = around.subnets.get(row["subnet_id"])
        if subnet is not None and row["ip_address"] == first:
            kind = "ipv6" if subnet.get("ip_version") == 6 else "ipv4"
            return {
                "subnet-id": around.ids.get(row["subnet_id"]),
                f"subnet-{kind}-cidr-block{'s' if kind == 'ipv6' else ''}": subnet.get("cidr"),
            }
    return {}


def _vpc(cidr: str | None) -> dict[str, Any]:
    return {"vpc-ipv4-cidr-block": cidr, "vpc-ipv4-cidr-blocks": cidr} if cidr else {}


def _of_version(addresses: Sequence[str], version: int) -> list[str]:
    return [each for each in addresses if ipaddress.ip_address(each).version == version]
