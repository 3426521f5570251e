"""Policy with the roles that a real Keystone gives, and a file that changes under load."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import ADMIN, DEMO, READER, CloudEnv, Person
from trimaran.config.common import defaults
from trimaran.identity import Identity, from_password
from trimaran.policy import Context, Enforcer, Rule

RULES = [
    Rule("context_is_admin", "role:admin"),
    Rule("project_member", "role:member and project_id:%(project_id)s"),
    Rule("project_reader", "role:reader and project_id:%(project_id)s"),
    Rule("thing:show", "rule:context_is_admin or rule:project_reader", scopes=("project",)),
    Rule("thing:change", "rule:context_is_admin or rule:project_member", scopes=("project",)),
    Rule("cloud:change", "rule:context_is_admin", scopes=("system",)),
]


@pytest.fixture
def identity(cloud_env: CloudEnv) -> Identity:
    return from_password(
        auth_url=cloud_env.auth_url,
        username="ec2api",
        password="password",
        project_name="service",
        own=defaults(),
        region=cloud_env.region,
    )


def _context(identity: Identity, who: Person, system: bool = False) -> Context:
    scope: dict[str, Any] = {"system": {"all": True}}
    if not system:
        scope = {"project": {"name": who.project, "domain": {"name": who.domain}}}
    token = identity.password(
        username=who.name, password=who.password, domain_name=who.domain, scope=scope
    )
    return Context(token)


@pytest.mark.parametrize(
    ("who", "system", "allowed"),
    [
        (READER, False, {"thing:show"}),
        (DEMO, False, {"thing:show", "thing:change"}),
        (ADMIN, False, {"thing:show", "thing:change"}),
        (ADMIN, True, {"cloud:change"}),
    ],
)
def test_personas(identity: Identity, who: Person, system: bool, allowed: set[str]) -> None:
    answers = Enforcer("thing", RULES).allowed_many(
        ["thing:show", "thing:change", "cloud:change"], _context(identity, who, system)
    )
    assert {rule for rule, answer in answers.items() if answer} == allowed


def test_other_projects_things(identity: Identity) -> None:
    policy = Enforcer("thing", RULES)
    demo, admin = (_context(identity, who) for who in (DEMO, ADMIN))
    assert not policy.allowed("thing:show", demo, {"project_id": admin.project_id})
    assert policy.allowed("thing:show", admin, {"project_id": demo.project_id})


def test_file_that_changes_while_it_is_asked(identity: Identity, tmp_path: Path) -> None:
    """Each answer is that of one whole file: the two rules always agree."""
    file = tmp_path / "policy.yaml"
    policy = Enforcer("thing", RULES, override_file=str(file), check_seconds=0)
    context = _context(identity, DEMO)
    stop = threading.Event()
    seen: set[tuple[bool, bool]] = set()
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            while not stop.is_set():
                answers = policy.allowed_many(["thing:show", "thing:change"], context)
                seen.add((answers["thing:show"], answers["thing:change"]))
        except BaseException as failure:
            failures.append(failure)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for number in range(60):
        answer = "!" if number % 2 else "@"
        new = tmp_path / "new.yaml"
        new.write_text(f"thing:show: '{answer}'\nthing:change: '{answer}'\n")
        new.replace(file)
        # Wait for the change to be seen, not for a time; at first by the others too.
        now = answer != "!"
        while policy.allowed("thing:show", context) is not now or (
            number < 2 and (now, now) not in seen and not failures
        ):
            pass
    stop.set()
    for asker in askers:
        asker.join(60)
    assert failures == []
    assert seen == {(True, True), (False, False)}
    assert policy.version >= 60
