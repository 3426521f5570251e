"""CreateTags, DeleteTags, DescribeTags."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_openstack import MINE, THEIRS, Caller
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.tag import create_tags, delete_tags, describe_tags
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol.errors import EC2Error


@pytest.fixture
def items(me: Caller) -> None:
    new = [
        NewItem("i", "server", MINE, id="i-00000001"),
        NewItem("vol", "volume", MINE, id="vol-00000001"),
        NewItem("i", "other", THEIRS, id="i-00000002"),
    ]
    me.db.write(lambda s: queries.add_items(s, new, ids.mint))


def _tags(caller: Caller, **request: Any) -> dict[str, str]:
    answer = caller(describe_tags, **request)
    return {f"{row['ResourceId']}/{row['Key']}": row["Value"] for row in answer["Tags"]}


def _set(caller: Caller, item_id: str, **tags: str) -> None:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    caller(create_tags, Resources=[item_id], Tags=rows)


def test_tags_are_text_whatever_they_look_like(me: Caller, items: None) -> None:
    _set(me, "i-00000001", a="42", b="true", c="", d="<&\"'> ü🦊")
    _set(me, "i-00000001", a="0x10")
    assert _tags(me) == {
        "i-00000001/a": "0x10",
        "i-00000001/b": "true",
        "i-00000001/c": "",
        "i-00000001/d": "<&\"'> ü🦊",
    }


def test_resource_types_and_untaggable_kinds(me: Caller, items: None) -> None:
    _set(me, "i-00000001", k="v")
    _set(me, "vol-00000001", k="v")
    _set(me, "ami-0000beef", k="v")
    types = {row["ResourceId"]: row["ResourceType"] for row in me(describe_tags)["Tags"]}
    assert types == {
        "i-00000001": "instance",
        "vol-00000001": "volume",
        "ami-0000beef": "image",
    }


@pytest.mark.parametrize(
    ("resources", "tags", "code"),
    [
        (["i-00000001"], [{"Key": "", "Value": "v"}], "InvalidParameterValue"),
        (["i-00000001"], [{"Value": "v"}], "InvalidParameterValue"),
        (["i-00000001"], [{"Key": "k"}], "InvalidParameterValue"),
        (["i-00000001"], [{"Key": "x" * 128, "Value": "v"}], "InvalidParameterValue"),
        (["i-00000001"], [{"Key": "k", "Value": "x" * 256}], "InvalidParameterValue"),
        (["i-00000001"], [{"Key": "aws:x", "Value": "v"}], "InvalidParameterValue"),
        (["i-00000001"], [{"Key": "k", "Value": "a\0b"}], "InvalidParameterValue"),
        (["i-00000001"], [], "MissingParameter"),
        ([], [{"Key": "k", "Value": "v"}], "MissingParameter"),
        (["nonsense"], [{"Key": "k", "Value": "v"}], "InvalidParameterValue"),
        (["eipalloc-00000001"], [{"Key": "k", "Value": "v"}], "InvalidAllocationID.NotFound"),
        (["foo-00000001"], [{"Key": "k", "Value": "v"}], "InvalidID"),
        (["ami-" + "1" * 40], [{"Key": "k", "Value": "v"}], "InvalidID"),
        (["i-00000009"], [{"Key": "k", "Value": "v"}], "InvalidInstanceID.NotFound"),
        (["i-00000001", "i-00000002"], [{"Key": "k", "Value": "v"}], "InvalidInstanceID.NotFound"),
        (["vol-00000009"], [{"Key": "k", "Value": "v"}], "InvalidVolume.NotFound"),
    ],
)
def test_wrong_tags_set_nothing(
    me: Caller, items: None, resources: list[str], tags: list[Any], code: str
) -> None:
    with pytest.raises(EC2Error) as caught:
        me(create_tags, Resources=resources, Tags=tags)
    assert caught.value.code == code
    assert _tags(me) == {}


def test_the_longest_key_and_value_fit(me: Caller, items: None) -> None:
    _set(me, "i-00000001", **{"k" * 127: "v" * 255})
    assert list(_tags(me).values()) == ["v" * 255]


@pytest.mark.parametrize(
    ("tags", "left"),
    [
        ([{"Key": "a"}], {"b", "empty"}),
        ([{"Key": "a", "Value": "1"}], {"b", "empty"}),
        ([{"Key": "a", "Value": "other"}], {"a", "b", "empty"}),
        ([{"Key": "a", "Value": ""}], {"a", "b", "empty"}),
        ([{"Key": "empty", "Value": ""}], {"a", "b"}),
        ([{"Key": "a"}, {"Key": "b", "Value": "2"}], {"empty"}),
        ([{"Key": "none"}], {"a", "b", "empty"}),
        ([{"Key": "a\0"}], {"a", "b", "empty"}),
        (None, set()),
    ],
)
def test_delete(me: Caller, items: None, tags: Any, left: set[str]) -> None:
    _set(me, "i-00000001", a="1", b="2", empty="")
    _set(me, "vol-00000001", a="1")
    me(delete_tags, Resources=["i-00000001", "i-00000099"], **({"Tags": tags} if tags else {}))
    assert set(_tags(me)) == {f"i-00000001/{key}" for key in left} | {"vol-00000001/a"}


def test_dry_runs_change_nothing(me: Caller, items: None) -> None:
    _set(me, "i-00000001", a="1")
    for action in (create_tags, delete_tags):
        with pytest.raises(EC2Error) as caught:
            me(action, Resources=["i-00000001"], Tags=[{"Key": "b", "Value": "1"}], DryRun=True)
        assert caught.value.code == "DryRunOperation"
    assert set(_tags(me)) == {"i-00000001/a"}


def test_filters(me: Caller, items: None) -> None:
    _set(me, "i-00000001", **{"a": "1", "a:b": "2"})
    _set(me, "vol-00000001", a="3")

    def filtered(**filters: str) -> set[str]:
        wanted = [
            {"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()
        ]
        return set(_tags(me, Filters=wanted))

    assert filtered(key="a") == {"i-00000001/a", "vol-00000001/a"}
    assert filtered(resource_type="volume") == {"vol-00000001/a"}
    assert filtered(resource_id="i-*") == {"i-00000001/a", "i-00000001/a:b"}
    assert filtered(tag_value="3") == filtered(value="3") == {"vol-00000001/a"}
    assert filtered(key="a", value="1") == {"i-00000001/a"}
    by_key = [{"Name": "tag:a:b", "Values": ["2"]}]
    assert set(_tags(me, Filters=by_key)) == {"i-00000001/a:b"}
    with pytest.raises(EC2Error):
        filtered(nonsense="x")


def test_pages(me: Caller, items: None) -> None:
    _set(me, "i-00000001", **{f"k{n}": "v" for n in range(6)})
    _set(me, "vol-00000001", k0="v")
    page = me(describe_tags, MaxResults=5)
    rest = me(describe_tags, MaxResults=5, NextToken=page["NextToken"])
    assert (len(page["Tags"]), len(rest["Tags"]), rest["NextToken"]) == (5, 2, None)
    assert len(me(describe_tags, MaxResults=1100)["Tags"]) == 7
    with pytest.raises(EC2Error) as caught:
        me(describe_tags, MaxResults=4)
    assert caught.value.code == "InvalidParameterValue"


def test_tags_of_others_are_not_there(me: Caller, them: Caller, items: None) -> None:
    _set(me, "i-00000001", a="1")
    _set(them, "i-00000002", b="2")
    them(delete_tags, Resources=["i-00000001"])
    assert set(_tags(me)) == {"i-00000001/a"}
    assert set(_tags(them)) == {"i-00000002/b"}


def test_tag_specifications_are_checked_like_tags() -> None:
    given = [
        {"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "1"}]},
        {"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "2"}]},
        {"ResourceType": "volume", "Tags": []},
    ]
    assert tag_specifications(given, {"instance", "volume"}) == {
        "instance": {"a": "2"},
        "volume": {},
    }
    assert tag_specifications(None, {"instance"}) == {}
    for bad in ({"Tags": []}, {"ResourceType": "vpc", "Tags": []}):
        with pytest.raises(EC2Error):
            tag_specifications([bad], {"instance"})
