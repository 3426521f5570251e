"""CreateNetworkInterface: one port, made with its final name by one call (spec ec2.md 3.9).

Its item comes first, so a crash leaves an item that the next look pairs with
its port by name, or drops when the port never came (see `volume_reserve`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.db.queries.ec2_tokens import ClientToken
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.client_token import check_token, fingerprint
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface import one_interface
from trimaran.ec2.kinds.interfaces.network_interface_groups import (
    groups_in_vpc,
    neutron_ids,
    shown_groups,
)
from trimaran.ec2.kinds.interfaces.network_interface_ips import (
    Addresses,
    asked_addresses,
    refusal,
    refuse_others,
)
from trimaran.ec2.kinds.interfaces.network_interface_kind import Interfaces
from trimaran.ec2.kinds.interfaces.network_interface_view import InterfaceDescriber
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.volumes.volume_reserve import Wanted, known_token, make, same_request
from trimaran.ec2.kinds.vpcs.dhcp_options_ports import as_rows, port_options
from trimaran.ec2.kinds.vpcs.subnet_kind import ZONE, one_subnet
from trimaran.ec2.kinds.vpcs.vpc_kind import locked_vpc, usable
from trimaran.ec2.protocol.errors import check_length
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import TrimaranError, Unavailable

Request = Mapping[str, Any]
Row = Mapping[str, Any]

LONGEST_DESCRIPTION = 255


def create_network_interface(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a network interface in a subnet."""
    refuse_others(request)
    description = check_description(request.get("Description"))
    tags = tag_specifications(request.get("TagSpecifications"), ["network-interface"])
    token, asked = check_token(request), fingerprint(request)
    earlier = known_token(ctx, token, asked)
    if earlier:
        return _replay(ctx, earlier, token)
    subnet = one_subnet(ctx, request.get("SubnetId"))
    addresses = asked_addresses(request, subnet.body["cidr"])
    groups = groups_in_vpc(ctx, request.get("Groups"), subnet.item.vpc_id or "")
    options = dhcp_rows(ctx, [subnet.item.vpc_id or ""])[subnet.item.vpc_id or ""]
    ctx.commit_point()
    data = interface_data(subnet.item, addresses, description)
    if token:
        data["client_token"] = token
    wanted = Wanted(
        kind.PREFIX,
        {"groups": shown_groups(ctx, groups)},
        data,
        tags.get("network-interface", {}),
        token,
        asked,
        subnet.item.vpc_id,
    )
    body = port_body(subnet, addresses, groups, options)
    done = make(
        ctx,
        wanted,
        create=creator(ctx, body, addresses, subnet.item.id),
        find=lambda name: ctx.user.network.ports(project_id=ctx.project_id, name=name),
        learnt=lambda port: {kind.PRIMARY: primary_of(port, addresses)},
        first=lambda s: still_there(s, ctx, [subnet.item]),
    )
    if isinstance(done, ClientToken):
        return _replay(ctx, same_request(done, asked), token)
    view, pair = done
    view.listed["groups"] = kind.group_rows(ctx)
    view.ids.update({item.os_id: item.id for item in groups if item.os_id})
    return _answer(InterfaceDescriber(view, Interfaces()), pair, token)


def check_description(text: str | None) -> str:
    """A description that can be kept.

    Raises:
        EC2Error: ``ValidationError``.
    """
    check_length("Description", text or "", LONGEST_DESCRIPTION)
    return text or ""


def interface_data(subnet: Item, addresses: Addresses, description: str) -> dict[str, Any]:
    """What an interface's item holds from the start."""
    data = {
        kind.SUBNET: subnet.id,
        "description": description,
        kind.PRIMARY: addresses.primary,
        "availability_zone": subnet.data.get(ZONE),
    }
    return {name: value for name, value in data.items() if value}


def port_body(
    subnet: Pair, addresses: Addresses, groups: Sequence[Item], options: Sequence[Row]
) -> dict[str, Any]:
    """The body of Neutron's create, but for the name."""
    body: dict[str, Any] = {
        "network_id": subnet.body["network_id"],
        "fixed_ips": addresses.fixed_ips(subnet.item.os_id or ""),
        "security_groups": neutron_ids(groups),
    }
    return {**body, "extra_dhcp_opts": list(options)} if options else body


def dhcp_rows(ctx: Context, vpc_ids: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """What new ports in VPCs tell their guests by DHCP, by VPC."""
    items = ctx.db.read(lambda s: queries.items_of(s, ctx.project_id, ["vpc", "dopt"]))
    rows: dict[str, list[dict[str, Any]]] = {vpc_id: [] for vpc_id in vpc_ids}
    for vpc in items:
        options = port_options(ctx, vpc, items) if vpc.id in rows else None
        if options:
            rows[vpc.id] = [row for row in as_rows(options) if row["opt_value"] is not None]
    return rows


def creator(ctx: Context, body: Row, addresses: Addresses, subnet_id: str) -> Callable[[str], Row]:
    """A function that makes the port of a name."""

    def create(name: str) -> Row:
        try:
            return ctx.user.network.create_port({**body, "name": name})
        except Unavailable:
            raise
        except TrimaranError as error:
            raise refusal(error, addresses.named, subnet_id) from error

    return create


def primary_of(port: Row, addresses: Addresses) -> str:
    """The primary address of a new port."""
    return addresses.primary or next(iter(kind.addresses_of(port)), "")


def still_there(session: Session, ctx: Context, subnets: Sequence[Item]) -> None:
    """Keep the VPCs of subnets from others' changes, and see that the subnets are still there.

    Raises:
        EC2Error: ``InvalidVpcID.NotFound``, ``InvalidSubnetID.NotFound``.
    """
    for vpc_id in sorted({item.vpc_id for item in subnets if item.vpc_id}):
        locked_vpc(session, ctx.project_id, vpc_id)
    wanted = [item.id for item in subnets]
    found = queries.items_by_ids(session, ctx.project_id, wanted)
    for subnet_id in wanted:
        usable(found, subnet_id)


def _replay(ctx: Context, interface_id: str, token: str) -> dict[str, Any]:
    """The interface of an earlier request with the same token, as it is now."""
    pair, describer = one_interface(ctx, interface_id)
    return _answer(describer, pair, token)


def _answer(describer: InterfaceDescriber, pair: Pair, token: str) -> dict[str, Any]:
    shown = {"NetworkInterface": describer.shown(pair)}
    return {**shown, "ClientToken": token} if token else shown
