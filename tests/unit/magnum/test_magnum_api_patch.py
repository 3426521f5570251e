"""Spec section 1.14: the JSON patches that are understood, and how they are applied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from trimaran.errors import BadRequest
from trimaran.magnum.api import patch as patching
from trimaran.magnum.api.patch import Patch, Rules

STEPS: TypeAdapter[Patch] = TypeAdapter(Patch)
DOCUMENT = {"name": "n", "labels": {"a": "1"}, "tags": None, "count": 1, "list": ["x"]}


def steps(*items: dict[str, Any]) -> Patch:
    return STEPS.validate_python(list(items))


def apply(*items: dict[str, Any]) -> dict[str, Any]:
    return patching.apply(DOCUMENT, steps(*items))


def test_the_document_itself_does_not_change() -> None:
    result = apply({"op": "add", "path": "/labels/b", "value": "2"})
    assert result["labels"] == {"a": "1", "b": "2"}
    assert DOCUMENT["labels"] == {"a": "1"}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"op": "replace", "path": "/name", "value": "m"}, {"name": "m"}),
        ({"op": "add", "path": "/tags", "value": "t"}, {"tags": "t"}),
        ({"op": "replace", "path": "/labels/a", "value": "9"}, {"labels": {"a": "9"}}),
        ({"op": "remove", "path": "/labels/a"}, {"labels": {}}),
        ({"op": "replace", "path": "/count", "value": 2}, {"count": 2}),
        ({"op": "replace", "path": "/list/0", "value": "y"}, {"list": ["y"]}),
    ],
)
def test_steps(step: dict[str, Any], expected: dict[str, Any]) -> None:
    assert apply(step) == DOCUMENT | expected


def test_removed() -> None:
    assert "name" not in apply({"op": "remove", "path": "/name"})


@pytest.mark.parametrize(
    "value",
    ["{'q': 'r', 'n': True}", '{"q": "r", "n": true}', {"q": "r", "n": True}],
)
@pytest.mark.parametrize("op", ["replace", "remove+add"])
def test_f46_maps_as_python_json_or_themselves(value: Any, op: str) -> None:
    document = {**DOCUMENT, "labels": None if op == "remove+add" else {}}
    step = {"op": "add" if op == "remove+add" else op, "path": "/labels", "value": value}
    assert patching.apply(document, steps(step))["labels"] == {"q": "r", "n": True}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/labels/a.b~1c", "a.b/c"),
        ("/labels/with:colon", "with:colon"),
        ("/labels/t~0x", "t~x"),
        ("/labels/two words", "two words"),
    ],
)
def test_f48_any_json_pointer(path: str, key: str) -> None:
    assert apply({"op": "add", "path": path, "value": "v"})["labels"][key] == "v"


@pytest.mark.parametrize("path", ["name", "", "/a~2", "//~", "labels/a"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(ValidationError):
        steps({"op": "remove", "path": path})


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            {"op": "replace", "path": "/labels/zz", "value": "1"},
            "Couldn't apply patch '[{'path': '/labels/zz', 'op': 'replace', 'value': '1'}]'. "
            "Reason: can't replace a non-existent object 'zz'",
        ),
        (
            {"op": "remove", "path": "/labels/x"},
            "Couldn't apply patch '[{'path': '/labels/x', 'op': 'remove'}]'. "
            "Reason: can't remove a non-existent object 'x'",
        ),
        (
            {"op": "add", "path": "/foo", "value": 1},
            "Adding a new attribute /foo to the root of the resource is not allowed.",
        ),
        (
            {"op": "add", "path": "/name", "value": 1},
            "The attribute /name has existed, please use 'replace' operation instead.",
        ),
    ],
)
def test_steps_that_cannot_be_done(step: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        apply(step)
    assert caught.value.message == text


@pytest.mark.parametrize(
    "value",
    ["{", "open('x')", "(" * 500, "-" * 60000 + "1", "[" * 60000, "x" * 70000, "{'a': b}", "\0"],
)
def test_literals_that_are_none(value: str) -> None:
    with pytest.raises(BadRequest, match=r"^Couldn't apply patch "):
        apply({"op": "replace", "path": "/labels", "value": value})


def test_rules() -> None:
    rules = Rules(internal=frozenset({"secret"}), mandatory=frozenset({"name"}))
    rules.check(steps({"op": "replace", "path": "/name", "value": "x"}))
    rules.check(steps({"op": "remove", "path": "/name/inside"}))
    for step, text in (
        ({"op": "remove", "path": "/name"}, "'/name' is a mandatory attribute and"),
        ({"op": "remove", "path": "/secret"}, "'/secret' is an internal attribute and"),
        ({"op": "replace", "path": "/id", "value": 1}, "'/id' is an internal attribute and"),
        ({"op": "add", "path": "/tags", "value": None}, "'add' and 'replace' operations needs"),
    ):
        with pytest.raises(BadRequest, match=rf"^{text}"):
            rules.check(steps(step))


def test_f42_the_first_segment_decides() -> None:
    rules = Rules(internal=frozenset({"labels", "node_addresses"}))
    for path in ("/labels/x", "/node_addresses/0", "/labels/a/b"):
        with pytest.raises(BadRequest, match="is an internal attribute"):
            rules.check(steps({"op": "add", "path": path, "value": "v"}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "replace", "remove"]),
                "path": st.one_of(
                    st.text(),
                    st.sampled_from(
                        ["/name", "/labels", "/labels/a", "/list/0", "/list/-", "/x/y"]
                    ),
                ),
            },
            optional={"value": JSON},
        ),
        max_size=4,
    )
)
def test_no_patch_is_an_accident(items: list[dict[str, Any]]) -> None:
    try:
        checked = STEPS.validate_python(items)
    except ValidationError:
        return
    try:
        Rules().check(checked)
        patching.apply(DOCUMENT, checked)
    except BadRequest:
        pass
