"""Address ranges of VPCs, subnets and routes, as callers write them (spec ec2.md 1.7, F48).

Host bits are masked off silently, as AWS does.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from ipaddress import IPv4Network

from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing

_FORM = re.compile(r"\d{1,3}(\.\d{1,3}){3}/\d{1,2}\Z", re.ASCII)
#: Prefix lengths that VPCs and subnets may have.
WIDEST, NARROWEST = 16, 28
# Neutron serves no DHCP there (its own checks), and AWS refuses them as well.
_RESERVED = [
    IPv4Network(text) for text in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")
]


def network(text: str | None, parameter: str) -> IPv4Network:
    """An IPv4 range.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``.
    """
    if not text:
        raise missing(parameter)
    try:
        if not _FORM.match(text):
            raise ValueError
        return IPv4Network(text, strict=False)
    except ValueError:
        raise invalid_value(
            parameter, text, "This is not a valid CIDR block of IPv4 addresses."
        ) from None


def vpc_range(text: str | None) -> IPv4Network:
    """The range of a VPC to be made.

    Raises:
        EC2Error: also ``InvalidVpc.Range``.
    """
    found = network(text, "CidrBlock")
    if not WIDEST <= found.prefixlen <= NARROWEST or _is_reserved(found):
        raise EC2Error("InvalidVpc.Range", f"The CIDR '{found}' is invalid.")
    return found


def subnet_range(text: str | None) -> IPv4Network:
    """The range of a subnet to be made.

    Raises:
        EC2Error: also ``InvalidSubnet.Range``.
    """
    found = network(text, "CidrBlock")
    if not WIDEST <= found.prefixlen <= NARROWEST or _is_reserved(found):
        raise outside(found)
    return found


def outside(cidr: IPv4Network) -> EC2Error:
    """The error for a subnet that its VPC does not contain."""
    return EC2Error("InvalidSubnet.Range", f"The CIDR '{cidr}' is invalid.")


def conflict(cidr: IPv4Network) -> EC2Error:
    """The error for a subnet that overlaps another one."""
    return EC2Error("InvalidSubnet.Conflict", f"The CIDR '{cidr}' conflicts with another subnet")


def first_free(
    within: IPv4Network, taken: Iterable[IPv4Network], prefix: int
) -> IPv4Network | None:
    """The first range of a size that overlaps none of those taken."""
    others = list(taken)
    if prefix < within.prefixlen:
        return None
    for candidate in within.subnets(new_prefix=prefix):
        if not any(candidate.overlaps(other) for other in others):
            return candidate
    return None


def gateway_of(cidr: IPv4Network | str) -> str:
    """The address of the router in a subnet: the first one."""
    return str(ipaddress.IPv4Network(cidr).network_address + 1)


def _is_reserved(cidr: IPv4Network) -> bool:
    return any(cidr.overlaps(other) for other in _RESERVED)
