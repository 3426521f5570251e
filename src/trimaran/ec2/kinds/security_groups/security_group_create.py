"""CreateSecurityGroup (spec ec2.md 3.11), journalled.

The item comes first, in a transaction that keeps the VPC, so that neither a
VPC without groups is deleted under it nor two groups of one name are made.
The group is then made in Neutron under the item's id as its name, by which a
describe and the journal find it, and gets its own name when the item knows it.
A process that dies in between leaves a job that undoes it: no client was told.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_store import shown_tags, store_items
from trimaran.ec2.kinds.security_groups import security_group_default as default
from trimaran.ec2.kinds.security_groups.security_group_kind import NAME, PREFIX, name_of
from trimaran.ec2.kinds.security_groups.security_group_lookup import all_groups, named_vpc
from trimaran.ec2.kinds.security_groups.security_group_view import arn
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.vpcs.vpc_kind import MAKING, STAGE, locked_vpc, one_vpc
from trimaran.ec2.protocol.errors import EC2Error, invalid_value
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import Conflict, NotFound, TrimaranError, Unavailable

Request = Mapping[str, Any]

LONGEST = 255

_IN_VPC = re.compile(r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]+")
_CLASSIC = re.compile(r"[\x20-\x7e]+")


def create_security_group(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a group: in a VPC, in the default VPC, or in EC2-Classic mode in none."""
    name, description = request["GroupName"], request["Description"]
    vpc_id = request.get("VpcId") or None
    tags = tag_specifications(request.get("TagSpecifications"), ["security-group"])
    given = tags.get("security-group", {})
    vpc_id = one_vpc(ctx, vpc_id).id if vpc_id else named_vpc(ctx)
    _check_texts(name, description, in_vpc=vpc_id is not None)
    there = {pair.item.id: pair for pair in all_groups(ctx).pairs}
    _check_free(name, vpc_id, [pair.item for pair in there.values()], there)
    ctx.commit_point()
    item, job_id = _reserve(ctx, name, vpc_id, given, there)
    _make(ctx, item, job_id, name, description)
    shown = shown_tags(given)
    return {
        "GroupId": item.id,
        "SecurityGroupArn": arn(ctx, "security-group", item.id),
        **({"Tags": shown} if shown else {}),
    }


def _check_texts(name: str, description: str, *, in_vpc: bool) -> None:
    allowed, words = (
        (_IN_VPC, "a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*")
        if in_vpc
        else (_CLASSIC, "printable ASCII characters")
    )
    for parameter, text in (("groupName", name), ("groupDescription", description)):
        if not text.strip() or len(text) > LONGEST or not allowed.fullmatch(text):
            raise EC2Error(
                "ValidationError",
                f"Value ({text[:LONGEST]}) for parameter {parameter} is invalid. "
                f"It holds 1 to {LONGEST} characters of: {words}",
            )
    if name == default.NAME:
        if in_vpc:
            raise invalid_value("groupName", name, "Cannot use reserved security group name.")
        raise EC2Error("InvalidGroup.Reserved", f"The security group '{name}' is reserved")
    if ids.is_id(name, [PREFIX, "vpc"]):
        # In Neutron such a name means a group in the making, or a VPC's default group.
        raise invalid_value("groupName", name, "Group names may not look like sg-... or vpc-...")


def _check_free(
    name: str, vpc_id: str | None, items: list[Item], there: Mapping[str, Pair]
) -> None:
    for item in items:
        pair = there.get(item.id)
        named = name_of(item, pair.body) if pair else item.data.get(NAME)
        if item.vpc_id == vpc_id and named == name:
            where = f"VPC '{vpc_id}'" if vpc_id else "EC2-Classic"
            raise EC2Error(
                "InvalidGroup.Duplicate", f"The security group '{name}' already exists for {where}"
            )


def _reserve(
    ctx: Context,
    name: str,
    vpc_id: str | None,
    tags: Mapping[str, str],
    there: Mapping[str, Pair],
) -> tuple[Item, str]:
    data = {STAGE: MAKING, NAME: name}

    def wanted(session: Session) -> list[NewItem]:
        if vpc_id is not None:
            locked_vpc(session, ctx.project_id, vpc_id)
        _check_free(name, vpc_id, queries.items_of(session, ctx.project_id, [PREFIX]), there)
        return [NewItem(PREFIX, None, ctx.project_id, data, vpc_id=vpc_id, id=ids.mint(PREFIX))]

    def record(session: Session, items: list[Item]) -> str:
        payload = {"project": ctx.project_id, "group": items[0].id}
        return journal.begin(session, ctx.conf, journal.GROUP, items[0].id, payload)

    [item], job_id = store_items(ctx, wanted, tags=tags, beside=record)
    return item, job_id


def _make(ctx: Context, item: Item, job_id: str, name: str, description: str) -> None:
    neutron = ctx.user.network
    body = {"project_id": ctx.project_id, "name": item.id, "description": description}
    try:
        group = neutron.create_security_group(body)
    except Unavailable as error:
        group = _look_for(ctx, item, error)
    except TrimaranError:
        ctx.db.write(lambda s: _drop(s, ctx, item.id, job_id))
        raise
    try:
        _know(ctx, item, os_id=group["id"])
        neutron.update_security_group(group["id"], {"name": name})
    except TrimaranError:
        ctx.db.write(lambda s: _undo_soon(s, ctx, item, job_id))
        raise
    data = {NAME: name}
    _know(ctx, item, lambda s: journal.end(s, job_id), data=data)


def _look_for(ctx: Context, item: Item, error: Unavailable) -> dict[str, Any]:
    """No answer is no refusal: the group may be there, or may come."""
    try:
        rows = ctx.user.network.security_groups(name=item.id, project_id=ctx.project_id)
    except TrimaranError:
        rows = []
    if rows:
        return rows[0]
    # The name is free again; the journal looks for the group when it can come no more.
    ctx.db.write(lambda s: queries.delete_items(s, ctx.project_id, [item.id]))
    raise error


def _know(
    ctx: Context, item: Item, also: Callable[[Session], None] = lambda s: None, **changes: Any
) -> None:
    def write(session: Session) -> None:
        if not queries.update_item(session, ctx.project_id, item.id, **changes):
            # The journal took this process for dead, and undoes the group.
            raise Unavailable(service="network")
        also(session)

    ctx.db.write(write)


def _undo_soon(session: Session, ctx: Context, item: Item, job_id: str) -> None:
    # Without the name, so that it is free for the next attempt.
    queries.update_item(session, ctx.project_id, item.id, data={STAGE: MAKING})
    journal.hasten(session, job_id)


def _drop(session: Session, ctx: Context, item_id: str, job_id: str) -> None:
    queries.delete_items(session, ctx.project_id, [item_id])
    journal.end(session, job_id)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.group``: undo a group whose making was cut short."""
    item_id = job.payload["group"]
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, [item_id]))
    item = items[0] if items else None
    if item is not None and STAGE not in item.data:
        return
    neutron = ctx.admin.network
    rows = neutron.security_groups(name=item_id, project_id=ctx.project_id, fields=["id"])
    os_ids = {row["id"] for row in rows}
    if item is not None and item.os_id:
        os_ids.add(item.os_id)
    for os_id in sorted(os_ids):
        try:
            with contextlib.suppress(NotFound):
                neutron.delete_security_group(os_id)
        except Conflict as error:
            raise work.Retry(60.0, "interfaces to leave the group") from error
    job.commit(lambda s: queries.delete_items(s, ctx.project_id, [item_id]))
