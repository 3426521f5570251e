"""DescribeAccountAttributes: what the project may have, from its quotas (spec ec2.md 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.cloud import gather
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.default_vpc import ensure_default_vpc
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.identity import NoEndpoint

Values = list[str]


def describe_account_attributes(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes asked for, or all."""
    wanted = list(dict.fromkeys(request.get("AttributeNames") or _ATTRIBUTES))
    for name in wanted:
        if name not in _ATTRIBUTES:
            raise EC2Error("InvalidParameter", f"The attribute '{name[:255]}' does not exist.")
    values = gather(**{name: _asking(ctx, name) for name in wanted})
    return {
        "AccountAttributes": [
            {
                "AttributeName": name,
                "AttributeValues": [{"AttributeValue": value} for value in values[name]],
            }
            for name in wanted
        ]
    }


def _asking(ctx: Context, name: str) -> Callable[[], Values]:
    return lambda: _ATTRIBUTES[name](ctx)


def _platforms(ctx: Context) -> Values:
    return ["VPC"] if ctx.conf.disable_ec2_classic else ["EC2", "VPC"]


def _default_vpc(ctx: Context) -> Values:
    found = ensure_default_vpc(ctx)
    return [found.id if found else "none"]


def _instances(ctx: Context) -> Values:
    absolute = ctx.user.compute.limits().get("absolute") or {}
    return [str(absolute.get("maxTotalInstances", -1))]


def _network_quota(ctx: Context, resource: str) -> Values:
    try:
        quota = ctx.once("network quota", lambda: ctx.user.network.quota(ctx.project_id))
    except NoEndpoint:
        return ["0"]
    return [str((quota.get(resource) or {}).get("limit", -1))]


def _quota(resource: str) -> Callable[[Context], Values]:
    return lambda ctx: _network_quota(ctx, resource)


_ATTRIBUTES: Mapping[str, Callable[[Context], Values]] = {
    "supported-platforms": _platforms,
    "default-vpc": _default_vpc,
    "max-instances": _instances,
    "vpc-max-security-groups-per-interface": _quota("security_group"),
    "max-elastic-ips": _quota("floatingip"),
    "vpc-max-elastic-ips": _quota("floatingip"),
}
