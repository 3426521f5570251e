"""Attributes of network interfaces: describe, modify, reset (spec ec2.md 3.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.guest_changes import interfaces_changed
from trimaran.ec2.kinds.instances.instance_options import change_item
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface import one_interface
from trimaran.ec2.kinds.interfaces.network_interface_attach import no_attachment
from trimaran.ec2.kinds.interfaces.network_interface_create import check_description
from trimaran.ec2.kinds.interfaces.network_interface_groups import groups_in_vpc, neutron_ids
from trimaran.ec2.kinds.interfaces.network_interface_ips import refusal
from trimaran.ec2.kinds.interfaces.network_interface_view import InterfaceDescriber
from trimaran.ec2.protocol.errors import invalid_combination, invalid_value, missing, unsupported
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import TrimaranError, Unavailable

Request = Mapping[str, Any]
Change = Callable[[Context, Pair, InterfaceDescriber, Any], None]


def describe_network_interface_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """One attribute of an interface."""
    name = request.get("Attribute")
    if not name:
        raise invalid_combination("No attributes specified.")
    if name not in _SHOW:
        raise invalid_value("Attribute", name, "Unknown attribute.")
    pair, describer = one_interface(ctx, request.get("NetworkInterfaceId"))
    shown = describer.shown(pair)
    return {"NetworkInterfaceId": pair.item.id, **_SHOW[name](shown)}


def modify_network_interface_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Change one attribute of an interface."""
    for name in _REFUSED:
        if request.get(name) not in (None, [], {}, False):
            raise unsupported(f"The parameter {name} is not supported.")
    given = [name for name in _CHANGES if name in request]
    if len(given) != 1:
        raise invalid_combination("Exactly one attribute is to be given.")
    [name] = given
    value = request[name]
    if isinstance(value, Mapping) and "Value" in value:
        value = value["Value"]
    pair, describer = one_interface(
        ctx, request.get("NetworkInterfaceId"), described=name == "Attachment"
    )
    _CHANGES[name](ctx, pair, describer, value)
    return {}


def reset_network_interface_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Only the source/destination check can be reset, to being on.

    boto3 names it by a parameter of its own, upstream's clients in ``Attribute``.
    """
    name = request.get("SourceDestCheck") or request.get("Attribute")
    if not name:
        raise missing("SourceDestCheck")
    pair, _ = one_interface(ctx, request.get("NetworkInterfaceId"), described=False)
    if str(name).lower() in ("sourcedestcheck", "true"):
        set_source_check(ctx, pair, True)
    return {}


def set_source_check(ctx: Context, pair: Pair, on: bool) -> None:
    """Let Neutron drop (or not) what the interface sends with a foreign source address."""
    ctx.commit_point()
    pairs = [] if on else [{"ip_address": kind.ANY_SOURCE}]
    _update(ctx, pair, {"allowed_address_pairs": pairs})
    change_item(ctx, [pair.item.id], lambda data: {**data, "source_dest_check": on})


def set_groups(ctx: Context, pair: Pair, wanted: list[str]) -> None:
    """Give the interface other security groups of its VPC.

    Raises:
        EC2Error: ``InvalidGroup.NotFound``; ``MissingParameter`` without any.
    """
    if not wanted:
        raise missing("SecurityGroupId")
    groups = groups_in_vpc(ctx, wanted, pair.item.vpc_id or "")
    ctx.commit_point()
    _update(ctx, pair, {"security_groups": neutron_ids(groups)})
    interfaces_changed(ctx, [pair.item.id])


def _describe(ctx: Context, pair: Pair, describer: InterfaceDescriber, value: Any) -> None:
    text = check_description(value)
    ctx.commit_point()
    change_item(ctx, [pair.item.id], lambda data: {**data, "description": text})


def _check(ctx: Context, pair: Pair, describer: InterfaceDescriber, value: Any) -> None:
    if value is None:
        raise missing("SourceDestCheck.Value")
    set_source_check(ctx, pair, bool(value))


def _regroup(ctx: Context, pair: Pair, describer: InterfaceDescriber, value: Any) -> None:
    set_groups(ctx, pair, value or [])


def _attachment(ctx: Context, pair: Pair, describer: InterfaceDescriber, value: Any) -> None:
    """Whether the interface goes with its instance."""
    given = value or {}
    if given.get("EnaQueueCount") or given.get("DefaultEnaQueueCount"):
        raise unsupported("The parameter EnaQueueCount is not supported.")
    for name in ("AttachmentId", "DeleteOnTermination"):
        if given.get(name) in (None, ""):
            raise missing(f"Attachment.{name}")
    there = describer.attachment(pair)
    if there is None or there["AttachmentId"] != given["AttachmentId"]:
        raise no_attachment(given["AttachmentId"])
    ctx.commit_point()
    deletes = bool(given["DeleteOnTermination"])
    change_item(ctx, [pair.item.id], lambda data: {**data, kind.DELETES: deletes})


def _update(ctx: Context, pair: Pair, body: dict[str, Any]) -> None:
    try:
        ctx.user.network.update_port(pair.item.os_id or "", body)
    except Unavailable:
        raise
    except TrimaranError as error:
        raise refusal(error, (), str(pair.item.data.get(kind.SUBNET))) from error


_REFUSED = (
    "EnaSrdSpecification",
    "EnablePrimaryIpv6",
    "ConnectionTrackingSpecification",
    "AssociatePublicIpAddress",
    "AssociatedSubnetIds",
)
_CHANGES: Mapping[str, Change] = {
    "Description": _describe,
    "SourceDestCheck": _check,
    "Groups": _regroup,
    "Attachment": _attachment,
}
_SHOW: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "description": lambda shown: {"Description": {"Value": shown["Description"]}},
    "sourceDestCheck": lambda shown: {"SourceDestCheck": {"Value": shown["SourceDestCheck"]}},
    "groupSet": lambda shown: {"Groups": shown["Groups"]},
    "attachment": lambda shown: (
        {"Attachment": shown["Attachment"]} if "Attachment" in shown else {}
    ),
    "associatePublicIpAddress": lambda shown: {"AssociatePublicIpAddress": False},
}
