"""``skyline-policy-manager`` (spec/skyline.md 6.1)."""

from __future__ import annotations

import logging
import runpy
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from oslo_policy import policy as oslo

from trimaran.console.policies import published, ruleset
from trimaran.console.policies.services import SERVICES
from trimaran.console.tools.policy_manager import policy_manager
from trimaran.policy import Rule

DOCUMENTED = oslo.DocumentedRuleDefault(
    name="zun:list",
    check_str='role:reader or "it\'s":%(x)s',
    description="List\n  containers. And more.",
    operations=[
        {"method": ["GET", "HEAD"], "path": "/v1/containers"},
        {"method": "POST", "path": "/v1/x"},
    ],
    scope_types=["project"],
)
BASE = oslo.RuleDefault("admin", "role:admin", description="Who\n\nruns it")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes packages publish rules: entry point to a list."""
    installed: dict[str, list[Any]] = {}

    class Point:
        def __init__(self, rules: list[Any]) -> None:
            self._rules = rules

        def load(self) -> Callable[[], list[Any]]:
            return lambda: list(self._rules)

    def points(*, group: str, name: str) -> list[Point]:
        assert group == "oslo.policy.policies"
        return [Point(installed[name])] if name in installed else []

    monkeypatch.setattr(metadata, "entry_points", points)
    monkeypatch.setattr(metadata, "version", lambda _: "1.2.3")

    def installer(**rules: list[Any]) -> None:
        installed.update({name.replace("_", "-"): found for name, found in rules.items()})

    return installer


def run(*arguments: str) -> Result:
    return CliRunner().invoke(policy_manager, list(arguments))


def as_oslo(rule: Rule) -> Any:
    return Rule(
        rule.name, rule.check, rule.description or "x", rule.scopes, rule.operations
    ).as_oslo()


# -- generate-rule -------------------------------------------------------


def test_a_rule_module_is_python(install: Callable[..., None], tmp_path: Path) -> None:
    install(zun=[BASE, DOCUMENTED])
    result = run("generate-rule", "zun")
    assert result.exit_code == 0, result.output
    module = tmp_path / "rules.py"
    module.write_text(result.stdout)
    assert runpy.run_path(str(module))["RULES"] == (
        Rule("admin", "role:admin", "Who"),
        Rule(
            "zun:list",
            'role:reader or "it\'s":%(x)s',
            "List containers",
            ("project",),
            ("GET /v1/containers", "HEAD /v1/containers", "POST /v1/x"),
        ),
    )


def test_a_data_file_is_the_console_s_own(install: Callable[..., None]) -> None:
    install(zun=[BASE, DOCUMENTED])
    result = run("generate-rule", "zun", "--format", "json")
    rules = ruleset.RuleSet.parse(result.stdout)
    assert rules.service == "zun"
    assert rules.packages == {"zun": "1.2.3"}
    assert [rule.name for rule in rules.rules] == ["admin", "zun:list"]


def test_neutron_s_two_packages_are_one_set(install: Callable[..., None]) -> None:
    install(neutron=[BASE], neutron_vpnaas=[BASE, DOCUMENTED])
    rules = published.rules_of(SERVICES["neutron"])
    assert [rule.name for rule in rules.rules] == ["admin", "zun:list"]
    assert list(rules.packages) == ["neutron", "neutron-vpnaas"]


def test_one_of_neutron_s_packages_is_not_enough(install: Callable[..., None]) -> None:
    install(neutron=[BASE])
    with pytest.raises(published.NotInstalled, match="neutron-vpnaas"):
        published.rules_of(SERVICES["neutron"])


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("swift", "ERROR: No such service: swift; known are barbican, cinder"),
        ("nova", "ERROR: nova: no installed package has the entry point nova"),
    ],
)
def test_what_cannot_be_generated_fails(
    install: Callable[..., None], service: str, message: str
) -> None:
    result = run("generate-rule", service)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_what_a_service_prints_does_not_get_into_its_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Talking:
        def load(self) -> Callable[[], list[Any]]:
            print("hello from the service")
            return lambda: [BASE]

    monkeypatch.setattr(metadata, "entry_points", lambda **_: [Talking()])
    monkeypatch.setattr(metadata, "version", lambda _: "1")
    result = run("generate-rule", "zun", "--format", "json")
    assert [rule.name for rule in ruleset.RuleSet.parse(result.stdout).rules] == ["admin"]


# -- files for operators -------------------------------------------------


def test_samples_come_from_installed_packages(install: Callable[..., None], tmp_path: Path) -> None:
    install(zun=[BASE, DOCUMENTED])
    result = run("generate-sample", "--dir", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(SERVICES)
    text = (tmp_path / "zun" / "policy.yaml.sample").read_text()
    assert text == (
        "####################\n"
        "# zun\n"
        "####################\n"
        "\n"
        "# Who\n"
        '"admin": "role:admin"\n'
        "\n"
        "# List containers\n"
        "# GET     /v1/containers\n"
        "# HEAD    /v1/containers\n"
        "# POST    /v1/x\n"
        "# Intended scope(s): [project]\n"
        '"zun:list": "role:reader or \\"it\'s\\":%(x)s"\n'
    )
    assert yaml.safe_load(text) == {"admin": "role:admin", "zun:list": DOCUMENTED.check_str}
    # Not installed is no error, and no rules.
    nova = (tmp_path / "nova" / "policy.yaml.sample").read_text()
    assert nova.startswith("####################\n# nova\n")
    assert yaml.safe_load(nova) is None


def test_files_of_the_embedded_rules(tmp_path: Path) -> None:
    result = run("generate-conf", "--dir", str(tmp_path), "--desc", "for our cloud\nsecond line")
    assert result.exit_code == 0, result.output
    for service in SERVICES:
        text = (tmp_path / service / "policy.yaml").read_text()
        assert "# for our cloud\n# second line\n" in text
        expected = {rule.name: rule.check for rule in ruleset.embedded(service).rules}
        assert yaml.safe_load(text) == expected


def test_the_directory_is_upstream_s_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("--debug", "generate-conf").exit_code == 0
    assert (tmp_path / "tmp" / "nova" / "policy.yaml").exists()


# -- validate ------------------------------------------------------------


def test_differences_are_logged_and_never_fail(install: Callable[..., None]) -> None:
    rules = list(ruleset.embedded("masakari").rules)
    documented = [rule for rule in rules if rule.operations]
    gone, scopes, operations, kind, check, *rest = documented
    base = [rule for rule in rules if not rule.operations]
    install(
        masakari=[
            *(as_oslo(rule) for rule in (*base, *rest)),
            as_oslo(Rule(scopes.name, scopes.check, "x", ("system",), scopes.operations)),
            as_oslo(Rule(operations.name, operations.check, "x", operations.scopes, ("GET /new",))),
            as_oslo(Rule(kind.name, kind.check, "x", kind.scopes)),
            as_oslo(Rule(check.name, "role:new", "x", check.scopes, check.operations)),
            as_oslo(Rule("brand:new", "@")),
        ]
    )
    result = run("validate")
    assert result.exit_code == 0
    about = [line for line in result.stderr.splitlines() if " masakari: " in line]
    assert about == [
        f"WARNING: masakari: rule {gone.name} is not published any more",
        f"ERROR: masakari: the scopes of rule {scopes.name} differ",
        f"ERROR: masakari: the operations of rule {operations.name} differ",
        f"WARNING: masakari: rule {kind.name} is embedded as documented and published as base",
        "ERROR: masakari: rule brand:new is not embedded",
    ]
    assert "WARNING: nova: no installed package" in result.stderr
    assert "role:new" not in result.output
    diff = run("validate", "--diff")
    assert diff.stdout == (
        f"masakari:{check.name}\n  embedded:  {check.check}\n  published: role:new\n"
    )


def test_a_rule_that_is_embedded_twice_is_an_error(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Rule("x", "@")
    monkeypatch.setattr(
        ruleset, "embedded", lambda name: ruleset.RuleSet(name, {}, (rule, rule, rule))
    )
    result = run("validate")
    assert result.exit_code == 0
    assert result.stderr.count("ERROR: nova: rule x is embedded twice") == 1


def test_wrong_usage_is_2() -> None:
    assert run("validate", "--no-such").exit_code == 2
    assert run("generate-rule").exit_code == 2
    assert run("no-such").exit_code == 2
    assert run("--help").exit_code == 0


@pytest.fixture(autouse=True)
def _our_log() -> Any:
    """The tools take the log over; the next test must have it back."""
    ours = logging.getLogger("trimaran")
    kept = ours.handlers, ours.propagate, ours.level
    yield
    ours.handlers, ours.propagate = kept[0], kept[1]
    ours.setLevel(kept[2])
