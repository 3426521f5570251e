"""The rule sets and what is concluded from them, against oslo.policy itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_policy import policy as oslo

from tests.support.keystone import token_body
from trimaran.config.common import defaults
from trimaran.config.console import Settings
from trimaran.console.policies import attributes, ruleset
from trimaran.console.policies.answers import Policies
from trimaran.console.policies.likeness import Likeness
from trimaran.console.policies.services import SERVICES
from trimaran.identity import Token

SETS = list(ruleset.all_embedded())


class Keystone:
    """Gives a system scope to whom it likes."""

    def __init__(self, scope: str = "") -> None:
        self.scope = scope

    def rescope(self, token: Token, **_: Any) -> Any:
        return self

    @property
    def system_scope(self) -> str:
        return self.scope


def token(roles: tuple[str, ...] = ("member", "reader"), **changes: Any) -> Token:
    body = token_body(roles=[{"id": f"id-{name}", "name": name} for name in roles], **changes)
    return Token.from_body("t", body)


def policies(scope: str = "") -> Policies:
    return Policies(Settings(), Keystone(scope), defaults())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shared() -> Policies:
    return policies()


def answers(document: bytes) -> dict[str, bool]:
    return {row["rule"]: row["allowed"] for row in json.loads(document)["policies"]}


@pytest.mark.parametrize("rules", SETS, ids=lambda rules: rules.service)
def test_a_rule_set_is_complete(rules: ruleset.RuleSet) -> None:
    assert tuple(rules.packages) == SERVICES[rules.service].packages
    assert all(version[0].isdigit() for version in rules.packages.values())
    names = [rule.name for rule in rules.rules]
    assert len(names) == len(set(names)) > 20
    for rule in rules.rules:
        assert set(rule.scopes) <= {"project", "domain", "system"}
        assert all(row["method"] and row["path"] for row in rule.documented_operations())
        assert "\n" not in rule.description
    assert any(rule.operations for rule in rules.rules)
    assert ruleset.RuleSet.parse(rules.dump()) == rules


def test_neutron_s_rules_come_from_both_packages() -> None:
    names = {rule.name for rule in ruleset.embedded("neutron").rules}
    assert {"create_port", "create_vpnservice"} <= names


@pytest.mark.parametrize("scope", ["", "all"])
@pytest.mark.parametrize(
    "roles", [("member", "reader"), ("reader",), ("admin",), ("Admin", "manager"), ("service",), ()]
)
def test_answers_are_oslo_policy_s(roles: tuple[str, ...], scope: str) -> None:
    who = token(roles)
    listed = answers(policies(scope).listing(who, "RegionOne"))
    credentials = attributes.credentials(
        who, system_scope=scope, admin_roles=["admin", "system_admin"], reader_roles=[]
    )
    about = attributes.target(who, enforce_new_defaults=True)
    conf = cfg.ConfigOpts()
    conf(args=[], default_config_files=[], default_config_dirs=[])
    for rules in SETS:
        enforcer = oslo.Enforcer(conf, use_conf=False)
        table = {rule.name: oslo.RuleDefault(rule.name, rule.check).check for rule in rules.rules}
        # A table without a default rule: unknown references are false.
        enforcer.set_rules(table, overwrite=True, use_conf=False)
        for name, check in table.items():
            try:
                expected = bool(oslo._checks._check(check, about, credentials, enforcer, name))
            except Exception:
                expected = False
            assert listed[f"{rules.service}:{name}"] is expected, (rules.service, name)


@budget(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_likeness_never_gives_one_caller_another_s_answers(shared: Policies, data: Any) -> None:
    """Answers out of the memory are those of a fresh evaluation, whoever asked before."""
    names = st.sampled_from(["a", "b", "default", "demo", "baremetal", "None", "all", "service"])
    roles = st.lists(
        st.sampled_from(["admin", "member", "reader", "manager", "service"]), unique=True
    )

    def thing() -> dict[str, Any]:
        domain = {"id": data.draw(names), "name": data.draw(names)}
        return {"id": data.draw(names), "name": data.draw(names), "domain": domain}

    who = token(tuple(data.draw(roles)), user=thing(), project=thing())
    remembered = shared.listing(who, "RegionOne")
    credentials = shared._credentials(who, "RegionOne")
    fresh = shared._work_out(who, credentials)
    assert bytes(answers(remembered).values()) == fresh


def test_likeness_reads_the_language() -> None:
    plain = {"user_id": "u", "project_id": "p", "roles": ["m"], "role_ids": []}
    other = {**plain, "user_id": "v"}
    alike = Likeness(["(rule:x or (user_id:%(user_id)s and not role:m)) or @", "!", ""])
    assert not alike.exact
    assert alike.key(plain) == alike.key(other)
    assert alike.key(plain, exact=True) != alike.key(other, exact=True)
    assert alike.key(plain) != alike.key({**plain, "roles": ["n"]})
    # Equal to each other is something else than different.
    assert alike.key(plain) != alike.key({**plain, "user_id": "p"})
    literal = Likeness(["user_id:v"])
    assert literal.key(plain) != literal.key(other)
    for check in ("user_id:x-%(user_id)s", "role:%(user_id)s", "http://host/%(user_id)s"):
        built = Likeness([check])
        assert built.exact
        assert built.key(plain) != built.key(other)


def test_the_target_is_the_caller_s_own_in_every_spelling() -> None:
    who = token()
    about = attributes.target(who, enforce_new_defaults=False)
    assert about["enforce_new_defaults"] is False
    assert {
        about[name] for name in ("project_id", "tenant", "tenant_id", "owner", "member_id")
    } == {"p1"}
    assert about["target.limit.project_id"] == "default"
    credentials = attributes.credentials(
        who, system_scope="all", admin_roles=["reader"], reader_roles=["member"]
    )
    assert credentials["is_admin"] is credentials["is_reader_admin"] is True
    assert credentials["tenant_id"] == "p1"
    assert credentials["system_scope"] == "all"
    # What upstream does not offer to the rules must not make them say yes.
    assert not {"project", "tenant", "user", "user_name", "is_admin_context"} & set(credentials)
