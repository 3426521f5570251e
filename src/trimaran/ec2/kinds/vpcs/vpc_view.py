"""How a VPC looks on the wire (spec ec2.md 3.16 and appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import CIDR, DHCP_OPTIONS, IS_DEFAULT

#: Prefix of the id under which a VPC has its range.
ASSOCIATION = "vpc-cidr-assoc"


def shown_vpc(
    ctx: Context, item: Item, tags: Sequence[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The VPC of an item as boto3 shows it."""
    cidr = item.data.get(CIDR)
    made = {
        "VpcId": item.id,
        "OwnerId": ctx.project_id,
        "State": "available",
        "CidrBlock": cidr,
        "CidrBlockAssociationSet": [
            {
                "AssociationId": ids.derive(item.id, ASSOCIATION),
                "CidrBlock": cidr,
                "CidrBlockState": {"State": "associated"},
            }
        ],
        "Ipv6CidrBlockAssociationSet": [],
        "DhcpOptionsId": item.data.get(DHCP_OPTIONS) or "default",
        "InstanceTenancy": "default",
        "IsDefault": bool(item.data.get(IS_DEFAULT)),
    }
    return {**made, "Tags": list(tags)} if tags else made
