"""Which private addresses an interface is to have, and what Neutron's refusal of one means.

The same rules for CreateNetworkInterface and for the interfaces of RunInstances
(spec ec2.md 3.9): addresses that are named lie in the subnet and one of them may
be the primary one; without any, Neutron chooses.  A count asks for more.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)
from trimaran.errors import BadRequest, Conflict, NotFound, QuotaExceeded, TrimaranError

Row = Mapping[str, Any]

#: Addresses of one interface at most (AWS's largest types have as many).
MOST = 50

_PREFIXES = ("Ipv4Prefixes", "Ipv4PrefixCount", "Ipv6Prefixes", "Ipv6PrefixCount")
_SIX = ("Ipv6Addresses", "Ipv6AddressCount", "PrimaryIpv6", "EnablePrimaryIpv6")
_MORE = (
    "AssociateCarrierIpAddress",
    "ConnectionTrackingSpecification",
    "EnaQueueCount",
    "EnaSrdSpecification",
    "Operator",
)


@dataclass(frozen=True)
class Addresses:
    """Private addresses that are asked for.

    Attributes:
        named: by the caller, the primary one first.
        chosen: how many Neutron chooses besides.
    """

    named: tuple[str, ...] = ()
    chosen: int = 1

    @property
    def primary(self) -> str:
        """The primary address, or "" when Neutron chooses it."""
        return self.named[0] if self.named else ""

    def fixed_ips(self, subnet_os_id: str) -> list[dict[str, str]]:
        """For the body of a port."""
        named = [{"subnet_id": subnet_os_id, "ip_address": each} for each in self.named]
        return [*named, *({"subnet_id": subnet_os_id} for _ in range(self.chosen))]


def asked_addresses(request: Row, cidr: str) -> Addresses:
    """The addresses that a request's own or an interface's parameters ask for.

    Args:
        request: with ``PrivateIpAddress``, ``PrivateIpAddresses`` and
            ``SecondaryPrivateIpAddressCount``.
        cidr: the subnet's.

    Raises:
        EC2Error: ``InvalidParameterValue``; ``PrivateIpAddressLimitExceeded``.
    """
    primary: list[str] = []
    others: list[str] = []
    if request.get("PrivateIpAddress"):
        primary.append(check_address(request["PrivateIpAddress"], cidr))
    for entry in request.get("PrivateIpAddresses") or ():
        address = entry.get("PrivateIpAddress")
        if not address:
            raise missing("PrivateIpAddresses.PrivateIpAddress")
        (primary if entry.get("Primary") else others).append(check_address(address, cidr))
    if len(primary) > 1:
        raise invalid_value(
            "PrivateIpAddresses", primary[1], "Only one primary private IP address can be given."
        )
    named = [*primary, *others]
    if len(set(named)) < len(named):
        raise invalid_value("PrivateIpAddresses", ", ".join(named), "An address is given twice.")
    count = request.get("SecondaryPrivateIpAddressCount") or 0
    if count < 0:
        raise invalid_value("SecondaryPrivateIpAddressCount", count, "It must not be negative.")
    chosen = count + (0 if named else 1)
    check_number(len(named) + chosen)
    return Addresses(tuple(named), chosen)


def check_number(number: int) -> None:
    """Refuse more addresses than an interface can have.

    Raises:
        EC2Error: ``PrivateIpAddressLimitExceeded``.
    """
    if number > MOST:
        raise EC2Error(
            "PrivateIpAddressLimitExceeded",
            f"A network interface has at most {MOST} private IP addresses.",
        )


def check_address(text: str, cidr: str) -> str:
    """An IPv4 address that an interface in the subnet can have.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    network = ipaddress.IPv4Network(cidr)
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        raise invalid_value("privateIpAddress", text, "Not a valid IP address.") from None
    edges = (network.network_address, network.broadcast_address)
    if address not in network or address in edges:
        raise invalid_value("privateIpAddress", text, f"Address does not fall within {cidr}.")
    return str(address)


def refuse_others(request: Row) -> None:
    """Refuse address families, prefixes and kinds of interfaces that are not offered.

    Raises:
        EC2Error: ``UnsupportedOperation``; ``InvalidParameterValue`` for an unknown kind.
    """
    for name in (*_PREFIXES, *_SIX, *_MORE):
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    kind = request.get("InterfaceType") or "interface"
    if kind in ("efa", "efa-only", "branch", "trunk"):
        raise unsupported(f"Network interfaces of the type {kind} are not supported.")
    if kind != "interface":
        raise invalid_value("InterfaceType", kind)
    if request.get("NetworkCardIndex"):
        raise unsupported("There is one network card only.")


def one_of(request: Row, first: str, second: str) -> None:
    """Refuse none, and both, of two parameters.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterCombination``.
    """
    given = [name for name in (first, second) if request.get(name)]
    if not given:
        raise missing(f"{first} or {second}")
    if len(given) > 1:
        raise invalid_combination(f"You may specify {first} or {second}, but not both.")


def refusal(error: TrimaranError, named: Iterable[str], subnet_id: str) -> TrimaranError:
    """Neutron's refusal of a port as EC2 says it; Neutron's own words stay in the log (F8).

    Args:
        error: Neutron's.
        named: the addresses that the caller named.
        subnet_id: where the port is.
    """
    code = str(getattr(error, "remote_code", ""))
    if code.startswith("IpAddressGenerationFailure") or isinstance(error, QuotaExceeded):
        return EC2Error(
            "InsufficientFreeAddressesInSubnet",
            "There are not enough free addresses in the subnet "
            f"'{subnet_id}' to satisfy the request.",
        )
    address = ", ".join(named)
    if code.startswith("IpAddressAlreadyAllocated") or isinstance(error, Conflict):
        return invalid_value("privateIpAddress", address, "The address is in use.")
    if isinstance(error, NotFound):
        if "SecurityGroup" in code:
            return EC2Error("InvalidGroup.NotFound", "The security group does not exist")
        return EC2Error("InvalidSubnetID.NotFound", f"The subnet ID '{subnet_id}' does not exist")
    if isinstance(error, BadRequest):
        return invalid_value("privateIpAddress", address, "The subnet cannot give this address.")
    return error
