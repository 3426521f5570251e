"""Rules, scopes, deprecated defaults and operators' files."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_policy import policy as oslo

from tests.support.keystone import token
from trimaran.errors import Forbidden
from trimaran.policy import Context, DeprecatedRule, Enforcer, Rule

RULES = [
    Rule("admin", "role:admin"),
    Rule("owner", "project_id:%(project_id)s"),
    Rule("thing:show", "rule:owner", "Show a thing.", ("project",), ("GET /things/{id}",)),
    Rule("thing:list", "role:reader", "List things.", ("project", "system"), ["GET /things"]),
    Rule(
        "thing:create", "rule:admin", "Make a thing.", (), [{"method": "POST", "path": "/things"}]
    ),
]
MEMBER = Context(token())


def admin(**changes: Any) -> Context:
    return Context(token(roles=[{"id": "r", "name": "admin"}], **changes))


def enforcer(file: Path | None = None, rules: list[Rule] = RULES, **options: Any) -> Enforcer:
    return Enforcer(
        "thing", rules, override_file=str(file) if file else None, check_seconds=0, **options
    )


class TestQuestions:
    def test_own_target_when_none_is_given(self) -> None:
        assert enforcer().allowed("thing:show", MEMBER)

    def test_target(self) -> None:
        assert not enforcer().allowed("thing:show", MEMBER, {"project_id": "p2"})
        assert not enforcer().allowed("thing:show", MEMBER, {})

    def test_authorize(self) -> None:
        enforcer().authorize("thing:create", admin())
        with pytest.raises(Forbidden) as caught:
            enforcer().authorize("thing:create", MEMBER)
        assert str(caught.value) == "Policy doesn't allow thing:create to be performed."

    def test_many_at_once(self) -> None:
        assert enforcer().allowed_many(["thing:list", "thing:create"], MEMBER) == {
            "thing:list": True,
            "thing:create": False,
        }

    def test_knows(self) -> None:
        assert enforcer().knows("thing:show")
        assert not enforcer().knows("thing:fly")
        assert list(enforcer().rules) == [rule.name for rule in RULES]

    def test_twice_the_same_name_is_a_mistake(self) -> None:
        with pytest.raises(ValueError, match="twice"):
            Enforcer("thing", [Rule("a", "@"), Rule("a", "!")])

    def test_1860_rules_are_evaluated_with_shared_parts_once(self) -> None:
        asked = []

        class Watched(oslo.Check):
            def __call__(self, *_: Any) -> bool:
                asked.append(1)
                return True

        oslo.register("watched", Watched)
        try:
            rules = [Rule("shared", "watched:x")]
            rules += [Rule(f"r{number}", "rule:shared and role:member") for number in range(1860)]
            answers = Enforcer("big", rules).allowed_many([rule.name for rule in rules[1:]], MEMBER)
        finally:
            oslo._checks.registered_checks.pop("watched")
        assert all(answers.values())
        assert len(asked) == 1


class TestScopes:
    SYSTEM = Context(token(project=None, system={"all": True}))
    DOMAIN = Context(token(project=None, domain={"id": "d", "name": "D"}))

    @pytest.mark.parametrize(
        ("context", "allowed"), [(MEMBER, True), (SYSTEM, True), (DOMAIN, False)]
    )
    def test_listed_scopes_only(self, context: Context, allowed: bool) -> None:
        assert enforcer().allowed("thing:list", context) is allowed

    def test_off(self) -> None:
        assert enforcer(enforce_scope=False).allowed("thing:list", self.DOMAIN)

    def test_rules_without_scopes_take_any(self) -> None:
        for changes in ({"project": None, "system": {"all": True}}, {}):
            assert enforcer().allowed("thing:create", admin(**changes))

    def test_proven_system_scope_of_the_console(self) -> None:
        rules = [Rule("sys", "role:reader and system_scope:all", scopes=("system",))]
        plain = Context(token())
        proven = Context(token(), system_scope="all")
        assert not enforcer(rules=rules).allowed("sys", plain)
        assert enforcer(rules=rules).allowed("sys", proven)


class TestOverrides:
    def test_absent_file(self, tmp_path: Path) -> None:
        assert enforcer(tmp_path / "none.yaml").allowed("thing:list", MEMBER)

    def test_file_at_start(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:list: role:admin\n")
        assert not enforcer(file).allowed("thing:list", MEMBER)

    def test_json(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.json"
        file.write_text('{"thing:list": "!"}')
        assert not enforcer(file).allowed("thing:list", MEMBER)

    def test_change_deletion_and_version(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        policy = enforcer(file)
        before = policy.version
        file.write_text("thing:list: '!'\n")
        assert not policy.allowed("thing:list", MEMBER)
        assert policy.version == before + 1
        file.write_text("thing:list: role:member\n")
        assert policy.allowed("thing:list", MEMBER)
        assert policy.version == before + 2
        assert policy.version == before + 2
        file.unlink()
        assert policy.allowed("thing:list", MEMBER)
        assert policy.version == before + 3

    def test_same_size_and_replaced(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:list: role:admin \n")
        policy = enforcer(file)
        assert not policy.allowed("thing:list", MEMBER)
        other = tmp_path / "new.yaml"
        other.write_text("thing:list: role:member\n")
        stat = file.stat()
        os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert other.stat().st_size == stat.st_size
        other.replace(file)
        assert policy.allowed("thing:list", MEMBER)

    def test_a_rule_only_in_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:fly: role:member\nalias: role:admin\n")
        policy = enforcer(file)
        assert policy.knows("thing:fly")
        assert policy.allowed("thing:fly", MEMBER)
        assert "thing:fly" not in policy.rules

    def test_references_to_and_from_the_file(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("owner: '!'\nalias: role:member\nthing:list: rule:alias\n")
        merged = enforcer(file)
        assert not merged.allowed("thing:show", MEMBER)
        assert merged.allowed("thing:list", MEMBER)
        assert "do not exist" not in caplog.text
        console = enforcer(file, references="defaults")
        assert "do not exist and refuse: thing:list" in caplog.text
        assert console.allowed("thing:show", MEMBER)
        assert not console.allowed("owner", MEMBER)
        assert not console.allowed("thing:list", MEMBER)

    @pytest.mark.parametrize(
        "text",
        [
            "thing:list: [unclosed",
            "- a\n- b\n",
            "just text",
            "thing:list: 7\n",
            "thing:list: {a: b}\n",
            "1: role:admin\n",
            "thing:list: role:admin and\n",
            "thing:list: nonsense\n",
            "\x00",
        ],
    )
    def test_a_file_that_cannot_be_used(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
    ) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:list: role:admin\n")
        policy = enforcer(file)
        version = policy.version
        file.write_text(text)
        for _ in range(3):
            assert not policy.allowed("thing:list", MEMBER)
            assert policy.allowed("thing:list", admin())
        assert policy.version == version
        (warning,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert warning.levelno == logging.WARNING
        assert str(file) in warning.getMessage()
        # Another change, another report; and the repaired file counts.
        file.write_text(text + " \n#")
        policy.allowed("thing:list", MEMBER)
        assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) == 2
        file.write_text("thing:list: role:member\n")
        assert policy.allowed("thing:list", MEMBER)

    def test_broken_from_the_start_means_the_defaults(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("[")
        assert enforcer(file).allowed("thing:list", MEMBER)
        assert "not used" in caplog.text

    def test_not_utf8(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        file = tmp_path / "policy.yaml"
        file.write_bytes(b"thing:list: '\xff\xfe'\n")
        assert enforcer(file).allowed("thing:list", MEMBER)
        assert "not used" in caplog.text

    def test_unreadable(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        file = tmp_path / "policy.yaml"
        file.mkdir()
        policy = enforcer(file)
        assert policy.allowed("thing:list", MEMBER)
        policy.allowed("thing:list", MEMBER)
        assert caplog.text.count("not used") == 1

    def test_dangling_link(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:list: '!'\n")
        policy = enforcer(file)
        file.unlink()
        file.symlink_to(tmp_path / "gone.yaml")
        # A link whose target is being exchanged is no deletion.
        assert not policy.allowed("thing:list", MEMBER)
        assert "not used" in caplog.text

    def test_an_empty_file_overrides_nothing(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("# nothing\n")
        assert enforcer(file).allowed("thing:list", MEMBER)

    def test_empty_check_lets_all_through(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text('thing:create: ""\n')
        assert enforcer(file).allowed("thing:create", MEMBER)

    def test_a_missing_reference_is_reported_and_refuses(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:list: rule:typo\n")
        assert not enforcer(file).allowed("thing:list", MEMBER)
        assert "thing:list" in caplog.text
        assert "do not exist" in caplog.text

    def test_directories_in_order_after_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text("thing:list: '!'\nthing:show: '!'\n")
        directory = tmp_path / "policy.d"
        directory.mkdir()
        (directory / "b.yaml").write_text("thing:list: role:member\n")
        (directory / "a.yaml").write_text("thing:list: '!'\n")
        (directory / ".hidden").write_text("thing:show: '@'\n")
        policy = enforcer(file, override_dirs=[str(directory), str(tmp_path / "none.d")])
        assert policy.allowed("thing:list", MEMBER)
        assert not policy.allowed("thing:show", MEMBER)
        (directory / "b.yaml").unlink()
        assert not policy.allowed("thing:list", MEMBER)

    def test_files_are_looked_at_once_in_a_while(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [100.0]
        monkeypatch.setattr("trimaran.policy.overrides.time.monotonic", lambda: now[0])
        file = tmp_path / "policy.yaml"
        policy = Enforcer("thing", RULES, override_file=str(file))
        file.write_text("thing:list: '!'\n")
        now[0] += 0.9
        assert policy.allowed("thing:list", MEMBER)
        now[0] += 0.2
        assert not policy.allowed("thing:list", MEMBER)


OLD = DeprecatedRule("thing:old", "role:member", "Renamed.", "1.0")
SAME = DeprecatedRule("thing:list", "role:member", "Stricter.", "1.0")


class TestDeprecated:
    """The same answers as oslo.policy's own handling of deprecated rules."""

    @pytest.mark.parametrize("new_defaults", [True, False])
    @pytest.mark.parametrize("deprecated", [OLD, SAME])
    @pytest.mark.parametrize(
        "override",
        [
            "",
            "thing:list: role:nobody",
            "thing:list: role:member",
            "thing:old: role:nobody",
            "thing:old: role:member",
            "thing:old: rule:thing:list",
            "thing:old: role:nobody\nthing:list: role:member",
        ],
    )
    def test_as_oslo_policy(
        self, tmp_path: Path, new_defaults: bool, deprecated: DeprecatedRule, override: str
    ) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text(override + "\n")
        rule = Rule("thing:list", "role:admin", deprecated=deprecated)
        ours = enforcer(file, [rule], enforce_new_defaults=new_defaults)

        conf = cfg.ConfigOpts()
        conf(args=[], default_config_files=[], default_config_dirs=[])
        theirs = oslo.Enforcer(conf, policy_file=str(file))
        conf.set_override("enforce_new_defaults", new_defaults, "oslo_policy")
        theirs.register_default(rule.as_oslo())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = {
                context.roles: theirs.enforce("thing:list", {}, dict(context.credentials()))
                for context in (MEMBER, admin())
            }
        assert {
            context.roles: ours.allowed("thing:list", context) for context in (MEMBER, admin())
        } == expected


