"""CreateVpc (spec ec2.md 3.16): a router and a default group, and the items that say so.

The items come first, hidden, with a journal entry; the Neutron objects are then
made with the VPC's id as their name; last the items learn of them and are
shown.  Whatever fails in between, or dies, is undone by `topology_raze`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_items
from trimaran.ec2.kinds.security_groups.security_group_default import (
    default_group_item,
    make_default_group,
)
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs import topology_raze
from trimaran.ec2.kinds.vpcs.route_push import DESTINATION, GATEWAY, ROUTES
from trimaran.ec2.kinds.vpcs.vpc_cidr import vpc_range
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR, IS_DEFAULT, MAIN_TABLE, MAKING, PREFIX, STAGE
from trimaran.ec2.kinds.vpcs.vpc_view import shown_vpc
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, unsupported
from trimaran.errors import QuotaExceeded, TrimaranError, Unavailable

Request = Mapping[str, Any]
T = TypeVar("T")

#: Of the request, what would be a lie to take silently.
_REFUSED = (
    "Ipv4IpamPoolId",
    "Ipv4NetmaskLength",
    "Ipv6Pool",
    "Ipv6CidrBlock",
    "Ipv6IpamPoolId",
    "Ipv6NetmaskLength",
    "Ipv6CidrBlockNetworkBorderGroup",
    "VpcEncryptionControl",
    "AmazonProvidedIpv6CidrBlock",
)


def create_vpc(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a VPC."""
    refuse(request, _REFUSED)
    check_tenancy(request.get("InstanceTenancy"))
    cidr = vpc_range(request.get("CidrBlock"))
    tags = tag_specifications(request.get("TagSpecifications"), ["vpc"]).get("vpc", {})
    ctx.commit_point()
    draft = reserve_vpc(ctx, cidr, tags=tags)
    with_undo(ctx, draft, lambda: _make(ctx, draft))
    return {"Vpc": shown_vpc(ctx, draft.vpc, shown_tags(tags))}


@dataclass(frozen=True)
class Draft:
    """A VPC that is being made: its items, and the journal's entry.

    Attributes:
        vpc: the VPC.
        others: items that are made with it; the main route table is the first.
        job_id: undoes all of it unless it is ended.
    """

    vpc: Item
    others: list[Item]
    job_id: str

    @property
    def razed(self) -> list[str]:
        """What has objects in Neutron, in the order of removal."""
        return [item.id for item in self.others if item.kind == "subnet"] + [self.vpc.id]

    @property
    def all_ids(self) -> list[str]:
        """All items."""
        return [self.vpc.id, *(item.id for item in self.others)]


def reserve_vpc(
    ctx: Context,
    cidr: IPv4Network,
    *,
    tags: Mapping[str, str] | None = None,
    is_default: bool = False,
    beside: Callable[[str, dict[str, Any]], Sequence[NewItem]] = lambda vpc_id, table: (),
) -> Draft:
    """Store the items of a VPC to be made, and the entry that undoes it.

    Args:
        ctx: the request, behind its commit point.
        cidr: its range.
        tags: of the VPC.
        is_default: it is the project's default VPC.
        beside: more items, given the VPC's id and its main table's data.
    """

    def wanted(session: Session) -> list[NewItem]:
        vpc_id, table_id = ids.mint(PREFIX), ids.mint("rtb")
        table = {ROUTES: [local_route(cidr)]}
        more = beside(vpc_id, table)
        data = {
            CIDR: str(cidr),
            IS_DEFAULT: is_default,
            MAIN_TABLE: table_id,
            STAGE: MAKING,
        }
        return [
            NewItem(PREFIX, None, ctx.project_id, data, id=vpc_id),
            NewItem("rtb", None, ctx.project_id, table, vpc_id=vpc_id, id=table_id),
            *more,
        ]

    def record(session: Session, items: list[Item]) -> str:
        draft = Draft(items[0], items[1:], "")
        besides = topology_raze.beside_vpc(
            draft.vpc, [item.id for item in draft.others if item.kind != "subnet"]
        )
        return topology_raze.begin(session, ctx, draft.razed, besides)

    items, job_id = store_items(ctx, wanted, tags=tags, beside=record)
    return Draft(items[0], items[1:], job_id)


def local_route(cidr: IPv4Network) -> dict[str, Any]:
    """The route within a VPC, as route tables store it."""
    return {DESTINATION: str(cidr), GATEWAY: None}


def with_undo(ctx: Context, draft: Draft, make: Callable[[], T]) -> T:
    """Run what makes the objects of a draft; when it fails, nothing is left.

    Raises:
        TrimaranError: what ``make`` raised.
    """
    try:
        return make()
    except TrimaranError as error:
        try:
            for item_id in draft.razed:
                topology_raze.raze(ctx, ctx.user, item_id)
            ctx.db.write(lambda s: _forget(s, ctx, draft))
        except TrimaranError:
            ctx.db.write(lambda s: journal.hasten(s, draft.job_id))
        if isinstance(error, QuotaExceeded):
            raise EC2Error(
                "VpcLimitExceeded", "The maximum number of VPCs has been reached."
            ) from error
        raise


def finish_vpc(session: Session, ctx: Context, draft: Draft, router: str, group: str) -> None:
    """The VPC is there; within the last transaction.

    Raises:
        Unavailable: somebody took this process for dead and undid its work.
    """
    vpc = draft.vpc
    data = {name: value for name, value in vpc.data.items() if name != STAGE}
    if not queries.update_item(
        session, ctx.project_id, vpc.id, version=vpc.version, data=data, os_id=router
    ):
        raise Unavailable(service="work")
    new = default_group_item(ctx, vpc.id, group)
    # A describe may have met the group already, and named it by chance.
    met = [item.id for item in queries.by_os_ids(session, [group]).values() if item.id != new.id]
    queries.delete_items(session, ctx.project_id, met)
    queries.add_items(session, [new], ids.mint)
    journal.end(session, draft.job_id)


def _make(ctx: Context, draft: Draft) -> None:
    name = draft.vpc.id
    made: dict[str, str] = gather(
        router=lambda: str(ctx.user.network.create_router({"name": name})["id"]),
        group=lambda: make_default_group(ctx, ctx.user, name),
    )
    ctx.db.write(lambda s: finish_vpc(s, ctx, draft, made["router"], made["group"]))


def _forget(session: Session, ctx: Context, draft: Draft) -> None:
    queries.delete_items(session, ctx.project_id, draft.all_ids)
    journal.end(session, draft.job_id)


def refuse(request: Request, names: Sequence[str]) -> None:
    """Refuse parameters that ask for what there is not here.

    Raises:
        EC2Error: ``UnsupportedOperation``.
    """
    for name in names:
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")


def check_tenancy(tenancy: str | None) -> None:
    """Only shared hardware is on offer.

    Raises:
        EC2Error: ``UnsupportedOperation``, ``InvalidParameterValue``.
    """
    if tenancy in ("dedicated", "host"):
        raise unsupported("Dedicated tenancy is not supported.")
    if tenancy not in (None, "", "default"):
        raise invalid_value("InstanceTenancy", tenancy)
