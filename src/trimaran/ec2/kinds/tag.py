"""Tags: CreateTags, DeleteTags, DescribeTags (spec ec2.md 3.14).  Database only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import key_pair
from trimaran.ec2.kinds.item_options import check_shown_tags, metadata_options
from trimaran.ec2.kinds.security_groups import security_group_kind
from trimaran.ec2.kinds.security_groups.security_group_rule import missing_rules
from trimaran.ec2.kinds.tag_rules import check_tags, resource_type
from trimaran.ec2.kinds.vpcs import network_acl
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing

Request = Mapping[str, Any]

#: What has no item (or needs none): which of some ids do not exist.
_ELSEWHERE = {
    key_pair.PREFIX: key_pair.missing_key_pairs,
    network_acl.PREFIX: network_acl.missing_acls,
    security_group_kind.RULE_PREFIX: missing_rules,
}

FILTERS: filters.Table = {
    "key": "Key",
    "tag-key": "Key",
    "resource-id": "ResourceId",
    "resource-type": "ResourceType",
    "value": "Value",
    "tag-value": "Value",
}


def create_tags(ctx: Context, request: Request) -> dict[str, Any]:
    """Set tags on resources; all resources must exist before any is tagged.

    Images are not looked up: a public one may never have been described by
    this project, and its tags are this project's own.
    """
    item_ids = _resources(request)
    for item_id in item_ids:
        resource_type(item_id)
    if not request.get("Tags"):
        raise missing("Tag")
    tags = check_tags(request["Tags"])
    for prefix, missing_of in _ELSEWHERE.items():
        named = [item for item in item_ids if ids.kind_of(item) == prefix]
        if named and (lacking := missing_of(ctx, named)):
            raise ids.missing_ids(lacking)
    elsewhere = (*ids.IMAGE_PREFIXES, *_ELSEWHERE)
    checked = [item for item in item_ids if ids.kind_of(item) not in elsewhere]
    if checked:
        found = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, checked))
        absent = set(checked) - {item.id for item in found}
        if absent:
            raise ids.missing_ids(absent)
        for item in found:
            check_shown_tags(metadata_options(item.data), tags)
    ctx.commit_point()
    rows = [Tag(item_id, key, value) for item_id in item_ids for key, value in tags.items()]

    def write(session: Session) -> None:
        tag_queries.set_tags(session, ctx.project_id, rows)
        queries.touch_items(session, ctx.project_id, _instances(item_ids))

    ctx.db.write(write)
    return {}


def delete_tags(ctx: Context, request: Request) -> dict[str, Any]:
    """Remove tags: a key, a key only with this value, or (without tags) all."""
    item_ids = _resources(request)
    pairs: list[tuple[str, str | None]] | None = None
    if request.get("Tags"):
        pairs = []
        for tag in request["Tags"]:
            if not tag.get("Key"):
                raise invalid_value("Tag.Key", "", "Tag keys must not be empty.")
            pairs.append((tag["Key"], tag.get("Value")))
    ctx.commit_point()
    texts = [text for pair in pairs or () for text in pair if text is not None]
    if any("\0" in text for text in texts):
        return {}  # no tag holds it

    def write(session: Session) -> None:
        tag_queries.delete_tags(session, ctx.project_id, item_ids, pairs)
        queries.touch_items(session, ctx.project_id, _instances(item_ids))

    ctx.db.write(write)
    return {}


def describe_tags(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's tags."""
    page = paging.Page(ctx.action, request)
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    rows = []
    for tag in ctx.db.read(lambda s: tag_queries.tags_of(s, ctx.project_id)):
        prefix = ids.PREFIXES.get(ids.kind_of(tag.item_id))
        row = {
            "Key": tag.key,
            "ResourceId": tag.item_id,
            "ResourceType": prefix.resource_type if prefix else "",
            "Value": tag.value,
        }
        # Beside its own names, the filter tag:KEY works here as everywhere.
        if not matches or matches({**row, "Tags": [row]}):
            rows.append(row)
    rows, token = page.slice(rows, key=lambda row: (row["Key"], row["ResourceId"]))
    return {"Tags": rows, "NextToken": token}


def _instances(item_ids: Sequence[str]) -> list[str]:
    """Those whose tags their guests may see, so that the metadata service reads them anew."""
    return [item_id for item_id in item_ids if ids.kind_of(item_id) == "i"]


def _resources(request: Request) -> list[str]:
    item_ids = list(dict.fromkeys(request.get("Resources") or ()))
    if not item_ids:
        raise missing("ResourceId")
    for item_id in item_ids:
        if not ids.is_id(item_id):
            raise invalid_value("resourceId", item_id, "Invalid EC2 id was specified.")
        if len(item_id) > queries.LONGEST_ID:
            raise EC2Error("InvalidID", f"The ID '{item_id[:255]}' is not valid")
    return item_ids
