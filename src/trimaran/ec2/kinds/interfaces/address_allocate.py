"""AllocateAddress and ReleaseAddress: a floating IP of the external network (spec ec2.md 3.1)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2_tokens import ClientToken
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces import address_kind as kind
from trimaran.ec2.kinds.interfaces.address import (
    POOL,
    STANDARD,
    VPC,
    address_of,
    not_owned,
    one_address,
)
from trimaran.ec2.kinds.interfaces.network_interface_ips import one_of
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.volumes.volume_reserve import Wanted, make
from trimaran.ec2.kinds.vpcs.vpc_gateway import external_network
from trimaran.ec2.kinds.vpcs.vpc_kind import is_default
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, unsupported
from trimaran.ec2.reconcile_kind import Pair, View
from trimaran.errors import Conflict, NotFound, QuotaExceeded

Request = Mapping[str, Any]
Row = Mapping[str, Any]


def allocate_address(ctx: Context, request: Request) -> dict[str, Any]:
    """Get a public address."""
    domain = request.get("Domain") or (VPC if ctx.conf.disable_ec2_classic else STANDARD)
    if domain not in (VPC, STANDARD):
        raise invalid_value("Domain", domain, "Invalid domain.")
    if ctx.conf.disable_ec2_classic:
        domain = VPC
    _check_pool(ctx, request)
    tags = tag_specifications(request.get("TagSpecifications"), ["elastic-ip"])
    if tags and domain == STANDARD:
        raise unsupported("An address of the domain 'standard' takes no tags.")
    body = {"floating_network_id": external_network(ctx)["id"]}
    ctx.commit_point()
    made = {"Domain": domain, "PublicIpv4Pool": POOL, "NetworkBorderGroup": ctx.region}
    if domain == STANDARD:
        return {**made, "PublicIp": create_floating_ip(ctx, body)["floating_ip_address"]}
    done = make(
        ctx,
        Wanted(kind.PREFIX, {}, tags=tags.get("elastic-ip", {})),
        create=lambda name: create_floating_ip(ctx, {**body, "description": name}),
        find=lambda name: ctx.user.network.floating_ips(
            project_id=ctx.project_id, description=name
        ),
        learnt=lambda row: {kind.PUBLIC: row["floating_ip_address"]},
    )
    assert not isinstance(done, ClientToken)  # none was given
    pair = done[1]
    address = pair.body["floating_ip_address"]
    return {**made, "PublicIp": address, "AllocationId": pair.item.id}


def release_address(ctx: Context, request: Request) -> dict[str, Any]:
    """Give a public address back.

    The floating IP goes first: what is left when this process dies is an item
    without one, which the next look removes.
    """
    one_of(request, "AllocationId", "PublicIp")
    if request.get("NetworkBorderGroup") not in (None, "", ctx.region):
        raise invalid_value("NetworkBorderGroup", request["NetworkBorderGroup"])
    if request.get("PublicIp"):
        return _release_standard(ctx, request["PublicIp"])
    view, pair = one_address(ctx, request["AllocationId"])
    if pair.body.get("port_id") and not _may_be_taken(ctx, view, pair):
        raise EC2Error(
            "InvalidIPAddress.InUse", f"The address '{pair.item.id}' is in use and not released."
        )
    ctx.commit_point()
    _delete(ctx, pair.item.os_id or "")
    ctx.db.write(lambda s: queries.delete_items(s, ctx.project_id, [pair.item.id]))
    return {}


def _check_pool(ctx: Context, request: Request) -> None:
    for name in ("Address", "CustomerOwnedIpv4Pool", "IpamPoolId"):
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    if request.get("PublicIpv4Pool") not in (None, "", POOL):
        raise EC2Error(
            "InvalidPublicIpv4PoolID.NotFound",
            f"The pool ID '{request['PublicIpv4Pool'][:255]}' does not exist",
        )
    if request.get("NetworkBorderGroup") not in (None, "", ctx.region):
        raise invalid_value("NetworkBorderGroup", request["NetworkBorderGroup"])


def create_floating_ip(ctx: Context, body: Row) -> dict[str, Any]:
    """Make a floating IP.

    Raises:
        EC2Error: ``AddressLimitExceeded``, ``InsufficientAddressCapacity``.
    """
    try:
        return ctx.user.network.create_floating_ip(body)
    except QuotaExceeded as error:
        raise EC2Error(
            "AddressLimitExceeded", "The maximum number of addresses has been reached."
        ) from error
    except Conflict as error:
        raise EC2Error(
            "InsufficientAddressCapacity", "The cloud has no free public addresses.", 500
        ) from error


def _delete(ctx: Context, os_id: str) -> None:
    with contextlib.suppress(NotFound):
        ctx.user.network.delete_floating_ip(os_id)


def _may_be_taken(ctx: Context, view: View, pair: Pair) -> bool:
    """In a default VPC releasing includes disassociating, as it once did in EC2-Classic."""
    interface = view.id_of(pair.body.get("port_id"))
    if not ctx.conf.disable_ec2_classic or not interface:
        return False
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [interface]))
    vpc_ids = [item.vpc_id for item in items if item.vpc_id]
    vpcs = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, vpc_ids))
    return any(is_default(vpc) for vpc in vpcs)


def _release_standard(ctx: Context, public_ip: str) -> dict[str, Any]:
    if address_of(ctx, public_ip) is not None:
        raise invalid_value(
            "PublicIp", public_ip, "You must specify an allocation id to release the address."
        )
    rows = ctx.user.network.floating_ips(project_id=ctx.project_id, floating_ip_address=public_ip)
    mine = [row for row in rows if row.get("project_id") == ctx.project_id]
    known = ctx.db.read(lambda s: queries.by_os_ids(s, [row["id"] for row in mine]))
    free = [row for row in mine if row["id"] not in known]
    if not free:
        raise not_owned(public_ip)
    ctx.commit_point()
    _delete(ctx, free[0]["id"])
    return {}
