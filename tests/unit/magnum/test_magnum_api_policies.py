"""Spec section 3: the rules' names, checks and scopes, and what an operator may change."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.magnum_api import detail, world
from trimaran.magnum import policies
from trimaran.magnum.api import app
from trimaran.magnum.api.controllers import root
from trimaran.policy import Enforcer

BASE = [
    "context_is_admin",
    "admin_or_owner",
    "admin_or_user",
    "is_user",
    "project_member",
    "project_reader",
    "admin_or_project_reader",
    "admin_or_project_member",
    "admin_or_project_member_user",
    "admin_or_project_member_user_or_cluster_user",
    "project_member_deny_cluster_user",
    "admin_or_project_member_deny_cluster_user",
    "project_reader_deny_cluster_user",
    "admin_or_project_reader_deny_cluster_user",
    "admin_or_project_reader_user",
]
ADMIN = "rule:context_is_admin"
MEMBER = "rule:admin_or_project_member"
READER = "rule:admin_or_project_reader"
API = {
    "certificate:create": "rule:admin_or_project_member_user",
    "certificate:get": "rule:admin_or_project_reader_user",
    "certificate:rotate_ca": MEMBER,
    **{
        f"cluster:{name}": f"{MEMBER}_deny_cluster_user"
        for name in ("create", "delete", "update", "resize", "upgrade")
    },
    **{f"cluster:{name}": f"{READER}_deny_cluster_user" for name in ("get", "get_all", "detail")},
    "cluster:update_health_status": "rule:admin_or_project_member_user_or_cluster_user",
    **{
        f"cluster:{name}_all_projects": ADMIN
        for name in ("delete", "get_one", "update", "upgrade", "get_all", "detail")
    },
    "clustertemplate:create": f"{MEMBER}_deny_cluster_user",
    "clustertemplate:delete": MEMBER,
    "clustertemplate:update": MEMBER,
    **{
        f"clustertemplate:{name}": f"{READER}_deny_cluster_user"
        for name in ("get", "get_all", "detail")
    },
    **{
        f"clustertemplate:{name}_all_projects": ADMIN
        for name in ("delete", "get_one", "update", "get_all", "detail")
    },
    "clustertemplate:publish": ADMIN,
    "credential:rotate": "rule:project_member_deny_cluster_user",
    **{
        f"federation:{name}": f"{MEMBER}_deny_cluster_user"
        for name in ("create", "delete", "update")
    },
    **{
        f"federation:{name}": f"{READER}_deny_cluster_user" for name in ("get", "get_all", "detail")
    },
    "magnum-service:get_all": ADMIN,
    "nodegroup:get": READER,
    "nodegroup:get_all": READER,
    **{f"nodegroup:{name}": MEMBER for name in ("create", "delete", "update")},
    "nodegroup:get_all_all_projects": ADMIN,
    "nodegroup:get_one_all_projects": ADMIN,
    **{f"quota:{name}": ADMIN for name in ("create", "delete", "update", "get_all")},
    "quota:get": READER,
    "stats:get_all": READER,
}


def test_names_and_checks_are_upstreams() -> None:
    rules = {rule.name: rule for rule in policies.all_rules()}
    assert list(rules)[: len(BASE)] == BASE
    assert {name: rules[name].check for name in rules if ":" in name} == API


def test_scopes() -> None:
    for rule in policies.all_rules():
        if ":" in rule.name:
            assert tuple(rule.scopes) == (() if rule.check == ADMIN else ("project",))


def test_each_rule_of_the_api_names_a_request() -> None:
    for rule in policies.all_rules():
        if ":" in rule.name:
            assert rule.description.endswith(".")
            for operation in rule.operations:
                assert re.fullmatch(r"(GET|POST|PATCH|DELETE) /v1/[a-z{}_/]+", str(operation))


def test_each_route_is_named_by_a_rule() -> None:
    named = {
        re.sub(r"{\w+}", "{}", str(operation))
        for rule in policies.all_rules()
        for operation in rule.operations
    }
    for router in app.ROUTERS:
        if router is root.router:
            continue
        for route in router.routes:
            path = re.sub(r"{\w+}", "{}", route.path)
            for method in route.methods:
                assert f"{method} {path}" in named


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def test_override_file_counts_without_a_restart(tmp_path: Path, rules: Path) -> None:
    with world(tmp_path, f"[oslo_policy]\npolicy_file = {rules}\n") as api:
        eager = Enforcer.from_conf("magnum", policies.all_rules(), api.conf, check_seconds=0)
        api.app.state.parts = replace(api.parts, enforcer=eager)
        assert api.call("GET", "/v1/clusters").status_code == 200
        rules.write_text('"cluster:get_all": "!"\n')
        answer = api.call("GET", "/v1/clusters")
        assert answer.status_code == 403
        assert detail(answer) == "Policy doesn't allow cluster:get_all to be performed."


def test_administrators_reach_can_be_narrowed(tmp_path: Path, rules: Path) -> None:
    rules.write_text('"cluster:get_all_all_projects": "!"\n')
    with world(tmp_path, f"[oslo_policy]\npolicy_file = {rules}\n") as api:
        assert api.call("GET", "/v1/clusters", "t-admin").status_code == 403
        assert api.call("GET", "/v1/clusters").status_code == 200


def test_another_administrator(tmp_path: Path, rules: Path) -> None:
    rules.write_text('"context_is_admin": "role:reader and user_id:u1r"\n')
    with world(tmp_path, f"[oslo_policy]\npolicy_file = {rules}\n") as api:
        api.template("t-other", name="foreign")
        assert api.call("GET", "/v1/clustertemplates/foreign", "t-reader").status_code == 200
        assert api.call("GET", "/v1/clustertemplates/foreign", "t-admin").status_code == 404
