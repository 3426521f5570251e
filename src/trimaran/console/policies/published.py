"""The rules that installed services publish, through oslo.policy's entry points.

A service is imported to be asked, so this is for the command line tools only;
the console itself reads the data files.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from trimaran.console.policies.ruleset import RuleSet
from trimaran.console.policies.services import Service
from trimaran.policy import Rule

GROUP = "oslo.policy.policies"
# A description in a rule file is a reminder; the service's reference has the rest.
LENGTH = 160


class NotInstalled(LookupError):
    """A package of a service is not there, or does not publish its rules."""


def rules_of(service: Service) -> RuleSet:
    """Asks the installed packages of a service for its rules.

    A rule that two packages publish alike is taken once, from the first.

    Raises:
        NotInstalled: names what is missing.
    """
    found: dict[str, Rule] = {}
    for name in service.entry_points:
        points = metadata.entry_points(group=GROUP, name=name)
        if not points:
            raise NotInstalled(
                f"{service.name}: no installed package has the entry point {name} in {GROUP}"
            )
        for default in _defaults(next(iter(points))):
            found.setdefault(default.name, _rule(default))
    return RuleSet(service.name, _versions(service.packages), tuple(found.values()))


def _defaults(point: Any) -> list[Any]:
    # Some services greet on stdout when they are imported.
    with contextlib.redirect_stdout(sys.stderr):
        return list(point.load()())


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            # A checkout that offers the entry point without being installed.
            versions[package] = "unknown"
    return versions


def _rule(default: Any) -> Rule:
    operations = [
        f"{method} {operation['path']}"
        for operation in getattr(default, "operations", None) or ()
        for method in _methods(operation["method"])
    ]
    return Rule(
        name=default.name,
        check=default.check_str,
        description=_short(default.description or ""),
        scopes=tuple(default.scope_types or ()),
        operations=tuple(operations),
    )


def _methods(method: str | list[str]) -> list[str]:
    return [method] if isinstance(method, str) else method


def _short(description: str) -> str:
    """The first sentence, on one line."""
    paragraph = " ".join(description.strip().split("\n\n")[0].split())
    sentence = paragraph.split(". ")[0].rstrip(".")
    return sentence if len(sentence) <= LENGTH else f"{sentence[: LENGTH - 1].rstrip()}…"
