"""Rules as text: override files for operators, and a module for programs.

The form of the YAML is upstream's (spec/skyline.md 6.1), so that files made by
either tool can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from trimaran.console.policies.ruleset import RuleSet
from trimaran.policy import Rule

BANNER = "#" * 20


def yaml_text(rules: RuleSet, header: str = "") -> str:
    """Returns an override file with every rule at its default.

    Args:
        rules: the rules of one service.
        header: text for a comment at the top.
    """
    lines = [BANNER, f"# {rules.service}", BANNER]
    lines += [f"# {line}".rstrip() for line in header.splitlines()]
    lines.append("")
    for rule in rules.rules:
        lines += _comments(rule)
        # JSON's quoting is YAML's, whatever a check contains.
        lines += [f"{_quoted(rule.name)}: {_quoted(rule.check)}", ""]
    return "\n".join(lines)


def _comments(rule: Rule) -> Iterator[str]:
    for line in rule.description.splitlines():
        yield f"# {line}"
    if not rule.operations:
        return
    for each in rule.documented_operations():
        yield f"# {each['method']:<8}{each['path']}"
    if rule.scopes:
        yield f"# Intended scope(s): [{', '.join(rule.scopes)}]"


def python_text(rules: RuleSet) -> str:
    """Returns a Python module that defines the rules as ``RULES``."""
    lines = [
        f'"""Rules of {rules.service}, as {_packages(rules.packages)} publishes them."""',
        "",
        "from trimaran.policy import Rule",
        "",
        "RULES = (",
    ]
    for rule in rules.rules:
        lines.append("    Rule(")
        lines.append(f"        name={rule.name!r},")
        lines.append(f"        check={rule.check!r},")
        if rule.description:
            lines.append(f"        description={rule.description!r},")
        if rule.scopes:
            lines.append(f"        scopes={tuple(rule.scopes)!r},")
        if rule.operations:
            lines.append("        operations=(")
            lines += [
                f"            {each['method'] + ' ' + each['path']!r},"
                for each in rule.documented_operations()
            ]
            lines.append("        ),")
        lines.append("    ),")
    return "\n".join([*lines, ")", ""])


def _packages(packages: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in packages.items())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
