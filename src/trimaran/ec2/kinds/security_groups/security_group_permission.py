"""A security group rule as EC2 and as Neutron know it, and the way between them.

One value type stands for a rule on both sides, so that "the same rule" is one
comparison: of what is asked for with what is there, for duplicates as well as
for revocation.  Everything that the two word differently is made equal here
(spec ec2.md 3.11, F34-F37, F71):

* every protocol: ``-1`` there, none here; ports beside it mean nothing;
* all ports of tcp and udp: 1-65535 there, none here.  Neutron has no port 0, so
  a range from 0 is stored from 1 on and its 0 is kept in the rule's item;
* host bits of a CIDR are masked off, as AWS does.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimaran.ec2.protocol.errors import EC2Error, invalid_value

EVERY = "-1"
#: Protocols with ports that EC2 calls by name.
PORTED = ("tcp", "udp")
#: Protocols with type and code.
TYPED = ("icmp", "icmpv6")
#: DCCP, SCTP, UDP-Lite: EC2 gives them no ports; Neutron can narrow them, which is kept.
NARROWABLE = ("33", "132", "136")
LAST_PORT = 65535
V4, V6, GROUP = "ipv4", "ipv6", "group"
ANYWHERE = {V4: "0.0.0.0/0", V6: "::/0"}

_NAMES = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
#: Neutron's names of protocols (neutron-lib, IP_PROTOCOL_MAP) that are none of EC2's.
_NUMBERS = {
    "ah": "51",
    "dccp": "33",
    "egp": "8",
    "esp": "50",
    "gre": "47",
    "igmp": "2",
    "ipip": "4",
    "ipv6-encap": "41",
    "ipv6-frag": "44",
    "ipv6-icmp": "icmpv6",
    "ipv6-nonxt": "59",
    "ipv6-opts": "60",
    "ipv6-route": "43",
    "ospf": "89",
    "pgm": "113",
    "rsvp": "46",
    "sctp": "132",
    "udplite": "136",
    "vrrp": "112",
}
#: To Neutron's firewalls protocol 0 is every protocol.
_EVERY = (None, "", "any", "ip", "hopopt", "0")
_CIDR = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with one source or destination.

    Attributes:
        egress: it is about what leaves.
        protocol: as EC2 shows it: ``-1``, a name or a number.
        first: first port, or ICMP type (-1: any); None where EC2 shows none.
        last: last port, or ICMP code.
        way: what ``target`` is: `V4`, `V6` or `GROUP`.
        target: a CIDR, or a group's Neutron id.
        description: text for people; not part of what makes rules equal.
    """

    egress: bool
    protocol: str
    first: int | None
    last: int | None
    way: str
    target: str
    description: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """What two rules that are the same have in common."""
        return (self.egress, self.protocol, self.first, self.last, self.way, self.target)

    @property
    def permission(self) -> tuple[str, int, int]:
        """What rules shown in one permission have in common; sorts."""
        none = -2
        first = none if self.first is None else self.first
        return (self.protocol, first, none if self.last is None else self.last)

    @property
    def from_nought(self) -> bool:
        """Whether it begins with a port 0, which Neutron cannot hold."""
        return self.protocol in PORTED and self.first == 0

    def as_stored(self) -> Rule:
        """The rule as Neutron alone tells it, without a note about a port 0."""
        return replace(self, first=1) if self.from_nought else self

    def alike(self) -> tuple[tuple[Any, ...], ...]:
        """Keys of what this rule may be stored as, the best first: others cannot say port 0."""
        return (self.key, self.as_stored().key)

    def body(self, group_os_id: str, project_id: str) -> dict[str, Any]:
        """The rule for Neutron's API."""
        first, last = self.as_stored().first, self.last
        if self.protocol in PORTED and (first, last) == (1, LAST_PORT):
            first = last = None
        elif self.protocol in TYPED:
            first = None if first == -1 else first
            last = None if last == -1 else last
        v6 = self.way == V6 or self.protocol == "icmpv6"
        made: dict[str, Any] = {
            "project_id": project_id,
            "security_group_id": group_os_id,
            "direction": "egress" if self.egress else "ingress",
            "ethertype": "IPv6" if v6 else "IPv4",
            "protocol": None if self.protocol == EVERY else self.protocol,
            "port_range_min": first,
            "port_range_max": last,
            "description": self.description,
        }
        made["remote_group_id" if self.way == GROUP else "remote_ip_prefix"] = self.target
        return made


def of_neutron(row: Mapping[str, Any], note: Mapping[str, Any] | None = None) -> Rule | None:
    """The rule behind Neutron's JSON.

    Args:
        row: the rule.
        note: the blob of its item, if it has one (see `security_group_kind`).

    Returns:
        None for what EC2 has no words for (an address group as source).
    """
    if row.get("remote_address_group_id"):
        return None
    note = note or {}
    protocol = _protocol_of(row.get("protocol"))
    first, last = row.get("port_range_min"), row.get("port_range_max")
    if protocol == EVERY:
        first = last = None
    elif protocol in TYPED:
        first = -1 if first is None else first
        last = -1 if last is None else last
    elif protocol in PORTED:
        first = 1 if first is None else first
        first = 0 if first == 1 and note.get("from_port") == 0 else first
        last = LAST_PORT if last is None else last
    way = V6 if row.get("ethertype") == "IPv6" else V4
    target = row.get("normalized_cidr") or row.get("remote_ip_prefix")
    if row.get("remote_group_id"):
        way, target = GROUP, row["remote_group_id"]
    elif not target:
        target = ANYWHERE[way]
    else:
        target = str(ipaddress.ip_network(target, strict=False))
    description = note.get("description", row.get("description") or "")
    return Rule(row["direction"] == "egress", protocol, first, last, way, target, description)


