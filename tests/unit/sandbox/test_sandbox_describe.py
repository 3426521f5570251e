"""What clients read: exports, clouds.yaml, sandbox.json."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from trimaran.sandbox import describe
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.seed import people
from trimaran.sandbox.seed.identity import catalog
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings.load(tmp_path / "state", base_port=17000, ec2_port=1788)
    made.mysql_port, made.amqp_port, made.amqp_vhost = 3306, 5672, "sbx17000-abc"
    return made


@pytest.fixture
def venv(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "cache")


def ids() -> dict[str, Any]:
    projects = {name: f"p-{name}" for name in people.ADMIN_PROJECTS}
    users = {name: f"u-{name}" for name in describe.user_projects()}
    empty: dict[str, str] = {}
    rest = dict.fromkeys(("images", "ebs", "flavors", "networks", "subnets", "routers"), empty)
    return {"projects": projects, "user_ids": users, **rest}


def sourced(text: str) -> dict[str, str]:
    """The environment after a shell has read the text."""
    script = f"OS_TOKEN=old OS_PROJECT_ID=old; {text}\nenv -0"
    done = subprocess.run(
        ["sh", "-c", script], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True
    )
    pairs = (item.partition("=") for item in done.stdout.decode().split("\0") if item)
    return {key: value for key, _, value in pairs}


def test_exports_of_a_member(settings: Settings, venv: Environment) -> None:
    env = sourced(describe.exports(settings, venv, "demo"))
    access, secret = people.ec2_keys("demo")

    assert env["OS_AUTH_URL"] == "http://127.0.0.1:17000/v3"
    assert (env["OS_USERNAME"], env["OS_PROJECT_NAME"]) == ("demo", "demo")
    assert (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]) == (access, secret)
    assert env["EC2_URL"] == "http://127.0.0.1:1788/"
    assert not {"OS_TOKEN", "OS_PROJECT_ID"} & env.keys()
    assert env["PATH"].startswith("/usr/bin:/bin:")


def test_exports_of_others(settings: Settings, venv: Environment) -> None:
    admin = sourced(describe.exports(settings, venv, "admin"))
    reader = sourced(describe.exports(settings, venv, "demo_reader"))
    lost = sourced(describe.exports(settings, venv, "demo_lost"))
    alt = sourced(describe.exports(settings, venv, "alt"))

    assert admin["OS_PROJECT_NAME"] == "admin"
    assert "AWS_ACCESS_KEY_ID" not in admin
    assert (reader["OS_USERNAME"], reader["OS_PROJECT_NAME"]) == ("demo_reader", "demo")
    assert "OS_PROJECT_NAME" not in lost
    assert alt["OS_USERNAME"] == "alt_demo"
    with pytest.raises(SandboxError, match="There is no user nobody: choose from admin, alt_demo"):
        describe.exports(settings, venv, "nobody")


def test_clouds_yaml(settings: Settings, venv: Environment) -> None:
    describe.write_client_files(settings, venv)
    path = settings.path("clouds.yaml")
    clouds = yaml.safe_load(path.read_text())["clouds"]

    assert clouds.keys() == {"sandbox-admin", "sandbox-demo", "sandbox-alt", "sandbox-system"}
    assert clouds["sandbox-alt"]["auth"]["project_name"] == "alt_demo"
    assert clouds["sandbox-system"]["auth"]["system_scope"] == "all"
    assert "project_name" not in clouds["sandbox-system"]["auth"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settings.path("openrc.demo").exists()


def test_description_is_whole_and_private(settings: Settings, venv: Environment) -> None:
    describe.write_description(settings, venv, ids())
    path = settings.path("sandbox.json")
    written = json.loads(path.read_text())

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert written["services"]["ec2"] == "http://127.0.0.1:1788/"
    assert written["ec2"]["alt_demo"]["project_id"] == "p-alt_demo"
    assert written["users"]["demo_reader"]["project_id"] == "p-demo"
    assert written["users"]["demo_lost"]["project_id"] is None
    assert written["postgresql_url"] is None
    settings.extras = ("postgresql",)
    described = describe.description(settings, venv, ids())
    assert described["postgresql_url"] == "postgresql+psycopg://postgres@127.0.0.1:17432/postgres"


def test_ec2_keys_are_fixed_and_differ() -> None:
    keys = {key for name in people.EC2_USERS for key in people.ec2_keys(name)}

    assert len(keys) == 4
    assert all(len(key) == 32 for key in keys)
    assert people.ec2_keys("demo") == people.ec2_keys("demo")


def test_each_project_has_a_member_a_manager_and_a_reader() -> None:
    for project in ("demo", "alt_demo"):
        roles = {user.name: set(user.roles) for user in people.USERS if user.project == project}
        assert "member" in roles[project]
        assert "manager" in roles[f"{project}_manager"]
        assert roles[f"{project}_reader"] == {"reader"}
    assert {"admin", "manager", "member", "reader", "service"} <= set(people.ROLES)
    assert set(people.EC2_USERS) <= {user.name for user in people.USERS}


def test_catalog_carries_our_services_at_their_ports(settings: Settings) -> None:
    urls = {kind: url for kind, _, url in catalog(settings)}

    assert urls["panel"] == "http://127.0.0.1:9998"
    assert urls["ec2"] == "http://127.0.0.1:1788/"
    assert urls["container-infra"] == "http://127.0.0.1:9511/v1"
    assert urls["compute"] == "http://127.0.0.1:17774/v2.1"
