"""Compiled checks answer as oslo.policy's own evaluation does."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_policy import policy as oslo

from trimaran.policy import Enforcer, Rule
from trimaran.policy.compiler import InvalidCheck, parse, references

CREDS: dict[str, Any] = {
    "roles": ["Admin", "member"],
    "project_id": "p1",
    "user_id": "u1",
    "is_admin": True,
    "nothing": None,
    "user": {"id": "u1", "groups": [{"name": "g1"}, {"name": "g2"}]},
    "labels": ["a", "b"],
}
TARGET: dict[str, Any] = {
    "project_id": "p1",
    "user_id": "u2",
    "role": "member",
    "Role": "MEMBER",
    "name": "x",
    "enabled": True,
    "group": "g2",
    "label": "b",
    "target.project.id": "p1",
}
LEAVES = [
    "@",
    "!",
    "role:admin",
    "role:MEMBER",
    "role:reader",
    "role:%(role)s",
    "role:%(Role)s",
    "role:%(missing)s",
    "project_id:%(project_id)s",
    "project_id:p1",
    "project_id:p2",
    "project_id:%(target.project.id)s",
    "user_id:%(user_id)s",
    "user_id:%(missing)s",
    "missing:%(user_id)s",
    "is_admin:True",
    "is_admin:1",
    "nothing:None",
    "True:%(enabled)s",
    "False:%(enabled)s",
    "'x':%(name)s",
    "'y':%(name)s",
    "1:1",
    "user.id:u1",
    "user.groups.name:%(group)s",
    "user.id.deeper:u1",
    "project_id.deeper:p1",
    "labels:%(label)s",
    "labels:c",
    "field:networks:shared=True",
    "a-b:c",
    "rule:first",
    "rule:second",
    "rule:unknown",
]

checks = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=8,
)


CONF = cfg.ConfigOpts()
CONF(args=[], default_config_files=[], default_config_dirs=[])
OSLO = oslo.Enforcer(CONF, use_conf=False)


def by_oslo(rules: dict[str, str], name: str) -> bool:
    OSLO.set_rules(oslo.Rules.from_dict(rules, "default"))
    try:
        return bool(OSLO.enforce(name, TARGET, dict(CREDS)))
    except (TypeError, SyntaxError):
        # Its evaluation fell over the check; we count that as refused.
        return False


@settings(max_examples=200, deadline=None)
@given(asked=checks, first=checks, second=st.sampled_from(LEAVES[:-3]))
def test_same_answer_as_oslo_policy(asked: str, first: str, second: str) -> None:
    # No circles: oslo.policy does not end there.
    first = first.replace("rule:first", "rule:second")
    rules = {"asked": asked, "first": first, "second": second}
    ours = Enforcer("test", [Rule(name, check) for name, check in rules.items()])
    assert ours.allowed_many(rules, CREDS, TARGET) == {name: by_oslo(rules, name) for name in rules}


@pytest.mark.parametrize("leaf", LEAVES)
def test_each_leaf(leaf: str) -> None:
    rules = {"asked": leaf, "first": "role:admin", "second": "!"}
    ours = Enforcer("test", [Rule(name, check) for name, check in rules.items()])
    assert ours.allowed_many(["asked"], CREDS, TARGET) == {"asked": by_oslo(rules, "asked")}


def test_default_rule_stands_in_for_unknown_ones() -> None:
    rules = {"default": "role:admin", "asked": "rule:unknown"}
    ours = Enforcer("test", [Rule(name, check) for name, check in rules.items()])
    answers = ours.allowed_many(["asked", "never heard of"], CREDS, TARGET)
    assert answers == {
        "asked": by_oslo(rules, "asked"),
        "never heard of": by_oslo(rules, "never heard of"),
    }
    assert answers == {"asked": True, "never heard of": True}


def test_unknown_rules_are_refused_without_a_default() -> None:
    assert Enforcer("test", []).allowed_many(["x"], CREDS, TARGET) == {"x": False}


@pytest.mark.parametrize(
    "rules",
    [
        {"a": "rule:a"},
        {"a": "rule:b", "b": "rule:a"},
        {"a": "not rule:a"},
        {"a": "not rule:b", "b": "not rule:c", "c": "rule:a and @"},
    ],
)
def test_rules_that_go_round_in_circles_refuse(
    rules: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    ours = Enforcer("test", [Rule(name, check) for name, check in rules.items()])
    assert ours.allowed_many(rules, CREDS, TARGET) == dict.fromkeys(rules, False)
    assert "refers to itself" in caplog.text


@pytest.mark.parametrize("form", ["{}", "not {}", "rule:broken", "not rule:broken"])
@pytest.mark.parametrize(
    "check",
    ["role:100%", "project_id:%(project_id", "role:%(project_id)d", "a-:b", "user.id.x:u1"],
)
def test_a_check_that_falls_over_refuses_also_under_not(
    form: str, check: str, caplog: pytest.LogCaptureFixture
) -> None:
    ours = Enforcer("test", [Rule("a", form.format(check)), Rule("broken", check)])
    assert ours.allowed_many(["a"], CREDS, TARGET) == {"a": False}
    assert "counts as refused" in caplog.text


def test_a_foreign_check_runs_and_its_failure_refuses() -> None:
    asked: list[str] = []

    class Foreign(oslo.Check):
        def __call__(
            self, target: Any, creds: Any, enforcer: Any, current_rule: Any = None
        ) -> bool:
            asked.append(self.match)
            if self.match == "boom":
                raise RuntimeError("remote policy server is away")
            return bool(self.match == target["name"])

    oslo.register("foreign", Foreign)
    try:
        checks = {"yes": "foreign:x", "no": "foreign:y", "boom": "not foreign:boom"}
        rules = [Rule(name, check) for name, check in checks.items()]
        answers = Enforcer("test", rules).allowed_many(checks, CREDS, TARGET)
    finally:
        oslo._checks.registered_checks.pop("foreign")
    assert answers == {"yes": True, "no": False, "boom": False}
    assert asked == ["x", "y", "boom"]


BAD = [
    "role",
    "role:a and",
    "(role:a",
    "role:a)",
    "and",
    "role:a or nonsense",
    "not",
    "role:a role:b",
    "()",
    " ",
    "'a:b'",
    "role:a and or role:b",
    "(not) role:a",
    "role:%(role)",
]


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_check(bad: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvalidCheck):
        parse(bad)
    assert not caplog.records


@pytest.mark.parametrize("bad", [[["role:a", 7]], [7], [["role"]], ["role:a role:b"], [{"a": "b"}]])
def test_old_lists_that_are_none(bad: list[Any]) -> None:
    with pytest.raises(InvalidCheck):
        parse(bad)


@pytest.mark.parametrize("good", [[], [[]], [["role:a", "role:b"], "role:c"]])
def test_old_lists(good: list[Any]) -> None:
    assert parse(good) == oslo.RuleDefault("x", good).check


class Complaints(logging.Handler):
    """Hears what oslo.policy's parser only logs."""

    heard = False

    def emit(self, record: logging.LogRecord) -> None:
        self.heard = True


words = st.sampled_from(
    ["and", "OR", "not", "(", ")", "(role:a", "role:a)", "((role:a", "@", "!", "a:b", "'a':b",
     "'a:b'", "role:%(x)s", "role:%(x)s)", "x", "'x'", "not)", "(and"]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(words, min_size=1, max_size=7).map(" ".join))
def test_the_same_texts_are_checks_as_for_oslo_policy(text: str) -> None:
    complaints = Complaints()
    parser = logging.getLogger("oslo_policy._parser")
    parser.addHandler(complaints)
    parser.propagate = False
    try:
        expected = str(oslo.RuleDefault("x", text).check)
    finally:
        parser.removeHandler(complaints)
        parser.propagate = True
    if complaints.heard:
        with pytest.raises(InvalidCheck):
            parse(text)
    else:
        assert str(parse(text)) == expected


def test_references() -> None:
    tree = parse("rule:a or (role:x and not rule:b) or not (rule:c or @)")
    assert references(tree) == {"a", "b", "c"}
