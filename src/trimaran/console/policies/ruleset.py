"""Rule sets as data: one JSON file a service, one line a rule.

JSON, because the console reads all of them at its start and YAML would take
a second for that; a line a rule, because then a new release of a service is a
diff that can be read.  The files are made by ``skyline-policy-manager
generate-rule SERVICE --format json`` and never edited by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from trimaran.console.policies.services import SERVICES
from trimaran.policy import Rule

LICENSE = "Apache-2.0; the default rules that the named packages publish"


@dataclass(frozen=True)
class RuleSet:
    """The rules of one service.

    Attributes:
        service: the console's name of it.
        packages: distribution to version that the rules come from.
        rules: in the order of the packages.
    """

    service: str
    packages: Mapping[str, str]
    rules: Sequence[Rule]

    def dump(self) -> str:
        """Returns the file's text."""
        head = {"service": self.service, "license": LICENSE, "packages": dict(self.packages)}
        lines = [f"  {_json(key)}: {_json(value)}," for key, value in head.items()]
        rows = ",\n".join(f"    {_json(_row(rule))}" for rule in self.rules)
        return "{\n" + "\n".join(lines) + '\n  "rules": [\n' + rows + "\n  ]\n}\n"

    @classmethod
    def parse(cls, text: str) -> RuleSet:
        """Reads a file's text."""
        content = json.loads(text)
        return cls(content["service"], content["packages"], tuple(map(_rule, content["rules"])))


def embedded(service: str) -> RuleSet:
    """Returns the rule set that we carry for a service.

    Raises:
        KeyError: the console does not know the service.
    """
    name = SERVICES[service].name
    file = resources.files("trimaran.console") / "data" / "policies" / f"{name}.json"
    return RuleSet.parse(file.read_text(encoding="utf-8"))


def all_embedded() -> Iterator[RuleSet]:
    """Yields all rule sets in the order of the console's answers."""
    return map(embedded, SERVICES)


def _row(rule: Rule) -> dict[str, Any]:
    row: dict[str, Any] = {"name": rule.name, "check": rule.check}
    if rule.scopes:
        row["scopes"] = list(rule.scopes)
    if rule.operations:
        row["operations"] = [
            f"{each['method']} {each['path']}" for each in rule.documented_operations()
        ]
    if rule.description:
        row["description"] = rule.description
    return row


def _rule(row: Mapping[str, Any]) -> Rule:
    return Rule(
        name=row["name"],
        check=row["check"],
        description=row.get("description", ""),
        scopes=tuple(row.get("scopes", ())),
        operations=tuple(row.get("operations", ())),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
