"""Elastic IPs: describe (spec ec2.md 3.1)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces.address_kind import (
    PREFIX,
    Addresses,
    association_id,
    server_of,
)
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, not_found
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, View

Request = Mapping[str, Any]
Row = Mapping[str, Any]

VPC, STANDARD = "vpc", "standard"
POOL = "amazon"

FILTERS: filters.Table = {
    "allocation-id": "AllocationId",
    "association-id": "AssociationId",
    "domain": "Domain",
    "instance-id": "InstanceId",
    "network-border-group": "NetworkBorderGroup",
    "network-interface-id": "NetworkInterfaceId",
    "network-interface-owner-id": "NetworkInterfaceOwnerId",
    "private-ip-address": "PrivateIpAddress",
    "public-ip": "PublicIp",
    "public-ip-address": "PublicIp",
}


def describe_addresses(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's elastic IPs, and with EC2-Classic its other floating IPs."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("AllocationIds"), "allocationId", PREFIX)
    public = list(dict.fromkeys(_checked(each) for each in request.get("PublicIps") or ()))
    # Addresses are asked for by their numbers too: only the whole listing has them all.
    view = reconcile(ctx, Addresses(), wanted if wanted and not public else None)
    rows = [shown_address(view, pair) for pair in view.pairs if pair.found is not None]
    if not ctx.conf.disable_ec2_classic and (public or not wanted):
        rows += _standard(view)
    if public or wanted:
        _require(rows, "PublicIp", public)
        _require(rows, "AllocationId", wanted)
        rows = [r for r in rows if r["PublicIp"] in public or r.get("AllocationId") in wanted]
    shown = sorted(
        matches.apply(rows), key=lambda row: [int(p) for p in row["PublicIp"].split(".")]
    )
    return {"Addresses": shown}


def describe_addresses_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """No address has a name in DNS that EC2 could have given it."""
    paging.Page(ctx.action, request, ids="AllocationIds")
    name = request.get("Attribute")
    if name and name != "domain-name":
        raise invalid_value("Attribute", name)
    wanted = ids.check_ids(request.get("AllocationIds"), "allocationId", PREFIX)
    if wanted:
        reconcile(ctx, Addresses(), wanted)
    return {"Addresses": []}


def shown_address(view: View, pair: Pair) -> dict[str, Any]:
    """An elastic IP as boto3 shows it."""
    made = {
        "AllocationId": pair.item.id,
        "Domain": VPC,
        **_everywhere(view, pair.body),
        "Tags": view.tags.get(pair.item.id),
    }
    if pair.body.get("port_id"):
        made["AssociationId"] = association_id(pair.item, pair.body)
    return {name: value for name, value in made.items() if value is not None}


def _standard(view: View) -> list[dict[str, Any]]:
    """Floating IPs that were not allocated for a VPC."""
    rows = (row for row in view.listed.get("floating_ips", ()) if row["id"] not in view.ids)
    made = ({"Domain": STANDARD, **_everywhere(view, row)} for row in rows)
    shown = ("PublicIp", "Domain", "InstanceId", "PrivateIpAddress", "PublicIpv4Pool")
    return [{name: row[name] for name in shown if row.get(name) is not None} for row in made]


def _everywhere(view: View, row: Row) -> dict[str, Any]:
    interface = view.id_of(row.get("port_id"))
    return {
        "PublicIp": row["floating_ip_address"],
        "PublicIpv4Pool": POOL,
        "NetworkBorderGroup": view.ctx.region,
        "PrivateIpAddress": row.get("fixed_ip_address"),
        "InstanceId": view.id_of(server_of(row, view.listed)),
        "NetworkInterfaceId": interface,
        "NetworkInterfaceOwnerId": view.ctx.project_id if interface else None,
    }


def _require(rows: list[dict[str, Any]], name: str, wanted: list[str]) -> None:
    there = {row.get(name) for row in rows}
    absent = [each for each in wanted if each not in there]
    if not absent:
        return
    if name == "AllocationId":
        raise ids.missing_ids(absent)
    # The code of ids, for addresses too (spec ec2.md 1.12).
    raise not_found("InvalidAllocationID.NotFound", "address", absent)


def one_address(ctx: Context, allocation_id: str) -> tuple[View, Pair]:
    """The elastic IP of an allocation id.

    Raises:
        EC2Error: ``InvalidParameterValue``, ``InvalidAllocationID.NotFound``.
    """
    ids.check_id(allocation_id, "allocationId", PREFIX)
    view = reconcile(ctx, Addresses(), [allocation_id])
    [pair] = view.pairs
    if pair.found is None:
        raise EC2Error("IncorrectState", f"The address '{allocation_id}' is still being made.")
    return view, pair


def address_of(ctx: Context, public_ip: str) -> tuple[View, Pair] | None:
    """The elastic IP of a public address; None when the project has none such.

    Raises:
        EC2Error: ``InvalidParameterValue`` for what is no address.
    """
    _checked(public_ip)
    view = reconcile(ctx, Addresses())
    for pair in view.pairs:
        if pair.body.get("floating_ip_address") == public_ip:
            return view, pair
    return None


def _checked(public_ip: str) -> str:
    try:
        ipaddress.IPv4Address(public_ip)
    except ValueError:
        raise invalid_value("PublicIp", public_ip, "Not a valid IP address.") from None
    return public_ip


def not_owned(public_ip: str) -> EC2Error:
    """The error for a public address that the project does not have."""
    return EC2Error(
        "AuthFailure",
        f"The address '{public_ip[:255]}' does not belong to you.",
    )
