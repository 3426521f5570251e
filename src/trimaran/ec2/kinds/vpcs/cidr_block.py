"""More ranges for VPCs and subnets: each has the IPv4 one that it was made with (spec 9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.subnet_kind import one_subnet
from trimaran.ec2.kinds.vpcs.vpc_kind import one_vpc, vpc_items
from trimaran.ec2.kinds.vpcs.vpc_view import ASSOCIATION
from trimaran.ec2.protocol.errors import EC2Error, not_found, unsupported


def associate_vpc_cidr_block(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: a VPC has one range."""
    one_vpc(ctx, request.get("VpcId"))
    raise unsupported("VPCs have the one IPv4 range that they were made with in this cloud.")


def disassociate_vpc_cidr_block(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: the one range of a VPC stays."""
    wanted = request["AssociationId"]
    vpcs = ctx.db.read(lambda s: vpc_items(s, ctx.project_id))
    if wanted in {ids.derive(vpc.id, ASSOCIATION) for vpc in vpcs}:
        raise EC2Error(
            "OperationNotPermitted",
            f"The vpc CIDR block with association ID {wanted} may not be disassociated. "
            "It is the primary IPv4 CIDR block of the VPC",
        )
    code = "InvalidVpcCidrBlockAssociationID.NotFound"
    raise not_found(code, "vpc CIDR block association ID", [wanted])


def associate_subnet_cidr_block(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: what could be added is IPv6, which subnets here do not have."""
    one_subnet(ctx, request.get("SubnetId"))
    raise unsupported("Subnets have no IPv6 in this cloud.")


def disassociate_subnet_cidr_block(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused: subnets have no range that could be taken away."""
    code = "InvalidSubnetCidrBlockAssociationID.NotFound"
    raise not_found(code, "subnet CIDR block association ID", [request["AssociationId"]])
