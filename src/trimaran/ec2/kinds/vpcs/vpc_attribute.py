"""DescribeVpcAttribute and ModifyVpcAttribute (spec ec2.md 9.2).

The attributes are kept and shown; names of guests are Neutron's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import ATTRIBUTES, locked_vpc, one_vpc
from trimaran.ec2.protocol.errors import invalid_combination, invalid_value, missing

Request = Mapping[str, Any]

#: Attribute, its name in requests and answers, and what it is until somebody changes it.
_KNOWN: Mapping[str, tuple[str, bool]] = {
    "enableDnsHostnames": ("EnableDnsHostnames", False),
    "enableDnsSupport": ("EnableDnsSupport", True),
    "enableNetworkAddressUsageMetrics": ("EnableNetworkAddressUsageMetrics", False),
}


def describe_vpc_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """One attribute of a VPC."""
    name = request.get("Attribute")
    if not name:
        raise missing("Attribute")
    if name not in _KNOWN:
        raise invalid_value("Attribute", name, "Unknown attribute.")
    vpc = one_vpc(ctx, request.get("VpcId"))
    member, default = _KNOWN[name]
    value = (vpc.data.get(ATTRIBUTES) or {}).get(name, default)
    return {"VpcId": vpc.id, member: {"Value": value}}


def modify_vpc_tenancy(ctx: Context, request: Request) -> dict[str, Any]:
    """VPCs may be told to launch on shared hardware, as all of them do here."""
    tenancy = request["InstanceTenancy"]
    one_vpc(ctx, request.get("VpcId"))
    if tenancy != "default":
        raise invalid_value("InstanceTenancy", tenancy, "The tenancy can be 'default' only.")
    ctx.commit_point()
    return {"ReturnValue": True}


def modify_vpc_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Change one attribute of a VPC."""
    given = {
        name: request[member].get("Value")
        for name, (member, _) in _KNOWN.items()
        if request.get(member) is not None
    }
    if len(given) != 1:
        raise invalid_combination("Exactly one attribute of the VPC must be given.")
    [(name, value)] = given.items()
    if value is None:
        raise missing(f"{_KNOWN[name][0]}.Value")
    vpc = one_vpc(ctx, request.get("VpcId"))
    ctx.commit_point()

    def store(session: Session) -> None:
        current = locked_vpc(session, ctx.project_id, vpc.id)
        attributes = {**(current.data.get(ATTRIBUTES) or {}), name: value}
        data = {**current.data, ATTRIBUTES: attributes}
        queries.update_item(session, ctx.project_id, vpc.id, data=data)

    ctx.db.write(store)
    return {}
