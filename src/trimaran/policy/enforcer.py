"""Questions to policy.

One enforcer per service and process, built once; its table of compiled rules
is replaced as a whole when the override file changes, so a question sees the
old rules or the new ones, never half of each.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from oslo_config import cfg
from oslo_policy import policy as oslo

from trimaran.errors import Forbidden
from trimaran.policy import compiler
from trimaran.policy.compiler import Question, Test
from trimaran.policy.context import Context
from trimaran.policy.overrides import Overrides
from trimaran.policy.rules import Rule

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Table:
    """Compiled rules: those asked for by name, and those that ``rule:`` refers to."""

    direct: Mapping[str, Test]
    referred: Mapping[str, Test]
    version: int


class Enforcer:
    """The policy of one service.

    Args:
        service: for the log.
        rules: the defaults.
        override_file: the operator's file; need not exist.
        override_dirs: the operator's directories of files.
        enforce_scope: refuse tokens of a scope that the rule does not list.
        enforce_new_defaults: False also accepts what deprecated defaults accept.
        references: "merged" resolves ``rule:`` as oslo.policy does; "defaults"
            always in the defaults, also from the file (spec/skyline.md 5.3).
        default_rule: asked for rules that nobody defined, if itself is defined.
        check_seconds: least time between two looks at the files.
        conf: oslo.config with oslo.policy's options, for ``http:`` checks.
    """

    def __init__(
        self,
        service: str,
        rules: Sequence[Rule],
        *,
        override_file: str | None = None,
        override_dirs: Sequence[str] = (),
        enforce_scope: bool = True,
        enforce_new_defaults: bool = True,
        references: Literal["merged", "defaults"] = "merged",
        default_rule: str = "default",
        check_seconds: float = 1.0,
        conf: cfg.ConfigOpts | None = None,
    ) -> None:
        self.service = service
        self._rules = {rule.name: rule for rule in rules}
        if len(self._rules) != len(rules):
            raise ValueError(f"policy of {service}: a rule is defined twice")
        self._enforce_scope = enforce_scope
        self._enforce_new_defaults = enforce_new_defaults
        self._references = references
        self._default_rule = default_rule
        self._trees = {name: compiler.parse(rule.check) for name, rule in self._rules.items()}
        self._old_trees = {
            name: compiler.parse(rule.deprecated.check)
            for name, rule in self._rules.items()
            if rule.deprecated is not None
        }
        if conf is None:
            conf = cfg.ConfigOpts()
            conf(args=[], default_config_files=[], default_config_dirs=[])
        self._oslo = oslo.Enforcer(conf, use_conf=False)
        self._overrides = Overrides(service, override_file, override_dirs, interval=check_seconds)
        self._lock = threading.Lock()
        self._table = self._build({}, version=1)
        self._refresh()

    @classmethod
    def from_conf(
        cls, service: str, rules: Sequence[Rule], conf: cfg.ConfigOpts, **options: Any
    ) -> Enforcer:
        """Makes an enforcer of the group ``[oslo_policy]``.

        Relative paths are looked for beside the configuration files, as
        oslo.policy does.

        Args:
            service: for the log.
            rules: the defaults.
            conf: loaded configuration.
            options: more arguments of the class.
        """
        group = conf.oslo_policy
        directories = [conf.find_file(name) or name for name in group.policy_dirs]
        return cls(
            service,
            rules,
            override_file=conf.find_file(group.policy_file) or group.policy_file,
            override_dirs=directories,
            enforce_scope=group.enforce_scope if "enforce_scope" in group else True,
            enforce_new_defaults=group.enforce_new_defaults,
            default_rule=group.policy_default_rule,
            conf=conf,
            **options,
        )

    @property
    def version(self) -> int:
        """A number that grows when overrides change; for caches of answers."""
        self._refresh()
        return self._table.version

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The defaults by name, in their order."""
        return self._rules

    def knows(self, rule: str) -> bool:
        """Tells whether a rule is among the defaults or in the operator's file."""
        self._refresh()
        return rule in self._table.direct

    def authorize(
        self, rule: str, context: Context, target: Mapping[str, Any] | None = None
    ) -> None:
        """Refuses a caller whom a rule does not let through.

        Args:
            rule: its name.
            context: the caller.
            target: attributes of the thing; None means the caller's own.

        Raises:
            Forbidden: the rule, or its scopes, say no.
        """
        if not self.allowed(rule, context, target):
            raise Forbidden(f"Policy doesn't allow {rule} to be performed.")

    def allowed(self, rule: str, context: Context, target: Mapping[str, Any] | None = None) -> bool:
        """Answers one question; see ``authorize``.  A check that fails is a no."""
        return self.allowed_many((rule,), context, target)[rule]

    def allowed_many(
        self,
        rules: Iterable[str],
        context: Context | MutableMapping[str, Any],
        target: Mapping[str, Any] | None = None,
    ) -> dict[str, bool]:
        """Answers many questions about one caller and one target.

        Much faster than asking one by one: rules that others refer to are
        evaluated once.

        Args:
            rules: names.
            context: the caller, or credentials as a mapping.
            target: attributes of the thing; None means the caller's own.

        Returns:
            The answers by name.
        """
        self._refresh()
        table = self._table
        if isinstance(context, Context):
            creds: MutableMapping[str, Any] = context.credentials()
            about = context.own_target if target is None else target
        else:
            creds, about = context, target or {}
        question = Question(table.referred, about, creds, self._oslo, self._default_rule)
        scope = _scope_of(creds)
        return {rule: self._ask(rule, table, question, scope) for rule in rules}

    def _ask(self, rule: str, table: _Table, question: Question, scope: str) -> bool:
        test = table.direct.get(rule) or table.direct.get(self._default_rule)
        if test is None:
            LOG.debug("policy of %s: no rule %s, refused", self.service, rule)
            return False
        default = self._rules.get(rule)
        scopes = default.scopes if default is not None and self._enforce_scope else ()
        if scopes and scope not in scopes:
            return False
        try:
            return test(question)
        except Exception:
            LOG.warning(
                "policy of %s: the check of %s failed and counts as refused",
                self.service,
                rule,
                exc_info=True,
            )
            return False

    def _refresh(self) -> None:
        if self._overrides.refresh():
            with self._lock:
                self._table = self._build(self._overrides.rules, self._table.version + 1)

    def _build(self, overrides: Mapping[str, Any], version: int) -> _Table:
        defaults = {name: self._default(name, overrides) for name in self._rules}
        merged = {**defaults, **overrides}
        referred = defaults if self._references == "defaults" else merged
        self._warn(merged, referred)
        self._oslo.set_rules(dict(referred), overwrite=True, use_conf=False)
        tests = {name: compiler.compile_check(tree) for name, tree in merged.items()}
        if referred is merged:
            return _Table(tests, tests, version)
        shared = {name: compiler.compile_check(tree) for name, tree in referred.items()}
        return _Table(tests, shared, version)

    def _default(self, name: str, overrides: Mapping[str, Any]) -> Any:
        """A rule's tree when the file does not have it, by oslo.policy's rules of change."""
        tree = self._trees[name]
        deprecated = self._rules[name].deprecated
        if deprecated is None or name in overrides:
            return tree
        old = self._old_trees[name]
        written = overrides.get(deprecated.name) if deprecated.name != name else None
        if written is not None and written != old and str(written) != f"rule:{name}":
            # The operator restricted the rule under its old name; that still counts.
            return written
        if not self._enforce_new_defaults and deprecated.check != self._rules[name].check:
            return oslo.OrCheck([tree, old])
        return tree

    def _warn(self, merged: Mapping[str, Any], referred: Mapping[str, Any]) -> None:
        missing = sorted(
            name
            for name, tree in merged.items()
            if any(each not in referred for each in compiler.references(tree))
        )
        if missing:
            LOG.warning(
                "policy of %s: these rules refer to rules that do not exist and refuse: %s",
                self.service,
                ", ".join(missing),
            )


def _scope_of(creds: Mapping[str, Any]) -> str:
    if creds.get("system") or creds.get("system_scope"):
        return "system"
    return "domain" if creds.get("domain_id") else "project"
