"""Tags of the database as boto3 shows them."""

from __future__ import annotations

from collections.abc import Iterable

from trimaran.db.queries.ec2_tags import Tag

#: Tags by item id.
Tags = dict[str, list[dict[str, str]]]


def tags_by_item(tags: Iterable[Tag]) -> Tags:
    """The tags of several items, each item's in the order given."""
    found: Tags = {}
    for tag in tags:
        found.setdefault(tag.item_id, []).append({"Key": tag.key, "Value": tag.value})
    return found
