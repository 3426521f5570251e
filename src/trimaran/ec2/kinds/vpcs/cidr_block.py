"""More ranges for VPCs and subnets: each has the IPv4 one that it was made with (spec 9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.subnet_kind import one_subnet
from trimaran.ec2.kinds.vpcs.vpc_kind import one_vpc
from trimaran.ec2.protocol.errors import unsupported


def associate_vpc_cidr_block(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: a VPC has one range."""
    one_vpc(ctx, request.get("VpcId"))
    raise unsupported("VPCs have the one IPv4 range that they were made with in this cloud.")


def associate_subnet_cidr_block(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: what could be added is IPv6, which subnets here do not have."""
    one_subnet(ctx, request.get("SubnetId"))
    raise unsupported("Subnets have no IPv6 in this cloud.")
