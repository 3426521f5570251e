"""Policies from the wire's side (spec/skyline.md 1.8, 5.2, 5.3; rows 45 to 48)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests_mock
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.support.console import Cloud, cookie, settings
from tests.support.keystone import token_body
from trimaran.console import app as console
from trimaran.console.policies import ruleset
from trimaran.console.policies.services import SERVICES
from trimaran.db import migrate

POLICIES = "/api/v1/policies"
CHECK = "/api/v1/policies/check"
SHOW = "nova:os_compute_api:servers:show"
ADMIN_ONLY = "nova:os_compute_api:os-services:list"
SYSTEM_ONLY = "keystone:identity:list_services"
ADMIN = [{"id": "r0", "name": "admin"}]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with requests_mock.Mocker() as mock:
        cloud = Cloud(mock)
        # Nobody logs in here; what is asked for is a system scope.
        cloud.refusal = (401, "The request you have made requires authentication.")
        yield cloud


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the operator's override files are."""
    folder = tmp_path / "policy"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated database; nothing here writes to it."""
    address = f"sqlite:///{tmp_path_factory.mktemp('console')}/console.sqlite"
    migrate.upgrade(address, "console")
    return address


@pytest.fixture
def build(cloud: Cloud, url: str, place: Path) -> Iterator[Callable[..., TestClient]]:
    apps: list[FastAPI] = []

    def builder(**groups: dict[str, Any]) -> TestClient:
        default = {"policy_file_path": str(place), **groups.pop("default", {})}
        app = console.build(settings(url, default=default, **groups))
        apps.append(app)
        return TestClient(app)

    yield builder
    for app in apps:
        app.state.parts.db.dispose()


@pytest.fixture
def client(build: Callable[..., TestClient]) -> TestClient:
    return build()


def as_user(token: str = "t-p1") -> dict[str, str]:
    return {"Cookie": f"session={cookie(keystone_token=token)}"}


@pytest.fixture
def member(cloud: Cloud) -> dict[str, str]:
    """The headers of a member."""
    return as_user(cloud.token("t-p1"))


@pytest.fixture
def admin(cloud: Cloud) -> dict[str, str]:
    """The headers of an administrator without system scope."""
    return as_user(cloud.token("t-admin", roles=ADMIN))


def listed(client: TestClient, headers: dict[str, str]) -> dict[str, bool]:
    answer = client.get(POLICIES, headers=headers)
    assert answer.status_code == 200, answer.text
    return {row["rule"]: row["allowed"] for row in answer.json()["policies"]}


def checked(
    client: TestClient, headers: dict[str, str], *rules: str, target: Any = None
) -> list[bool]:
    body: dict[str, Any] = {"rules": list(rules)}
    if target is not None:
        body["target"] = target
    answer = client.post(CHECK, headers=headers, json=body)
    assert answer.status_code == 200, answer.text
    assert [row["rule"] for row in answer.json()["policies"]] == list(rules)
    return [row["allowed"] for row in answer.json()["policies"]]


# -- the list ------------------------------------------------------------


def test_every_rule_is_listed_once_and_in_the_order_of_the_tables(
    client: TestClient, member: dict[str, str]
) -> None:
    answer = client.get(POLICIES, headers=member)
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["policies"]
    assert all(list(row) == ["rule", "allowed"] for row in body["policies"])
    assert all(isinstance(row["allowed"], bool) for row in body["policies"])
    rules = [row["rule"] for row in body["policies"]]
    expected = [
        f"{each.service}:{rule.name}" for each in ruleset.all_embedded() for rule in each.rules
    ]
    assert rules == expected
    assert len(rules) == len(set(rules)) >= 1860
    assert list(dict.fromkeys(rule.partition(":")[0] for rule in rules)) == list(SERVICES)
    # Compact, as everything on this wire.
    assert b": " not in answer.content
    assert json.dumps(body, separators=(",", ":")).encode() == answer.content


def test_roles_decide(client: TestClient, member: dict[str, str], admin: dict[str, str]) -> None:
    as_member, as_admin = listed(client, member), listed(client, admin)
    assert as_member[SHOW] is True
    assert as_member[ADMIN_ONLY] is False
    assert as_admin[ADMIN_ONLY] is True
    assert sum(as_admin.values()) > sum(as_member.values()) > 0


def test_a_member_owns_the_networks_and_groups_it_would_add_to(
    client: TestClient, member: dict[str, str]
) -> None:
    # Without these the front end has no "Create Network" and no "Create Rule".
    answers = listed(client, member)
    assert answers["neutron:create_subnet"]
    assert answers["neutron:create_port"]
    assert answers["neutron:create_security_group_rule"]
    assert answers["neutron:create_floatingip_port_forwarding"]
    # Parents that need more than their owner.
    assert not answers["neutron:create_policy_bandwidth_limit_rule"]
    assert not answers["neutron:create_port:binding:host_id"]


def test_nobody_gets_a_list_without_credentials(client: TestClient) -> None:
    for answer in (client.get(POLICIES), client.post(CHECK, json={"rules": []})):
        assert answer.status_code == 401
        assert answer.json() == {"message": "Unauthorized: Token not found"}


# -- system scope --------------------------------------------------------


def test_system_scope_is_asked_once_for_a_token(
    cloud: Cloud, client: TestClient, member: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    identity = client.app.state.parts.identity  # type: ignore[attr-defined]
    rescope = identity.rescope

    def recording(token: Any, **scope: Any) -> Any:
        asked.append(token.id)
        return rescope(token, **scope)

    monkeypatch.setattr(identity, "rescope", recording)
    for _ in range(3):
        listed(client, member)
    checked(client, member, SHOW)
    assert asked == ["t-p1"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
def test_a_refused_system_scope_is_no_scope(
    cloud: Cloud, client: TestClient, member: dict[str, str], status: int
) -> None:
    cloud.refusal = (status, "no")
    assert listed(client, member)[SHOW] is True
    assert listed(client, member)[SYSTEM_ONLY] is False


def test_the_system_s_reader_sees_what_is_the_system_s(
    client: TestClient, member: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class System:
        system_scope = "all"

    identity = client.app.state.parts.identity  # type: ignore[attr-defined]
    monkeypatch.setattr(identity, "rescope", lambda *_, **__: System())
    assert listed(client, member)[SYSTEM_ONLY] is True


def test_heat_has_an_administrator(
    client: TestClient, member: dict[str, str], admin: dict[str, str]
) -> None:
    assert listed(client, admin)["heat:context_is_admin"] is True
    assert listed(client, member)["heat:context_is_admin"] is False


def test_a_silent_keystone_is_no_empty_list(
    cloud: Cloud, client: TestClient, member: dict[str, str]
) -> None:
    client.app.state.parts.identity.validate("t-p1")  # type: ignore[attr-defined]
    cloud.down.add("identity")
    answer = client.get(POLICIES, headers=member)
    assert answer.status_code == 503
    assert list(answer.json()) == ["message"]


# -- checks --------------------------------------------------------------


def test_checks_answer_in_the_order_of_the_questions(
    client: TestClient, member: dict[str, str]
) -> None:
    assert checked(client, member, SHOW, "nova:no:such:rule", ADMIN_ONLY, SHOW) == [
        True,
        False,
        False,
        True,
    ]
    assert checked(client, member) == []


def test_the_target_can_be_somebody_else_s(client: TestClient, member: dict[str, str]) -> None:
    assert checked(client, member, SHOW, target={"project_id": "zzz"}) == [False]
    assert checked(client, member, SHOW, target={"project_id": "p1"}) == [True]
    assert checked(client, member, SHOW, target={}) == [True]


@pytest.mark.parametrize(
    ("rule", "detail"),
    [
        ("foo:bar", "'foo'"),
        ("foo", "list index out of range"),
        ("nova", "list index out of range"),
        (":x", "''"),
        ("it's:x", '"it\'s"'),
    ],
)
def test_odd_rules_have_upstream_s_odd_errors(
    client: TestClient, member: dict[str, str], rule: str, detail: str
) -> None:
    answer = client.post(CHECK, headers=member, json={"rules": [SHOW, rule]})
    assert (answer.status_code, answer.json()) == (403, {"detail": detail})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"rules": "nova:x"},
        {"rules": [1]},
        {"rules": [], "target": {"project_id": 1}},
        {"rules": [], "target": []},
    ],
)
def test_bad_bodies_are_422(client: TestClient, member: dict[str, str], body: Any) -> None:
    answer = client.post(CHECK, headers=member, json=body)
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], list)


# -- override files ------------------------------------------------------


def test_an_override_works_and_goes_without_a_restart(
    client: TestClient, member: dict[str, str], place: Path
) -> None:
    file = place / "nova_policy.yaml"
    before = listed(client, member)
    file.write_text('"os_compute_api:servers:show": "!"\n')
    during = listed(client, member)
    assert (before[SHOW], during[SHOW]) == (True, False)
    assert {rule for rule in before if before[rule] != during[rule]} == {SHOW}
    assert checked(client, member, SHOW) == [False]
    file.unlink()
    assert listed(client, member) == before


def test_an_override_of_before_the_start_counts(
    build: Callable[..., TestClient], member: dict[str, str], place: Path
) -> None:
    (place / "nova_policy.yaml").write_text('"os_compute_api:servers:show": "user_id:u1"\n')
    (place / "glance_policy.yaml").write_text('{"get_images": "!"}')
    client = build()
    answers = listed(client, member)
    assert (answers[SHOW], answers["glance:get_images"]) == (True, False)


def test_overrides_see_callers_apart_who_were_alike_before(
    cloud: Cloud, client: TestClient, place: Path
) -> None:
    one = as_user(cloud.token("t-p1"))
    other = as_user(
        cloud.token("t-u9", user={"id": "u9", "name": "n9", "domain": {"id": "d9", "name": "Nine"}})
    )
    assert listed(client, one)[SHOW] is listed(client, other)[SHOW] is True
    (place / "nova_policy.yaml").write_text('"os_compute_api:servers:show": "user_id:u9"\n')
    assert listed(client, one)[SHOW] is False
    assert listed(client, other)[SHOW] is True


def test_references_stay_in_the_embedded_rules(
    client: TestClient, member: dict[str, str], place: Path
) -> None:
    (place / "nova_policy.yaml").write_text(
        '"project_reader_or_admin": "!"\n'
        '"mine": "@"\n'
        '"os_compute_api:servers:detail": "rule:mine"\n'
    )
    answers = listed(client, member)
    assert answers["nova:project_reader_or_admin"] is False
    assert answers[SHOW] is True
    assert answers["nova:os_compute_api:servers:detail"] is False
    # Only in the file: it answers, and is not listed.
    assert checked(client, member, "nova:mine") == [True]
    assert "nova:mine" not in answers


def test_a_broken_file_changes_nothing_and_is_reported_once(
    client: TestClient, member: dict[str, str], place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = place / "nova_policy.yaml"
    file.write_text('"os_compute_api:servers:show": "!"\n')
    assert listed(client, member)[SHOW] is False
    file.write_text('"os_compute_api:servers:show": "@" oops: [\n')
    for _ in range(3):
        assert listed(client, member)[SHOW] is False
    warned = [record for record in caplog.records if "nova_policy.yaml" in record.getMessage()]
    assert [record.levelname for record in warned if record.levelname == "WARNING"] == ["WARNING"]


# -- work is done once ---------------------------------------------------


def test_callers_who_are_alike_share_one_list(
    cloud: Cloud, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = client.app.state.parts.policies  # type: ignore[attr-defined]
    worked: list[str] = []
    work = policies._work_out

    def counting(token: Any, credentials: Any) -> bytes:
        worked.append(token.id)
        return bytes(work(token, credentials))

    monkeypatch.setattr(policies, "_work_out", counting)
    corp = {"id": "corp", "name": "Corp"}
    for number in range(5):
        cloud.tokens[f"t-{number}"] = token_body(
            user={"id": f"u{number}", "name": f"n{number}", "domain": corp},
            project={"id": f"x{number}", "name": f"y{number}", "domain": corp},
        )
    everybody = list(cloud.tokens)
    lists = [listed(client, as_user(token)) for token in everybody for _ in range(2)]
    assert worked == everybody[:1]
    assert all(each == lists[0] for each in lists)
    # Another domain than the project's is another answer to ask for.
    elsewhere = cloud.token(
        "t-far", user={"id": "u", "name": "n", "domain": {"id": "far", "name": "Far"}}
    )
    listed(client, as_user(elsewhere))
    assert worked == [everybody[0], "t-far"]


def test_many_at_once_get_the_same_list(client: TestClient, member: dict[str, str]) -> None:
    policies = client.app.state.parts.policies  # type: ignore[attr-defined]
    token = client.app.state.parts.identity.validate("t-p1")  # type: ignore[attr-defined]
    barrier = threading.Barrier(8)
    documents: list[bytes] = []

    def ask() -> None:
        barrier.wait()
        documents.append(policies.listing(token, "RegionOne"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(documents) == 8
    assert len(set(documents)) == 1
