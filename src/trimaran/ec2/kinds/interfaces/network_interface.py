"""Network interfaces: describe and delete (spec ec2.md 3.9)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface_attachments import settle_attachments
from trimaran.ec2.kinds.interfaces.network_interface_kind import PREFIX, Interfaces
from trimaran.ec2.kinds.interfaces.network_interface_routes import retell_routes
from trimaran.ec2.kinds.interfaces.network_interface_view import InterfaceDescriber
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import Conflict, Forbidden, NotFound

Request = Mapping[str, Any]

BY_ATTACHMENT = "attachment.attachment-id"

FILTERS: filters.Table = {
    "addresses.association.owner-id": "PrivateIpAddresses.Association.IpOwnerId",
    "addresses.association.ip-owner-id": "PrivateIpAddresses.Association.IpOwnerId",
    "addresses.association.public-ip": "PrivateIpAddresses.Association.PublicIp",
    "addresses.primary": "PrivateIpAddresses.Primary",
    "addresses.private-ip-address": "PrivateIpAddresses.PrivateIpAddress",
    "association.allocation-id": "Association.AllocationId",
    "association.association-id": "Association.AssociationId",
    "association.ip-owner-id": "Association.IpOwnerId",
    "association.public-dns-name": "Association.PublicDnsName",
    "association.public-ip": "Association.PublicIp",
    "attachment.attach-time": "Attachment.AttachTime",
    "attachment.attach.time": "Attachment.AttachTime",
    BY_ATTACHMENT: "Attachment.AttachmentId",
    "attachment.delete-on-termination": "Attachment.DeleteOnTermination",
    "attachment.device-index": "Attachment.DeviceIndex",
    "attachment.instance-id": "Attachment.InstanceId",
    "attachment.instance-owner-id": "Attachment.InstanceOwnerId",
    "attachment.status": "Attachment.Status",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "client-token": "ClientToken",
    "description": "Description",
    "group-id": "Groups.GroupId",
    "group-name": "Groups.GroupName",
    "interface-type": "InterfaceType",
    "ipv6-addresses.ipv6-address": "Ipv6Addresses.Ipv6Address",
    "mac-address": "MacAddress",
    "network-interface-id": "NetworkInterfaceId",
    # No interface belongs to a service.
    "operator.managed": lambda row: False,
    "operator.principal": "Operator.Principal",
    "owner-id": "OwnerId",
    "private-dns-name": "PrivateDnsName",
    "private-ip-address": "PrivateIpAddress",
    "requester-id": "RequesterId",
    "requester-managed": "RequesterManaged",
    "source-dest-check": "SourceDestCheck",
    "status": "Status",
    "subnet-id": "SubnetId",
    "vpc-id": "VpcId",
}


def describe_network_interfaces(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's network interfaces."""
    page = paging.Page(ctx.action, request, ids="NetworkInterfaceIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("NetworkInterfaceIds"), "networkInterfaceId", PREFIX)
    of = Interfaces()
    view = settle_attachments(ctx, reconcile(ctx, of, wanted or None))
    absent = set(wanted) - {pair.item.id for pair in view.pairs}
    if absent:
        raise ids.missing_ids(absent)
    describer = InterfaceDescriber(view, of)
    shown = []
    for pair in view.pairs:
        row = describer.shown(pair)
        if BY_ATTACHMENT in matches.names and "Attachment" not in row:
            last = describer.ended_attachment(pair)
            row |= {"Attachment": last} if last else {}
        beside = {"Tags": row["TagSet"], "ClientToken": pair.item.data.get("client_token")}
        if not matches or matches({**row, **beside}):
            shown.append(row)
    rows, token = page.slice(shown, key=lambda row: row["NetworkInterfaceId"])
    return {"NetworkInterfaces": rows, "NextToken": token}


def delete_network_interface(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete an interface that nothing has; elastic IPs on it are free afterwards.

    The port goes first: what is left when this process dies is an item without
    port, which the next look removes.
    """
    pair, _ = one_interface(ctx, request.get("NetworkInterfaceId"), described=False)
    require_free(pair)
    ctx.commit_point()
    try:
        with contextlib.suppress(NotFound):
            ctx.user.network.delete_port(pair.item.os_id or "")
    except (Conflict, Forbidden) as error:
        raise _kept(ctx, pair, error) from error
    ctx.db.write(lambda s: _forget(s, ctx, pair.item.id))
    return {}


def _forget(session: Session, ctx: Context, interface_id: str) -> None:
    queries.delete_items(session, ctx.project_id, [interface_id])
    retell_routes(session, ctx, [interface_id])


def one_interface(
    ctx: Context, interface_id: str | None, *, described: bool = True
) -> tuple[Pair, InterfaceDescriber]:
    """The interface that a request names.

    Args:
        ctx: the request.
        interface_id: what the caller sent.
        described: it will be shown: read groups and addresses as well.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``,
            ``InvalidNetworkInterfaceID.NotFound``.
    """
    if not interface_id:
        raise missing("NetworkInterfaceId")
    ids.check_id(interface_id, "networkInterfaceId", PREFIX)
    of = Interfaces(groups=described, addresses=described)
    view = settle_attachments(ctx, reconcile(ctx, of, [interface_id]))
    if not view.pairs:
        raise ids.missing_ids([interface_id])
    return view.pairs[0], InterfaceDescriber(view, of)


def settled_interfaces(ctx: Context, interface_ids: Sequence[str]) -> list[Pair]:
    """Interfaces of well-formed ids as they are now, by one look; not to be shown.

    Raises:
        EC2Error: ``InvalidNetworkInterfaceID.NotFound``.
    """
    of = Interfaces(groups=False, addresses=False)
    pairs = settle_attachments(ctx, reconcile(ctx, of, interface_ids)).pairs
    absent = set(interface_ids) - {pair.item.id for pair in pairs}
    if absent:
        raise ids.missing_ids(absent)
    return pairs


def require_free(pair: Pair) -> None:
    """Refuse an interface that an instance has, or that is not there yet.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    if pair.found is None or not kind.is_free(pair.item.data, pair.body):
        raise in_use(pair.item.id)


def in_use(interface_id: str) -> EC2Error:
    """The error for an interface that an instance has (spec ec2.md 3.9, check 55)."""
    return EC2Error(
        "InvalidParameterValue", f"Network interface '{interface_id}' is currently in use."
    )


def _kept(ctx: Context, pair: Pair, error: Exception) -> Exception:
    """Neutron keeps a port that a server got meanwhile, and for whoever may not delete any."""
    try:
        port = ctx.user.network.port(pair.item.os_id or "")
    except NotFound:
        return ids.missing_ids([pair.item.id])
    return in_use(pair.item.id) if port.get("device_id") else error
