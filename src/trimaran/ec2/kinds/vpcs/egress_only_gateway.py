"""Egress-only internet gateways: a way out for IPv6, which VPCs here do not have (spec 9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.nothing import none_of
from trimaran.ec2.kinds.vpcs.vpc_kind import one_vpc
from trimaran.ec2.protocol.errors import missing, unsupported

PREFIX = "eigw"

describe_egress_only_internet_gateways = none_of(
    "EgressOnlyInternetGateways",
    "InvalidGatewayID.NotFound",
    "EgressOnlyInternetGatewayIds",
    module=__name__,
)


def create_egress_only_internet_gateway(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: there is no IPv6 in a VPC."""
    one_vpc(ctx, request.get("VpcId"))
    raise unsupported("VPCs have no IPv6 in this cloud.")


def delete_egress_only_internet_gateway(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """There is none that could be deleted."""
    gateway_id = request.get("EgressOnlyInternetGatewayId")
    if not gateway_id:
        raise missing("EgressOnlyInternetGatewayId")
    raise ids.missing_ids([ids.check_id(gateway_id, "egressOnlyInternetGatewayId", PREFIX)])
