"""AssignPrivateIpAddresses and UnassignPrivateIpAddresses (spec ec2.md 3.9); no IPv6 (9.2).

Neutron takes the whole list of a port's addresses, so a change names the
revision that it was made from: of two changes at once, the later one is made
again from what the first left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.guest_changes import interfaces_changed
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface import one_interface
from trimaran.ec2.kinds.interfaces.network_interface_ips import (
    check_address,
    check_number,
    one_of,
    refusal,
    refuse_others,
)
from trimaran.ec2.kinds.vpcs.subnet_kind import one_subnet
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, unsupported
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import Conflict, TrimaranError, Unavailable

Request = Mapping[str, Any]
Row = Mapping[str, Any]
FixedIps = list[dict[str, str]]

#: How often a change is made again when the port changes under it.
TRIES = 8
_CHANGED_MEANWHILE = 412


def assign_private_ip_addresses(ctx: Context, request: Request) -> dict[str, Any]:
    """Give an interface secondary addresses: these, or so many."""
    refuse_others(request)
    named = list(dict.fromkeys(request.get("PrivateIpAddresses") or ()))
    count = request.get("SecondaryPrivateIpAddressCount") or 0
    if count < 0:
        raise invalid_value("SecondaryPrivateIpAddressCount", count, "It must not be negative.")
    one_of(request, "PrivateIpAddresses", "SecondaryPrivateIpAddressCount")
    pair, _ = one_interface(ctx, request.get("NetworkInterfaceId"), described=False)
    port = _port(pair)
    subnet = one_subnet(ctx, pair.item.data.get(kind.SUBNET))
    named = [check_address(address, subnet.body["cidr"]) for address in named]
    check_number(len(kind.addresses_of(port)) + len(named) + count)
    ctx.commit_point()
    subnet_os_id = subnet.item.os_id or ""

    def more(now: FixedIps) -> FixedIps:
        there = {row["ip_address"] for row in now}
        new = [{"subnet_id": subnet_os_id, "ip_address": i} for i in named if i not in there]
        return [*now, *new, *({"subnet_id": subnet_os_id} for _ in range(count))]

    before, after = _change(ctx, pair, port, more, named)
    interfaces_changed(ctx, [pair.item.id])
    assigned = [each for each in after if each in named or each not in before]
    return {
        "NetworkInterfaceId": pair.item.id,
        "AssignedPrivateIpAddresses": [{"PrivateIpAddress": each} for each in assigned],
    }


def unassign_private_ip_addresses(ctx: Context, request: Request) -> dict[str, Any]:
    """Take secondary addresses from an interface, and elastic IPs from them."""
    refuse_others(request)
    named = list(dict.fromkeys(request.get("PrivateIpAddresses") or ()))
    if not named:
        raise missing("PrivateIpAddress")
    pair, _ = one_interface(ctx, request.get("NetworkInterfaceId"), described=False)
    port = _port(pair)
    for address in named:
        if address == pair.item.data.get(kind.PRIMARY):
            raise invalid_value(
                "PrivateIpAddress", address, "The primary private IP address cannot be unassigned."
            )
        if address not in kind.addresses_of(port):
            raise _not_assigned(pair, address)
    ctx.commit_point()
    neutron = ctx.user.network
    for row in neutron.floating_ips(project_id=ctx.project_id, port_id=port["id"]):
        if row.get("fixed_ip_address") in named:
            neutron.update_floating_ip(row["id"], {"port_id": None})

    def fewer(now: FixedIps) -> FixedIps:
        return [row for row in now if row["ip_address"] not in named]

    _change(ctx, pair, port, fewer, named)
    interfaces_changed(ctx, [pair.item.id])
    return {}


def assign_ipv6_addresses(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused: there is no IPv6 in a VPC."""
    raise _no_ipv6(ctx, request)


def unassign_ipv6_addresses(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused: there is no IPv6 in a VPC."""
    raise _no_ipv6(ctx, request)


def _no_ipv6(ctx: Context, request: Request) -> EC2Error:
    one_interface(ctx, request.get("NetworkInterfaceId"), described=False)
    return unsupported("VPCs have no IPv6 in this cloud.")


def _port(pair: Pair) -> Row:
    if pair.found is None:
        raise EC2Error(
            "IncorrectState", f"The network interface '{pair.item.id}' is still being made."
        )
    return pair.body


def _change(
    ctx: Context,
    pair: Pair,
    port: Row,
    change: Callable[[FixedIps], FixedIps],
    named: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Changes a port's addresses; returns those before and after."""
    for _ in range(TRIES):
        now = [dict(row) for row in port.get("fixed_ips") or ()]
        try:
            done = ctx.user.network.update_port(
                port["id"], {"fixed_ips": change(now)}, revision=port.get("revision_number")
            )
        except Unavailable:
            raise
        except TrimaranError as error:
            if getattr(error, "remote_status", 0) != _CHANGED_MEANWHILE:
                subnet_id = str(pair.item.data.get(kind.SUBNET))
                raise refusal(error, named, subnet_id) from error
            port = ctx.user.network.port(port["id"])
            continue
        return kind.addresses_of(port), kind.addresses_of(done)
    raise Conflict("The addresses change too often.")


def _not_assigned(pair: Pair, address: str) -> EC2Error:
    return invalid_value(
        "PrivateIpAddress", address, f"It is not assigned to interface '{pair.item.id}'."
    )
