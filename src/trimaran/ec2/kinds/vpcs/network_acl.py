"""Network ACLs: the default one of each VPC, which lets everything through (spec ec2.md 9.2).

Neutron has none.  A VPC's ACL is computed from the VPC and has its number; it
is shown with the subnets that it is associated with, and cannot be changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE, being_made, one_vpc
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, missing, unsupported
from trimaran.ec2.tags_shown import tags_by_item

Request = Mapping[str, Any]

PREFIX = "acl"
ASSOCIATION = "aclassoc"
LAST_RULE = 32767
FIRST_RULE = 100

FILTERS: filters.Table = {
    "association.association-id": "Associations.NetworkAclAssociationId",
    "association.network-acl-id": "Associations.NetworkAclId",
    "association.subnet-id": "Associations.SubnetId",
    "default": "IsDefault",
    "entry.cidr": "Entries.CidrBlock",
    "entry.icmp.code": "Entries.IcmpTypeCode.Code",
    "entry.icmp.type": "Entries.IcmpTypeCode.Type",
    "entry.ipv6-cidr": "Entries.Ipv6CidrBlock",
    "entry.port-range.from": "Entries.PortRange.From",
    "entry.port-range.to": "Entries.PortRange.To",
    "entry.protocol": "Entries.Protocol",
    "entry.rule-action": "Entries.RuleAction",
    "entry.egress": "Entries.Egress",
    "entry.rule-number": "Entries.RuleNumber",
    "network-acl-id": "NetworkAclId",
    "owner-id": "OwnerId",
    "vpc-id": "VpcId",
}


def describe_network_acls(ctx: Context, request: Request) -> dict[str, Any]:
    """The ACL of each VPC."""
    page = paging.Page(ctx.action, request, ids="NetworkAclIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("NetworkAclIds"), "networkAclId", PREFIX)
    shown = {row["NetworkAclId"]: row for row in _acls(ctx)}
    absent = [acl_id for acl_id in wanted if acl_id not in shown]
    if absent:
        raise ids.missing_ids(absent)
    chosen = [shown[acl_id] for acl_id in wanted] if wanted else list(shown.values())
    rows, token = page.slice(matches.apply(chosen), key=lambda row: str(row["NetworkAclId"]))
    return {"NetworkAcls": rows, "NextToken": token}


def missing_acls(ctx: Context, acl_ids: Sequence[str]) -> list[str]:
    """Which of some ACLs do not exist."""
    there = {row["NetworkAclId"] for row in _acls(ctx)}
    return [acl_id for acl_id in acl_ids if acl_id not in there]


def create_network_acl(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused: Neutron has no such thing."""
    one_vpc(ctx, request.get("VpcId"))
    raise _refusal()


def delete_network_acl(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused: the default ACL cannot be deleted, and there is no other."""
    acl_id = _checked(ctx, request)
    raise EC2Error("InvalidParameterValue", f"Cannot delete default network ACL {acl_id}")


def create_network_acl_entry(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused."""
    _checked(ctx, request)
    raise _refusal()


def replace_network_acl_entry(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused."""
    _checked(ctx, request)
    raise _refusal()


def delete_network_acl_entry(ctx: Context, request: Request) -> dict[str, Any]:
    """Refused."""
    _checked(ctx, request)
    raise _refusal()


def replace_network_acl_association(ctx: Context, request: Request) -> dict[str, Any]:
    """Nothing to do where the subnet has the ACL; there is no other in its VPC."""
    acl_id = _checked(ctx, request)
    association = request.get("AssociationId") or ""
    for row in _acls(ctx):
        for entry in row["Associations"]:
            if entry["NetworkAclAssociationId"] == association:
                if entry["NetworkAclId"] != acl_id:
                    raise ids.missing_ids([acl_id])
                ctx.commit_point()
                return {"NewAssociationId": association}
    raise EC2Error(
        "InvalidAssociationID.NotFound", f"The association ID '{association}' does not exist"
    )


def _checked(ctx: Context, request: Request) -> str:
    acl_id = request.get("NetworkAclId")
    if not acl_id:
        raise missing("NetworkAclId")
    ids.check_id(acl_id, "networkAclId", PREFIX)
    if missing_acls(ctx, [acl_id]):
        raise ids.missing_ids([acl_id])
    return str(acl_id)


def _refusal() -> EC2Error:
    return unsupported("This cloud has no network ACLs but the one that lets everything through.")


def _acls(ctx: Context) -> list[dict[str, Any]]:
    def read(session: Session) -> tuple[list[Item], list[tag_queries.Tag]]:
        items = queries.items_of(session, ctx.project_id, ["vpc", "subnet"])
        return items, tag_queries.tags_of(session, ctx.project_id, [PREFIX])

    items, tags = ctx.db.read(read)
    tagged = tags_by_item(tags)
    subnets: dict[str | None, list[str]] = {}
    for item in items:
        if item.kind == "subnet" and not being_made(item):
            subnets.setdefault(item.vpc_id, []).append(item.id)
    return [
        _shown(ctx, vpc, sorted(subnets.get(vpc.id, ())), tagged)
        for vpc in items
        if vpc.kind == "vpc" and STAGE not in vpc.data
    ]


def _shown(
    ctx: Context, vpc: Item, subnets: Sequence[str], tags: Mapping[str, list[dict[str, str]]]
) -> dict[str, Any]:
    acl_id = ids.derive(vpc.id, PREFIX)
    return {
        "NetworkAclId": acl_id,
        "VpcId": vpc.id,
        "OwnerId": ctx.project_id,
        "IsDefault": True,
        "Associations": [
            {
                "NetworkAclAssociationId": ids.derive(subnet_id, ASSOCIATION),
                "NetworkAclId": acl_id,
                "SubnetId": subnet_id,
            }
            for subnet_id in subnets
        ],
        "Entries": [
            {
                "CidrBlock": "0.0.0.0/0",
                "Egress": egress,
                "Protocol": "-1",
                "RuleAction": action,
                "RuleNumber": number,
            }
            for egress in (True, False)
            for number, action in ((FIRST_RULE, "allow"), (LAST_RULE, "deny"))
        ],
        "Tags": tags.get(acl_id, []),
    }
