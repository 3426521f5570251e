"""EC2 ids: how they look, which kinds there are, what each kind is called on the wire.

An id is ``<prefix>-<8 hex digits>``; the prefix is the kind of the row in
``items``.  Longer hex parts are accepted on input for ever, so a later change
to AWS's 17 digits needs no change here (spec 4.1).  One table says for every
kind which code "not found" has and under which resource type its tags go, so
that actions on ids of any kind (CreateTags) need no branch per kind.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trimaran.ec2.protocol.errors import EC2Error, invalid_value, not_found

_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_LARGEST = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Prefix:
    """What the wire says about a kind.

    Attributes:
        code: the kind's ``*.NotFound`` code (spec 1.8).
        noun: how messages call its id.
        resource_type: the type of its tags (spec 3.14), or "" when it takes none.
    """

    code: str
    noun: str
    resource_type: str = ""


PREFIXES: dict[str, Prefix] = {
    "i": Prefix("InvalidInstanceID.NotFound", "instance ID", "instance"),
    "ami": Prefix("InvalidAMIID.NotFound", "image id", "image"),
    "aki": Prefix("InvalidAMIID.NotFound", "image id", "image"),
    "ari": Prefix("InvalidAMIID.NotFound", "image id", "image"),
    "vol": Prefix("InvalidVolume.NotFound", "volume", "volume"),
    "snap": Prefix("InvalidSnapshot.NotFound", "snapshot", "snapshot"),
    "key": Prefix("InvalidKeyPair.NotFound", "key pair", "key-pair"),
    "sg": Prefix("InvalidGroup.NotFound", "security group", "security-group"),
    "sgr": Prefix(
        "InvalidSecurityGroupRuleId.NotFound", "security group rule ID", "security-group-rule"
    ),
    "acl": Prefix("InvalidNetworkAclID.NotFound", "networkAcl ID", "network-acl"),
    "eigw": Prefix("InvalidEgressOnlyInternetGatewayId.NotFound", "egress only gateway ID"),
    "vpc": Prefix("InvalidVpcID.NotFound", "vpc ID", "vpc"),
    "subnet": Prefix("InvalidSubnetID.NotFound", "subnet ID", "subnet"),
    "eni": Prefix("InvalidNetworkInterfaceID.NotFound", "networkInterface ID", "network-interface"),
    "eipalloc": Prefix("InvalidAllocationID.NotFound", "allocation ID", "elastic-ip"),
    "igw": Prefix("InvalidInternetGatewayID.NotFound", "internetGateway ID", "internet-gateway"),
    "rtb": Prefix("InvalidRouteTableID.NotFound", "routeTable ID", "route-table"),
    "dopt": Prefix("InvalidDhcpOptionsID.NotFound", "dhcpOptions ID", "dhcp-options"),
    "cgw": Prefix("InvalidCustomerGatewayID.NotFound", "customerGateway ID", "customer-gateway"),
    "vgw": Prefix("InvalidVpnGatewayID.NotFound", "vpnGateway ID", "vpn-gateway"),
    "vpn": Prefix("InvalidVpnConnectionID.NotFound", "vpnConnection ID", "vpn-connection"),
}

RESOURCE_TYPES: frozenset[str] = frozenset(
    entry.resource_type for entry in PREFIXES.values() if entry.resource_type
)

IMAGE_PREFIXES = ("ami", "aki", "ari")


def mint(prefix: str) -> str:
    """A new random id of a kind; whoever stores it checks that it is free (F19)."""
    return f"{prefix}-{secrets.randbelow(_LARGEST) + 1:08x}"


def mint_reservation() -> str:
    """A new reservation id: ``r-`` and 8 characters of ``[0-9a-z]`` (spec 3.6)."""
    return "r-" + "".join(secrets.choice(_ALPHABET) for _ in range(8))


def kind_of(item_id: str) -> str:
    """The kind of an id: the text before the first ``-``."""
    return item_id.split("-", 1)[0]


def hex_of(item_id: str) -> str:
    """The number of an id: the text after the last ``-``."""
    return item_id.rsplit("-", 1)[-1]


def derive(item_id: str, prefix: str) -> str:
    """The id of another kind with the same number (``eipassoc-X`` of ``eipalloc-X``)."""
    return f"{prefix}-{hex_of(item_id)}"


def is_id(value: str, prefixes: Iterable[str] | None = None) -> bool:
    """Whether a text is an id of one of the kinds (of any kind when none are given)."""
    prefix, dash, number = value.rpartition("-")
    if not dash or not prefix or not _HEX.match(number):
        return False
    return prefixes is None or prefix in prefixes


def check_id(value: str, parameter: str, *prefixes: str) -> str:
    """An id of the expected kind, as the caller wrote it.

    Args:
        value: what the caller sent.
        parameter: the wire name, for the message.
        prefixes: the kinds that are meant.

    Raises:
        EC2Error: ``InvalidParameterValue`` (spec 1.7) for anything else.
    """
    if is_id(value, prefixes):
        return value
    expected = " or ".join(f"{prefix}-..." for prefix in prefixes)
    raise invalid_value(parameter, value, f"Expected: {expected}")


def check_ids(values: Sequence[str] | None, parameter: str, *prefixes: str) -> list[str]:
    """The ids of a list parameter without duplicates, each checked; none gives ``[]``."""
    return list(dict.fromkeys(check_id(value, parameter, *prefixes) for value in values or ()))


def missing_ids(item_ids: Iterable[str]) -> EC2Error:
    """The ``NotFound`` error for ids that do not exist, with the code of the first one's kind."""
    missing = sorted(item_ids)
    prefix = PREFIXES.get(kind_of(missing[0]))
    if prefix is None:
        return EC2Error("InvalidID", f"The ID '{missing[0]}' is not valid")
    return not_found(prefix.code, prefix.noun, missing)
