"""What a tag may look like, for CreateTags and for the TagSpecifications of every create.

The limits are those of the tables (spec ec2.md 3.14), which are a character
or so below AWS's; text is taken as it is, never by what it looks like (F2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing

LONGEST_KEY = 127
LONGEST_VALUE = 255


def check_tag(tag: Mapping[str, Any]) -> tuple[str, str]:
    """Key and value of a tag to be set.

    Raises:
        EC2Error: ``InvalidParameterValue`` for an empty or too long key, the
            prefix ``aws:``, a missing or too long value.
    """
    key, value = tag.get("Key"), tag.get("Value")
    if not key:
        raise invalid_value("Tag.Key", key or "", "Tag keys must not be empty.")
    if len(key) > LONGEST_KEY:
        raise invalid_value("Tag.Key", key, f"Tag keys have at most {LONGEST_KEY} characters.")
    if key.lower().startswith("aws:"):
        raise invalid_value("Tag.Key", key, "Tag keys starting with 'aws:' are reserved.")
    if value is None:
        raise invalid_value("Tag.Value", "", "Tag values must be given.")
    if len(value) > LONGEST_VALUE:
        raise invalid_value(
            "Tag.Value", value, f"Tag values have at most {LONGEST_VALUE} characters."
        )
    if "\0" in key or "\0" in value:
        # No database text and no XML document can hold it.
        raise invalid_value("Tag", "\\0", "The null character is not allowed.")
    return key, value


def check_tags(tags: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Tags to be set by key; of equal keys the last wins."""
    return dict(check_tag(tag) for tag in tags)


def tag_specifications(
    specifications: Sequence[Mapping[str, Any]] | None, allowed: Collection[str]
) -> dict[str, dict[str, str]]:
    """The tags of a create's ``TagSpecification.N``, by resource type.

    Args:
        specifications: as boto3 takes them.
        allowed: the resource types that the action makes.

    Raises:
        EC2Error: ``InvalidParameterValue`` for another resource type or a bad
            tag, ``MissingParameter`` for a specification without type.
    """
    found: dict[str, dict[str, str]] = {}
    for specification in specifications or ():
        resource_type = specification.get("ResourceType")
        if not resource_type:
            raise missing("TagSpecification.ResourceType")
        if resource_type not in allowed:
            raise invalid_value(
                "TagSpecification.ResourceType",
                resource_type,
                "It is not a taggable resource type of this action.",
            )
        found.setdefault(resource_type, {}).update(check_tags(specification.get("Tags") or ()))
    return found


def resource_type(item_id: str) -> str:
    """The resource type of an id's tags.

    Raises:
        EC2Error: ``InvalidParameterValue`` for what is no id, ``InvalidID`` for
            a kind that takes no tags.
    """
    if not ids.is_id(item_id):
        raise invalid_value("resourceId", item_id, "Invalid EC2 id was specified.")
    prefix = ids.PREFIXES.get(ids.kind_of(item_id))
    if prefix is None or not prefix.resource_type:
        raise EC2Error("InvalidID", f"The ID '{item_id}' is not valid")
    return prefix.resource_type
