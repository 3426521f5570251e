"""``trimaran db``: migrate a database, and say whether it needs it.

Exit codes of `check`: 0 up to date, 1 could not be told (no answer, or newer
than this release), 2 needs `upgrade`; so an init container can act upon them.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from trimaran import errors
from trimaran.cli.telling import TellingGroup
from trimaran.db import migrate, urls

HULLS = ("console", "ec2", "magnum")
EXIT_UNKNOWN = 1
EXIT_BEHIND = 2

_hull = click.argument("hull", type=click.Choice([*HULLS, "all"]), default="all")
_url = click.option(
    "--url",
    help="URL of the database; by default the one in the configuration file of each service.",
)
_files = click.option(
    "--config-file",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Configuration file of the service (with one service named, not with all).",
)


@click.group(cls=TellingGroup)
def db() -> None:
    """Migrate and check the databases."""


@db.command()
@_hull
@_url
@_files
def upgrade(hull: str, url: str | None, files: tuple[str, ...]) -> None:
    """Bring the schema to this release; safe to run twice or on several hosts at once."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    for name, where in _targets(hull, url, files):
        at = migrate.upgrade(where, name)
        click.echo(f"{_safe(where)}: {name} is at {', '.join(at)}")


@db.command()
@_hull
@_url
@_files
def current(hull: str, url: str | None, files: tuple[str, ...]) -> None:
    """Show the revisions that the databases are at."""
    for _name, where in _targets(hull, url, files):
        at = migrate.current(where)
        click.echo(f"{_safe(where)}: {', '.join(at) or 'not migrated yet'}")


@db.command()
@_hull
@_url
@_files
def check(hull: str, url: str | None, files: tuple[str, ...]) -> None:
    """Say whether the databases need an upgrade (exit 0: no, 2: yes, 1: cannot be told)."""
    worst = 0
    for name, where in _targets(hull, url, files):
        result = migrate.check(where, name)
        click.echo(f"{_safe(where)}: {result.text}")
        if not result.ok:
            worst = max(worst, EXIT_UNKNOWN if result.newer else EXIT_BEHIND)
    sys.exit(worst)


def _targets(hull: str, url: str | None, files: tuple[str, ...]) -> list[tuple[str, str]]:
    """What to do where: pairs of hull and URL."""
    if url:
        return [(hull, url)]
    if files and hull == "all":
        raise click.UsageError("--config-file needs the name of one service.")
    names = HULLS if hull == "all" else (hull,)
    return [(name, configured(name, files)) for name in names]


def configured(hull: str, files: tuple[str, ...]) -> str:
    """The URL of a service's database, as its configuration says."""
    # Imported here: with --url no configuration library is needed.
    from trimaran.config import console, ec2, magnum

    if hull == "console":
        return str(console.load(files[-1] if files else None).default.database_url)
    loaded: Any = (ec2 if hull == "ec2" else magnum).load(files=files)
    found = loaded.database.connection
    if not found:
        raise errors.ConfigError(f"{hull}: option connection in group [database] is not set")
    return str(found)


def _safe(url: str) -> str:
    return urls.parse(url).render_as_string(hide_password=True)