class TestFromConf:
    def test_files_beside_the_configuration(self, tmp_path: Path) -> None:
        (tmp_path / "policy.yaml").write_text("thing:list: '!'\n")
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "x.yaml").write_text("thing:show: '!'\n")
        config = tmp_path / "thing.conf"
        config.write_text("[oslo_policy]\npolicy_file = policy.yaml\npolicy_dirs = more\n")
        conf = cfg.ConfigOpts()
        oslo.Enforcer(conf)
        conf(args=[], default_config_files=[str(config)], default_config_dirs=[])
        policy = Enforcer.from_conf("thing", RULES, conf)
        assert not policy.allowed("thing:list", MEMBER)
        assert not policy.allowed("thing:show", MEMBER)
        assert policy.allowed("owner", MEMBER)

    def test_new_defaults_option(self, tmp_path: Path) -> None:
        config = tmp_path / "thing.conf"
        config.write_text("[oslo_policy]\nenforce_new_defaults = false\n")
        conf = cfg.ConfigOpts()
        oslo.Enforcer(conf)
        conf(args=[], default_config_files=[str(config)], default_config_dirs=[])
        policy = Enforcer.from_conf(
            "thing", [Rule("thing:list", "role:admin", deprecated=SAME)], conf
        )
        assert policy.allowed("thing:list", MEMBER)