def _protocol_of(value: Any) -> str:
    if value in _EVERY:
        return EVERY
    text = str(value)
    return _NUMBERS.get(text) or _NAMES.get(text) or text


def check_protocol(value: str | None, first: int | None, last: int | None) -> Rule:
    """A rule with protocol and ports of a request; source and direction are still open.

    Raises:
        EC2Error: ``MissingParameter`` without protocol, ``InvalidParameterValue``.
    """
    if not value:
        raise EC2Error("MissingParameter", "The request must contain the parameter IpProtocol")
    protocol = _checked_protocol(value)
    if protocol == EVERY:
        first = last = None
    elif protocol in PORTED:
        first, last = _checked_ports(first, last)
    elif protocol in TYPED:
        first, last = _checked_types(first, last)
    elif protocol in NARROWABLE and first is not None and last is not None:
        every = first < 1 and last in (-1, 0, LAST_PORT)
        first, last = (None, None) if every else _checked_ports(first, last)
    else:
        first = last = None
    return Rule(False, protocol, first, last, V4, "")


def _checked_protocol(value: str) -> str:
    text = value.strip().lower()
    text = _NAMES.get(text, text)
    if text in (EVERY, *PORTED, *TYPED):
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 255):
        raise invalid_value("IpProtocol", value, "Unknown protocol.")
    if int(text) == 0:
        raise invalid_value("IpProtocol", value, "This cloud takes protocol 0 for all protocols.")
    number = str(int(text))
    return _NAMES.get(number, number)


def _checked_ports(first: int | None, last: int | None) -> tuple[int, int]:
    if first is None or last is None or first == -1 or last == -1:
        raise invalid_value(
            "portRange", f"{first} to {last}", "Must specify both from and to ports with TCP/UDP."
        )
    for port in (first, last):
        if not 0 <= port <= LAST_PORT:
            raise invalid_value("portRange", port, f"Ports are 0 to {LAST_PORT}.")
    if first > last:
        raise invalid_value("portRange", f"{first} to {last}", "The first port is the larger one.")
    if last == 0:
        raise invalid_value("portRange", "0", "This cloud has no rules for port 0 alone.")
    return first, last


def _checked_types(first: int | None, last: int | None) -> tuple[int, int]:
    first, last = (-1 if first is None else first), (-1 if last is None else last)
    for number in (first, last):
        if not -1 <= number <= 255:
            raise invalid_value("portRange", number, "ICMP types and codes are -1 to 255.")
    if first == -1 and last != -1:
        raise invalid_value("portRange", last, "An ICMP code needs a type.")
    return first, last


def to_cidr(rule: Rule, value: str | None, description: str | None = None) -> Rule:
    """The rule with an IPv4 CIDR; host bits are masked off.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    text = value or ""
    if not _CIDR.fullmatch(text):
        raise invalid_value("CIDR", text, "This is not a valid IPv4 CIDR block.")
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise invalid_value("CIDR", text, "This is not a valid IPv4 CIDR block.") from None
    if rule.protocol == "icmpv6":
        raise invalid_value("IpProtocol", rule.protocol, "ICMPv6 needs an IPv6 CIDR block.")
    return replace(rule, way=V4, target=str(network), description=check_text(description))


def to_cidr6(rule: Rule, value: str | None, description: str | None = None) -> Rule:
    """The rule with an IPv6 CIDR; ICMP becomes ICMPv6.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    text = value or ""
    try:
        if "/" not in text or "%" in text:
            raise ValueError
        network = ipaddress.IPv6Network(text, strict=False)
    except ValueError:
        raise invalid_value("CIDR", text, "This is not a valid IPv6 CIDR block.") from None
    protocol = "icmpv6" if rule.protocol == "icmp" else rule.protocol
    return replace(
        rule,
        protocol=protocol,
        way=V6,
        target=str(network),
        description=check_text(description),
    )


def to_group(rule: Rule, group_os_id: str, description: str | None = None) -> Rule:
    """The rule with a group as its source or destination."""
    return replace(rule, way=GROUP, target=group_os_id, description=check_text(description))


_TEXT = re.compile(r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{0,255}")


def check_text(description: str | None) -> str:
    """A rule's description.

    Raises:
        EC2Error: ``InvalidParameterValue`` for what AWS does not take either.
    """
    text = description or ""
    if not _TEXT.fullmatch(text):
        raise invalid_value(
            "description",
            text,
            "Valid descriptions are strings less than 256 characters from the following set: "
            "a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*",
        )
    return text
