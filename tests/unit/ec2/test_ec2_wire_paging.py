"""Pages: limits, tokens that survive change, tokens that nobody can bend."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.protocol.paging import Page

IDS = [f"i-{n:08x}" for n in range(12)]


def page(ids: list[str] = IDS, scope: str = "DescribeInstances", **request: Any) -> Any:
    return Page(scope, request, ids="InstanceIds").slice(ids, key=lambda item: item)


def code_of(scope: str = "DescribeInstances", **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        Page(scope, request, ids="InstanceIds")
    assert caught.value.status == 400
    return caught.value.code


def test_pages_cover_everything_once_and_end_without_token() -> None:
    first, token = page(list(reversed(IDS)), MaxResults=5)
    second, token2 = page(MaxResults=5, NextToken=token)
    third, end = page(MaxResults=5, NextToken=token2)
    assert first + second + third == IDS
    assert end is None


def test_a_token_alone_continues_to_the_end() -> None:
    _, token = page(MaxResults=5)
    assert page(NextToken=token) == (IDS[5:], None)


def test_items_that_come_and_go_do_not_shift_pages() -> None:
    _, token = page(MaxResults=5)
    changed = ["i-00000001a", *IDS[3:4], *IDS[6:], "i-ffffffff"]
    assert page(changed, NextToken=token)[0] == [*IDS[6:], "i-ffffffff"]
    assert page([], NextToken=token) == ([], None)


@pytest.mark.parametrize("asked", [1, 4, -1, -(2**31)])
def test_too_small_pages_are_refused(asked: int) -> None:
    assert code_of(MaxResults=asked) == "InvalidParameterValue"


def test_zero_means_no_limit_and_too_much_is_clamped() -> None:
    assert page(MaxResults=0) == (IDS, None)
    many = [f"{n:05d}" for n in range(1500)]
    first, token = page(many, MaxResults=1100)
    assert len(first) == 1000
    assert token


def test_ids_exclude_max_results() -> None:
    assert code_of(MaxResults=5, InstanceIds=["i-1"]) == "InvalidParameterCombination"
    Page("DescribeInstances", {"MaxResults": 5, "InstanceIds": []}, ids="InstanceIds")
    Page("DescribeTags", {"MaxResults": 5, "InstanceIds": ["x"]})


@given(st.text(max_size=80))
def test_a_made_up_token_is_refused(token: str) -> None:
    if token:
        assert code_of(NextToken=token) == "InvalidNextToken"


def test_a_token_of_another_action_or_a_changed_one_is_refused() -> None:
    _, token = page(MaxResults=5)
    assert code_of("DescribeVolumes", NextToken=token) == "InvalidNextToken"
    raw = bytearray(base64.urlsafe_b64decode(token))
    raw[-1] ^= 1
    assert code_of(NextToken=base64.urlsafe_b64encode(raw).decode()) == "InvalidNextToken"
    assert code_of(NextToken="NQ==") == "InvalidNextToken"
    assert code_of(NextToken="A" * 10_000) == "InvalidNextToken"


def test_compound_keys_tell_equal_first_parts_apart() -> None:
    tags = [("Name", f"i-{n}") for n in range(7)]
    first, token = Page("DescribeTags", {"MaxResults": 5}).slice(tags, key=lambda tag: tag)
    rest, end = Page("DescribeTags", {"NextToken": token}).slice(tags, key=lambda tag: tag)
    assert first + rest == tags
    assert end is None
