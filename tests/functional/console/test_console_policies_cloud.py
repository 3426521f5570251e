"""Policies of real users at a real Keystone, from several workers (rows 45 to 48)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.cloud import CloudEnv
from tests.support.console_service import SECRET, Console, eventually
from tests.support.ports import free_port
from trimaran.console.policies import ruleset
from trimaran.db import migrate

SHOW = "nova:os_compute_api:servers:show"
CREATE_USER = "keystone:identity:create_user"
# Only with the system's scope.
SYSTEM_ONLY = "ironic:baremetal:node:delete"
RULES = sum(len(each.rules) for each in ruleset.all_embedded())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's directory of override files."""
    return tmp_path_factory.mktemp("policy")


@pytest.fixture(scope="module")
def console(
    place: Path, cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """A console of two workers."""
    root = tmp_path_factory.mktemp("console")
    url = f"sqlite:///{root}/console.sqlite"
    migrate.upgrade(url, "console")
    settings = {
        "default": {
            "database_url": url,
            "secret_key": SECRET,
            "log_file": "/dev/stdout",
            "policy_file_path": str(place),
        },
        "openstack": {
            "keystone_url": cloud_env.auth_url,
            "system_user_password": "password",
            "default_region": cloud_env.region,
        },
        "trimaran": {"threads": 8},
    }
    running = Console(root / "service", free_port(), settings, 2)
    running.wait_until_ready()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def cookie(console: Console) -> Callable[[str], dict[str, str]]:
    """A function that logs a user in; the headers of its session."""
    known: dict[str, dict[str, str]] = {}

    def login(name: str) -> dict[str, str]:
        if name not in known:
            answer = console.login(name)
            assert answer.status_code == 200, answer.text
            known[name] = {"Cookie": f"session={answer.cookies['session']}"}
        return known[name]

    return login


def listed(console: Console, headers: dict[str, str]) -> dict[str, bool]:
    """GET /policies on a connection of its own, so that any worker may get it."""
    answer = requests.get(f"{console.url}/policies", headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return {row["rule"]: row["allowed"] for row in answer.json()["policies"]}


def keystone_calls(console: Console) -> float:
    """Requests to Keystone, of all workers."""
    text = requests.get(f"{console.base}/metrics", timeout=60).text
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("trimaran_backend_requests_total") and 'service="identity"' in line
    )


def test_members_and_administrators_of_the_system(
    console: Console, cookie: Callable[[str], dict[str, str]]
) -> None:
    member, admin = listed(console, cookie("demo")), listed(console, cookie("admin"))
    assert len(member) == len(admin) == RULES >= 1860
    assert (member[SHOW], admin[SHOW]) == (True, True)
    assert (member[CREATE_USER], admin[CREATE_USER]) == (False, True)
    assert (member[SYSTEM_ONLY], admin[SYSTEM_ONLY]) == (False, True)


def test_checks_as_the_table_says(
    console: Console, cookie: Callable[[str], dict[str, str]]
) -> None:
    def check(**body: Any) -> requests.Response:
        return requests.post(
            f"{console.url}/policies/check", json=body, headers=cookie("demo"), timeout=60
        )

    def allowed(answer: requests.Response) -> list[bool]:
        return [row["allowed"] for row in answer.json()["policies"]]

    assert allowed(check(rules=[SHOW, "nova:no:such"])) == [True, False]
    assert allowed(check(rules=[SHOW], target={"project_id": "zzz"})) == [False]
    assert (check(rules=["foo:bar"]).status_code, check(rules=["foo:bar"]).json()) == (
        403,
        {"detail": "'foo'"},
    )
    assert check(rules=["foo"]).json() == {"detail": "list index out of range"}


def test_an_override_reaches_every_worker_and_goes_again(
    console: Console, cookie: Callable[[str], dict[str, str]], place: Path
) -> None:
    headers = cookie("demo")
    file = place / "nova_policy.yaml"
    assert all(listed(console, headers)[SHOW] for _ in range(8))
    file.write_text(f'"{SHOW.partition(":")[2]}": "!"\n')
    assert not any(listed(console, headers)[SHOW] for _ in range(8))
    file.unlink()
    assert all(listed(console, headers)[SHOW] for _ in range(8))


def test_lists_cost_keystone_nothing_within_the_cache_s_time(
    console: Console, cookie: Callable[[str], dict[str, str]]
) -> None:
    headers = cookie("demo")

    def warm() -> bool:
        before = keystone_calls(console)
        for _ in range(10):
            listed(console, headers)
        return keystone_calls(console) == before

    eventually(warm, "both workers have everything that they ask Keystone for")
    with requests.Session() as session:
        took = []
        for _ in range(20):
            started = time.perf_counter()
            session.get(f"{console.url}/policies", headers=headers, timeout=60)
            took.append(time.perf_counter() - started)
    print(f"GET /policies: median {sorted(took)[10] * 1000:.1f} ms, best {min(took) * 1000:.1f} ms")
