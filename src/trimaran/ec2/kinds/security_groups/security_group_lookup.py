"""Finding security groups: all of them, by id, or by name.

Names are those of groups without VPC in EC2-Classic mode, and those of the
default VPC's groups otherwise (spec ec2.md 3.0).  Looking at all groups is also
when a VPC that lost its default group gets another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.security_groups import security_group_default as default
from trimaran.ec2.kinds.security_groups.security_group_kind import PREFIX, SecurityGroups, name_of
from trimaran.ec2.kinds.vpcs.default_vpc import ensure_default_vpc, with_default_vpc
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE
from trimaran.ec2.protocol.errors import EC2Error, missing, not_found
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, View


@dataclass(frozen=True)
class Groups:
    """Groups that were looked at.

    Attributes:
        kind: with the notes on rules.
        view: with tags and ids.
        pairs: the groups asked for.
    """

    kind: SecurityGroups
    view: View
    pairs: list[Pair]


def all_groups(ctx: Context) -> Groups:
    """All groups of the project, after the default VPC and each VPC's default group are there."""
    found = with_default_vpc(ctx, lambda: _look(ctx, None), lambda seen: seen.kind.vpcs)
    there = {pair.item.id for pair in found.pairs}
    lacking = [
        vpc
        for vpc in found.kind.vpcs
        if STAGE not in vpc.data and default.default_group_id(vpc.id) not in there
    ]
    if lacking and not ctx.dry_run and default.repair_default_groups(ctx, lacking):
        return _look(ctx, None)
    return found


def groups_by_ids(ctx: Context, group_ids: Sequence[str], parameter: str = "groupId") -> Groups:
    """The groups of some ids, in that order, each once.

    Raises:
        EC2Error: ``InvalidParameterValue``, ``InvalidGroup.NotFound``.
    """
    wanted = ids.check_ids(group_ids, parameter, PREFIX)
    return _look(ctx, wanted)


def groups_by(
    ctx: Context, group_ids: Sequence[str], names: Sequence[str], vpc_id: str | None
) -> list[Pair]:
    """The groups that a launch or an interface in a VPC (or in none) shall have.

    Args:
        ctx: the request.
        group_ids: by id.
        names: by name, among the groups of that VPC.
        vpc_id: the VPC, None for EC2-Classic.

    Returns:
        Each once; without ids and names the VPC's default group.

    Raises:
        EC2Error: ``InvalidParameterValue``, ``InvalidGroup.NotFound`` (also for
            groups of another VPC).
    """
    if not names and (group_ids or vpc_id is not None):
        wanted = list(group_ids) or [default.default_group_id(vpc_id or "")]
        found = groups_by_ids(ctx, wanted, "securityGroupId").pairs
    else:
        every = all_groups(ctx).pairs
        found = _by_ids(every, ids.check_ids(group_ids, "securityGroupId", PREFIX))
        found += _by_names(every, names or [default.NAME], vpc_id)
    foreign = [pair.item.id for pair in found if pair.item.vpc_id != vpc_id]
    if foreign:
        raise ids.missing_ids(foreign)
    return list({pair.item.id: pair for pair in found}.values())


def select(ctx: Context, group_ids: Sequence[str], names: Sequence[str]) -> Groups:
    """The groups that a describe asks for; without ids and names all of them."""
    wanted = ids.check_ids(group_ids, "groupId", PREFIX)
    if wanted and not names:
        return _look(ctx, wanted)
    every = all_groups(ctx)
    if not wanted and not names:
        return every
    chosen = _by_ids(every.pairs, wanted)
    chosen += _by_names(every.pairs, names, named_vpc(ctx)) if names else []
    there = list({pair.item.id: pair for pair in chosen}.values())
    return Groups(every.kind, every.view, there)


def one_group(ctx: Context, group_id: str | None, name: str | None = None) -> Groups:
    """The one group that a request names by its id, or else by its name.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``, ``InvalidGroup.NotFound``.
    """
    if group_id:
        return groups_by_ids(ctx, [group_id])
    if not name:
        raise missing("GroupId")
    every = all_groups(ctx)
    return Groups(every.kind, every.view, _by_names(every.pairs, [name], named_vpc(ctx)))


def named_vpc(ctx: Context) -> str | None:
    """The VPC whose groups names are about; None in EC2-Classic mode.

    Raises:
        EC2Error: ``VPCIdNotSpecified`` when there is no default VPC.
    """
    if not ctx.conf.disable_ec2_classic:
        return None
    vpc = ensure_default_vpc(ctx)
    if vpc is None:
        raise EC2Error("VPCIdNotSpecified", "No default VPC for this user.")
    return vpc.id


def _look(ctx: Context, wanted: Sequence[str] | None) -> Groups:
    kind = SecurityGroups()
    view = reconcile(ctx, kind, wanted)
    if wanted is None:
        return Groups(kind, view, view.pairs)
    pairs = {pair.item.id: pair for pair in view.pairs}
    return Groups(kind, view, [pairs[group_id] for group_id in wanted])


def _by_ids(pairs: Sequence[Pair], group_ids: Sequence[str]) -> list[Pair]:
    known = {pair.item.id: pair for pair in pairs}
    absent = [group_id for group_id in group_ids if group_id not in known]
    if absent:
        raise ids.missing_ids(absent)
    return [known[group_id] for group_id in group_ids]


def _by_names(pairs: Sequence[Pair], names: Sequence[str], vpc_id: str | None) -> list[Pair]:
    known: dict[str, Pair] = {}
    for pair in pairs:
        if pair.item.vpc_id == vpc_id:
            known.setdefault(name_of(pair.item, pair.body), pair)
    absent = [name for name in names if name not in known]
    if absent:
        raise not_found("InvalidGroup.NotFound", "security group", absent)
    return [known[name] for name in names]
