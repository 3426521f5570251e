"""Filters: names first, then values by type, wildcards with bounded cost."""

from __future__ import annotations

import fnmatch
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.protocol.filters import Pattern, compile_filters

TABLE = {
    "name": "Name",
    "size": "Size",
    "encrypted": "Encrypted",
    "create-time": "CreateTime",
    "attachment.instance-id": "Attachments.InstanceId",
    "attachment.on": "Attachments.Ebs.On",
    "upper": lambda item: item["Name"].upper(),
    "letters": lambda item: list(item["Name"]),
    "nothing": lambda item: None,
}
ITEM: dict[str, Any] = {
    "Name": "web-1",
    "Size": 80,
    "Encrypted": False,
    "CreateTime": datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC),
    "Attachments": [
        {"InstanceId": "i-1", "Ebs": {"On": True}},
        {"InstanceId": "i-2", "Ebs": None},
    ],
    "Tags": [{"Key": "a:b", "Value": "c:d"}, {"Key": "empty", "Value": None}],
}


def passes(*filters: tuple[str, list[str]], item: dict[str, Any] = ITEM, **options: Any) -> bool:
    given_filters = [{"Name": name, "Values": values} for name, values in filters]
    return compile_filters(given_filters, TABLE, **options)(item)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("name", "web-1", True),
        ("name", "WEB-1", False),
        ("name", "web*", True),
        ("name", "w?b-?", True),
        ("name", "web-?*?", False),
        ("name", "*", True),
        ("name", "[w]eb-1", False),
        ("name", "web", False),
        ("size", "80", True),
        ("size", "080", True),
        ("size", "8*", True),
        ("size", "80.0", False),
        ("encrypted", "false", True),
        ("encrypted", "FALSE", True),
        ("encrypted", "true", False),
        ("encrypted", "0", False),
        ("create-time", "2024-02-03T04:05:06.000Z", True),
        ("create-time", "2024-02-03T04:05:06Z", True),
        ("create-time", "2024-02-*", True),
        ("create-time", "2024-03-*", False),
        ("attachment.instance-id", "i-2", True),
        ("attachment.instance-id", "i-3", False),
        ("attachment.on", "TRUE", True),
        ("attachment.on", "false", False),
        ("upper", "WEB-1", True),
        ("letters", "b", True),
        ("nothing", "*", False),
        ("tag:a:b", "c:d", True),
        ("tag:a:b", "c:*", True),
        ("tag:a", "*", False),
        ("tag:empty", "*", True),
        ("tag-key", "a:?", True),
        ("tag-value", "c:d", True),
        ("tag-value", "x", False),
    ],
)
def test_one_filter(name: str, value: str, expected: bool) -> None:
    assert passes((name, [value])) is expected


def test_values_are_alternatives_and_filters_add_up() -> None:
    assert passes(("name", ["x", "web-1"]), ("size", ["1", "80"]))
    assert not passes(("name", ["web-1"]), ("size", ["1"]))


def test_an_absent_field_matches_nothing() -> None:
    assert not passes(("name", ["*"]), item={})
    assert not passes(("tag-key", ["*"]), item={"Tags": None})


@pytest.mark.parametrize("name", ["fake", "Name", "tagkey", "tag"])
def test_unknown_names_fail_before_there_is_any_item(name: str) -> None:
    with pytest.raises(EC2Error) as caught:
        compile_filters([{"Name": name, "Values": ["x"]}], TABLE)
    assert caught.value.code == "InvalidParameterValue"


def test_tag_filters_belong_to_taggable_kinds() -> None:
    for name in ("tag:x", "tag-key", "tag-value"):
        with pytest.raises(EC2Error):
            compile_filters([{"Name": name, "Values": ["x"]}], TABLE, taggable=False)


@pytest.mark.parametrize(
    "entry", [{}, {"Name": "name"}, {"Values": ["x"]}, {"Name": "name", "Values": []}]
)
def test_half_a_filter_is_invalid(entry: dict[str, Any]) -> None:
    with pytest.raises(EC2Error) as caught:
        compile_filters([entry], TABLE)
    assert caught.value.code == "InvalidFilter"


def test_no_filters_pass_everything() -> None:
    for nothing in (None, []):
        matcher = compile_filters(nothing, TABLE)
        assert not matcher
        assert matcher.apply([ITEM, {}]) == [ITEM, {}]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        (r"a\?", "a?", True),
        (r"a\\*", "a\\x", True),
        (r"a\\", "a\\", True),
        ("a\\", "a\\", True),
        (r"\*", "*", True),
        (r"\a", "a", True),
        ("**?**", "x", True),
        ("**?**", "", False),
        ("", "", True),
        ("", "x", False),
        ("*\n*", "a\nb", True),
    ],
)
def test_escapes(pattern: str, text: str, expected: bool) -> None:
    assert Pattern(pattern).matches(text) is expected


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_wildcards_agree_with_the_shell_where_both_know_them(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text) == bool(re.match(fnmatch.translate(pattern), text))


def test_a_hostile_pattern_costs_little() -> None:
    started = time.process_time()
    assert not Pattern("a*" * 100 + "b").matches("a" * 5000)
    assert not Pattern("*a" * 500_000).matches("a" * 255)
    assert time.process_time() - started < 2


def test_the_number_of_wildcards_is_bounded() -> None:
    with pytest.raises(EC2Error) as caught:
        compile_filters([{"Name": "name", "Values": [f"{n}*" for n in range(201)]}], TABLE)
    assert caught.value.code == "FilterLimitExceeded"
    many = [{"Name": "name", "Values": [str(n) for n in range(5000)]}]
    assert not compile_filters(many, TABLE)(ITEM)
