"""``skyline-policy-manager``: files for operators, and the rule sets themselves.

"Installed" rules are those of the service packages in the same Python
environment; "embedded" ones are the data files that the console answers from.
"""

from __future__ import annotations

import logging
from pathlib import Path

import click

from trimaran.console.policies import published, ruleset
from trimaran.console.policies.published import NotInstalled
from trimaran.console.policies.services import SERVICES, Service
from trimaran.console.tools import common, rule_files
from trimaran.policy import Rule

# Not __name__: that is "__main__" under "python -m".
LOG = logging.getLogger("trimaran.console.tools")

directory = click.option(
    "--dir",
    "place",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("./tmp"),
    show_default=True,
    help="Directory that gets a directory for each service.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Say more on stderr.")
def policy_manager(debug: bool) -> None:
    """Policy files of the services that the console knows."""
    common.log_to_stderr(debug=debug)


@policy_manager.command("generate-sample")
@directory
def generate_sample(place: Path) -> None:
    """Write <dir>/<service>/policy.yaml.sample from the installed packages.

    A service that is not installed gets a file without rules.
    """
    for service in SERVICES.values():
        try:
            rules = published.rules_of(service)
        except NotInstalled as missing:
            LOG.info("%s", missing)
            rules = ruleset.RuleSet(service.name, {}, ())
        _write(place, service, "policy.yaml.sample", rule_files.yaml_text(rules))


@policy_manager.command("generate-conf")
@directory
@click.option("--desc", default="", help="Text for the head of each file.")
def generate_conf(place: Path, desc: str) -> None:
    """Write <dir>/<service>/policy.yaml from the embedded rules.

    The console reads <policy_file_path>/<service>_<policy_file_suffix>.
    """
    for service in SERVICES.values():
        text = rule_files.yaml_text(ruleset.embedded(service.name), desc)
        _write(place, service, "policy.yaml", text)


@policy_manager.command("generate-rule")
@click.argument("service")
@click.option(
    "--format",
    "form",
    type=click.Choice(["python", "json"]),
    default="python",
    show_default=True,
    help="A module that defines RULES, or the console's own data file.",
)
def generate_rule(service: str, form: str) -> None:
    """Print the rules of an installed SERVICE."""
    known = SERVICES.get(service)
    if known is None:
        LOG.error("No such service: %s; known are %s.", service, ", ".join(SERVICES))
        raise SystemExit(1)
    try:
        rules = published.rules_of(known)
    except NotInstalled as missing:
        LOG.error("%s", missing)
        raise SystemExit(1) from None
    text = rules.dump() if form == "json" else rule_files.python_text(rules)
    click.echo(text, nl=False)


@policy_manager.command("validate")
@click.option("--diff", is_flag=True, help="Print both checks where they differ.")
def validate(diff: bool) -> None:
    """Compare the embedded rules with those of the installed packages."""
    for service in SERVICES.values():
        ours = ruleset.embedded(service.name)
        names = [rule.name for rule in ours.rules]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            LOG.error("%s: rule %s is embedded twice", service.name, name)
        try:
            theirs = {rule.name: rule for rule in published.rules_of(service).rules}
        except NotInstalled as missing:
            LOG.warning("%s", missing)
            continue
        for rule in ours.rules:
            other = theirs.pop(rule.name, None)
            if other is None:
                LOG.warning("%s: rule %s is not published any more", service.name, rule.name)
            else:
                _compare(service.name, rule, other, diff=diff)
        for name in theirs:
            LOG.error("%s: rule %s is not embedded", service.name, name)


def _compare(service: str, ours: Rule, theirs: Rule, *, diff: bool) -> None:
    if bool(ours.operations) != bool(theirs.operations):
        LOG.warning(
            "%s: rule %s is embedded as %s and published as %s",
            service,
            ours.name,
            _kind(ours),
            _kind(theirs),
        )
    else:
        if list(ours.scopes) != list(theirs.scopes):
            LOG.error("%s: the scopes of rule %s differ", service, ours.name)
        if ours.documented_operations() != theirs.documented_operations():
            LOG.error("%s: the operations of rule %s differ", service, ours.name)
    if diff and ours.check != theirs.check:
        click.echo(f"{service}:{ours.name}")
        click.echo(f"  embedded:  {ours.check}")
        click.echo(f"  published: {theirs.check}")


def _kind(rule: Rule) -> str:
    return "documented" if rule.operations else "base"


def _write(place: Path, service: Service, name: str, text: str) -> None:
    folder = place / service.name
    folder.mkdir(parents=True, exist_ok=True)
    common.write(folder / name, text)
    LOG.debug("wrote %s", folder / name)


def main() -> None:
    """Entry point of ``skyline-policy-manager``."""
    common.run(policy_manager, "skyline-policy-manager")


if __name__ == "__main__":
    main()
