"""Policy rules as data.

A hull writes its rules as rows; whoever needs oslo.policy's own objects (the
sample generator) gets them made from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oslo_policy import policy as oslo


@dataclass(frozen=True)
class DeprecatedRule:
    """The default that a rule had before.

    While ``enforce_new_defaults`` is off it still lets callers in beside the
    new one; an override under its name keeps counting (oslo.policy's rules).

    Attributes:
        name: the rule's name then, often the same.
        check: the check then.
        reason: why it changed.
        since: release of the change.
    """

    name: str
    check: str
    reason: str = ""
    since: str = ""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        name: in the service's own spelling.
        check: default check in oslo.policy's language.
        description: what it permits; "" for rules that only others refer to.
        scopes: token scopes that may use it ("project", "domain", "system"); () means any.
        operations: requests that ask for it, ``"METHOD /path"`` or
            ``{"method": …, "path": …}``.
        deprecated: the default before.
    """

    name: str
    check: str
    description: str = ""
    scopes: Sequence[str] = ()
    operations: Sequence[str | Mapping[str, str]] = ()
    deprecated: DeprecatedRule | None = None

    def documented_operations(self) -> list[dict[str, str]]:
        """Returns the operations as objects with ``method`` and ``path``."""
        found = []
        for operation in self.operations:
            if isinstance(operation, str):
                method, _, path = operation.partition(" ")
                found.append({"method": method, "path": path})
            else:
                found.append(dict(operation))
        return found

    def as_oslo(self) -> oslo.RuleDefault:
        """Returns oslo.policy's object for this rule."""
        deprecated = None
        if self.deprecated is not None:
            deprecated = oslo.DeprecatedRule(
                self.deprecated.name,
                self.deprecated.check,
                deprecated_reason=self.deprecated.reason or "Changed.",
                deprecated_since=self.deprecated.since or "unknown",
            )
        scopes = list(self.scopes) or None
        if not self.operations or not self.description:
            return oslo.RuleDefault(
                self.name,
                self.check,
                self.description or None,
                deprecated_rule=deprecated,
                scope_types=scopes,
            )
        return oslo.DocumentedRuleDefault(
            self.name,
            self.check,
            self.description,
            self.documented_operations(),
            deprecated_rule=deprecated,
            scope_types=scopes,
        )