class TestContext:
    def test_names_that_rules_use(self) -> None:
        context = Context(
            token(), request_id="req-1", remote_address="192.0.2.1", extra={"read_only": "no"}
        )
        found = context.credentials()
        expected = {
            "user_id": "u1",
            "user": "demo",
            "user_name": "demo",
            "username": "demo",
            "project_id": "p1",
            "project": "p1",
            "tenant": "p1",
            "tenant_id": "p1",
            "user_domain_id": "default",
            "project_domain_name": "Default",
            "domain_id": None,
            "system_scope": "",
            "roles": ["member", "reader"],
            "role_ids": ["r1", "r2"],
            "is_admin": False,
            "is_admin_project": True,
            "request_id": "req-1",
            "remote_address": "192.0.2.1",
            "read_only": "no",
            "auth_token": "user-token",
        }
        assert {name: found[name] for name in expected} == expected
        assert "system" not in found
        assert context.credentials() is found

    def test_admin_roles(self) -> None:
        assert admin().is_admin
        assert not Context(token(), admin_roles=("Member",)).is_admin
        assert Context(token(), admin_roles=("x", "member")).is_admin
        assert Context(token(), reader_roles=("reader",)).is_reader_admin
        assert not Context(token()).is_reader_admin

    def test_no_secret_in_repr(self) -> None:
        assert "user-token" not in repr(MEMBER)


class TestRule:
    def test_operations(self) -> None:
        assert RULES[2].documented_operations() == [{"method": "GET", "path": "/things/{id}"}]
        assert RULES[4].documented_operations() == [{"method": "POST", "path": "/things"}]

    def test_as_oslo(self) -> None:
        made = RULES[2].as_oslo()
        assert isinstance(made, oslo.DocumentedRuleDefault)
        assert (made.name, made.check_str, made.scope_types) == (
            "thing:show",
            "rule:owner",
            ["project"],
        )
        plain = RULES[0].as_oslo()
        assert not isinstance(plain, oslo.DocumentedRuleDefault)
