"""A rule is the same rule in EC2's words and in Neutron's, there and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trimaran.ec2.kinds.security_groups.security_group_permission import (
    GROUP,
    V4,
    V6,
    Rule,
    check_protocol,
    check_text,
    of_neutron,
    to_cidr,
    to_cidr6,
    to_group,
)
from trimaran.ec2.protocol.errors import EC2Error

GROUP_ID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def _rule(protocol: str, first: int | None, last: int | None) -> Rule:
    return to_cidr(check_protocol(protocol, first, last), "192.0.2.7/24")


def _through_neutron(rule: Rule) -> Rule | None:
    body = rule.body("group", "project")
    assert body["port_range_min"] != 0 or rule.protocol in ("icmp", "icmpv6")
    note = {"from_port": 0} if rule.from_nought else None
    return of_neutron({**body, "id": "x", "normalized_cidr": None}, note)


@pytest.mark.parametrize(
    ("protocol", "first", "last", "shown"),
    [
        ("tcp", 22, 22, ("tcp", 22, 22)),
        ("TCP", 1, 255, ("tcp", 1, 255)),
        ("tcp", 1, 65535, ("tcp", 1, 65535)),
        ("udp", 0, 65535, ("udp", 0, 65535)),
        ("tcp", 0, 80, ("tcp", 0, 80)),
        ("6", 22, 23, ("tcp", 22, 23)),
        ("17", 53, 53, ("udp", 53, 53)),
        ("1", 8, 0, ("icmp", 8, 0)),
        ("icmp", -1, -1, ("icmp", -1, -1)),
        ("icmp", None, None, ("icmp", -1, -1)),
        ("icmp", 8, -1, ("icmp", 8, -1)),
        ("icmp", 0, 0, ("icmp", 0, 0)),
        ("-1", 0, 0, ("-1", None, None)),
        ("-1", None, None, ("-1", None, None)),
        ("-1", 22, 22, ("-1", None, None)),
        ("50", 0, 0, ("50", None, None)),
        ("050", None, None, ("50", None, None)),
        ("132", 5, 6, ("132", 5, 6)),
        ("132", 0, 0, ("132", None, None)),
        ("132", -1, -1, ("132", None, None)),
    ],
)
def test_ports_come_back_as_they_were_given(
    protocol: str, first: int | None, last: int | None, shown: tuple[Any, ...]
) -> None:
    rule = _rule(protocol, first, last)
    assert (rule.protocol, rule.first, rule.last) == shown
    assert _through_neutron(rule) == rule


def test_a_narrow_rule_never_becomes_a_wide_one() -> None:
    """F71: tcp 1-255 opened everything."""
    body = _rule("tcp", 1, 255).body("g", "p")
    assert (body["port_range_min"], body["port_range_max"]) == (1, 255)
    body = _rule("tcp", 0, 80).body("g", "p")
    assert (body["port_range_min"], body["port_range_max"]) == (1, 80)
    body = _rule("icmp", 8, -1).body("g", "p")
    assert (body["port_range_min"], body["port_range_max"]) == (8, None)


@pytest.mark.parametrize(
    ("protocol", "first", "last"),
    [
        ("tcp", None, None),
        ("tcp", 22, None),
        ("tcp", -1, -1),
        ("tcp", 23, 22),
        ("tcp", 0, 65536),
        ("udp", -2, 5),
        ("tcp", 0, 0),
        ("icmp", 256, 0),
        ("icmp", -1, 3),
        ("icmp", -2, -1),
        ("foo", 1, 2),
        ("256", None, None),
        ("-2", None, None),
        ("0", None, None),
        ("1e1", None, None),
        ("\u0663", None, None),
        ("132", 9, 8),
    ],
)
def test_wrong_protocols_and_ports(protocol: str, first: int | None, last: int | None) -> None:
    with pytest.raises(EC2Error) as caught:
        check_protocol(protocol, first, last)
    assert caught.value.code == "InvalidParameterValue"


def test_a_rule_needs_a_protocol() -> None:
    for nothing in (None, ""):
        with pytest.raises(EC2Error) as caught:
            check_protocol(nothing, 1, 2)
        assert caught.value.code == "MissingParameter"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("10.1.2.3/8", "10.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"), ("1.2.3.4/32", "1.2.3.4/32")],
)
def test_host_bits_are_masked(text: str, shown: str) -> None:
    assert to_cidr(check_protocol("tcp", 1, 2), text).target == shown


@pytest.mark.parametrize(
    "text",
    [
        *("", "10.0.0.0", "10.0.0.0/33", "10.0.0.256/8", "10.0.0/8", "::/0", "a", "1.2.3.4/-1"),
        *(None, "10.0.0.0/255.0.0.0", " 10.0.0.0/8", "10.0.0.0/8\n", "\u0660.0.0.0/0"),
    ],
)
def test_wrong_cidrs(text: str | None) -> None:
    with pytest.raises(EC2Error) as caught:
        to_cidr(check_protocol("tcp", 1, 2), text)
    assert caught.value.code == "InvalidParameterValue"


@pytest.mark.parametrize("text", ["", "::", "::/129", "10.0.0.0/8", "fe80::%1/64", None, "x/1"])
def test_wrong_ipv6_cidrs(text: str | None) -> None:
    with pytest.raises(EC2Error) as caught:
        to_cidr6(check_protocol("tcp", 1, 2), text)
    assert caught.value.code == "InvalidParameterValue"


def test_ipv6() -> None:
    rule = to_cidr6(check_protocol("tcp", 22, 22), "2001:DB8::1/32", "ssh")
    assert (rule.way, rule.target, rule.description) == (V6, "2001:db8::/32", "ssh")
    assert rule.body("g", "p")["ethertype"] == "IPv6"
    assert _through_neutron(rule) == rule
    ping = to_cidr6(check_protocol("icmp", -1, -1), "::/0")
    assert ping.protocol == "icmpv6"
    assert _through_neutron(ping) == ping
    with pytest.raises(EC2Error):
        to_cidr(check_protocol("58", -1, -1), "0.0.0.0/0")


def test_groups() -> None:
    rule = to_group(check_protocol("tcp", 22, 22), GROUP_ID)
    body = rule.body("g", "p")
    assert (body["remote_group_id"], body["ethertype"]) == (GROUP_ID, "IPv4")
    assert "remote_ip_prefix" not in body
    assert _through_neutron(rule) == rule
    v6 = to_group(check_protocol("icmpv6", -1, -1), GROUP_ID)
    assert v6.body("g", "p")["ethertype"] == "IPv6"


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"protocol": None}, ("-1", None, None, V4, "0.0.0.0/0")),
        ({"ethertype": "IPv6"}, ("-1", None, None, V6, "::/0")),
        ({"protocol": "any", "port_range_min": 1}, ("-1", None, None, V4, "0.0.0.0/0")),
        ({"protocol": "0"}, ("-1", None, None, V4, "0.0.0.0/0")),
        ({"protocol": "tcp"}, ("tcp", 1, 65535, V4, "0.0.0.0/0")),
        ({"protocol": "6"}, ("tcp", 1, 65535, V4, "0.0.0.0/0")),
        ({"protocol": "esp"}, ("50", None, None, V4, "0.0.0.0/0")),
        ({"protocol": "ipv6-icmp", "ethertype": "IPv6"}, ("icmpv6", -1, -1, V6, "::/0")),
        ({"protocol": "vrrp"}, ("112", None, None, V4, "0.0.0.0/0")),
        ({"remote_ip_prefix": "10.1.1.1/8"}, ("-1", None, None, V4, "10.0.0.0/8")),
        (
            {"remote_ip_prefix": "10.1.1.1/8", "normalized_cidr": "10.0.0.0/8"},
            ("-1", None, None, V4, "10.0.0.0/8"),
        ),
        ({"remote_group_id": GROUP_ID}, ("-1", None, None, GROUP, GROUP_ID)),
    ],
)
def test_what_others_made_in_neutron(row: dict[str, Any], shown: tuple[Any, ...]) -> None:
    made = of_neutron({"direction": "ingress", "ethertype": "IPv4", **row})
    assert made is not None
    assert (made.protocol, made.first, made.last, made.way, made.target) == shown
    assert of_neutron({**row, "remote_address_group_id": "x"}) is None


def test_port_0_is_found_without_its_note() -> None:
    """Neutron takes 1-65535 for no ports at all; nobody else can say 0."""
    stored = of_neutron({"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"})
    assert stored is not None
    asked = to_cidr(check_protocol("tcp", 0, 65535), "0.0.0.0/0")
    assert stored.key in asked.alike()
    assert asked.alike()[0] == asked.key
    assert stored.key not in replace(asked, first=2).alike()
    assert stored.key not in replace(asked, protocol="udp").alike()


def test_descriptions() -> None:
    assert check_text(None) == ""
    assert check_text("web, v1.2 (a_b)") == "web, v1.2 (a_b)"
    for wrong in ("x" * 256, "ü", "a\nb", "<"):
        with pytest.raises(EC2Error) as caught:
            check_text(wrong)
        assert caught.value.code == "InvalidParameterValue"
