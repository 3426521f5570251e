"""Where a launch without VPC plugs the server in: the "classic" rule of spec ec2.md 3.0.

The project's single network that is neither external nor a subnet of a VPC;
networks shared by others count only when the project owns none.  Groups are
the project's by name, or by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, not_found

Row = Mapping[str, Any]


def networks(ctx: Context) -> list[Row]:
    """The networks that could serve, as Neutron lists them to the caller."""
    fields = ["id", "name", "project_id", "shared"]
    return list(ctx.user.network.networks(**{"router:external": False}, fields=fields))


def choose_network(rows: Sequence[Row], project_id: str) -> str:
    """The Neutron id of the one network that a launch without subnet uses.

    Raises:
        EC2Error: ``Unsupported`` when there is none, or more than one.
    """
    usable = [row for row in rows if not row["name"].startswith("subnet-")]
    own = [row for row in usable if row.get("project_id") == project_id]
    chosen = own or [row for row in usable if row.get("shared")]
    if len(chosen) != 1:
        found = "no network" if not chosen else "more than one network"
        raise EC2Error(
            "Unsupported",
            f"The project has {found} that instances without a subnet could be launched into.",
        )
    return str(chosen[0]["id"])


def groups(ctx: Context) -> list[Row]:
    """The project's security groups."""
    fields = ["id", "name"]
    return list(ctx.user.network.security_groups(project_id=ctx.project_id, fields=fields))


def choose_groups(ctx: Context, request: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """The groups that a launch asks for by id and by name; without any, ``default``.

    Raises:
        EC2Error: ``InvalidGroup.NotFound``; ``InvalidParameterValue`` for a name
            that two groups bear.
    """
    chosen: dict[str, Row] = {}
    wanted = ids.check_ids(request.get("SecurityGroupIds"), "securityGroupId", "sg")
    if wanted:
        by_os_id = {row["id"]: row for row in rows}
        items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, wanted))
        there = {item.id: by_os_id[item.os_id] for item in items if item.os_id in by_os_id}
        absent = [item_id for item_id in wanted if item_id not in there]
        if absent:
            raise ids.missing_ids(absent)
        chosen.update({row["id"]: row for row in there.values()})
    for name in request.get("SecurityGroups") or ():
        named = [row for row in rows if row["name"] == name]
        if not named:
            raise not_found("InvalidGroup.NotFound", "security group", [name])
        if len(named) > 1:
            raise invalid_value("SecurityGroup", name, "More than one group bears this name.")
        chosen[named[0]["id"]] = named[0]
    if not chosen:
        return [row for row in rows if row["name"] == "default"][:1]
    return list(chosen.values())
