"""``ec2-api-manage``: upstream's tool under its name, for scripts that already call it.

The daemons themselves are started by ``trimaran ec2-api`` and its sisters;
this only maps the two verbs of upstream's tool onto the migrations.
"""

from __future__ import annotations

import sys

import click

from trimaran.errors import ConfigError, TrimaranError


@click.group("ec2-api-manage")
@click.option("--config-file", "files", multiple=True, type=click.Path(dir_okay=False))
@click.option("--config-dir", "dirs", multiple=True, type=click.Path(file_okay=False))
@click.pass_context
def _manage(context: click.Context, files: tuple[str, ...], dirs: tuple[str, ...]) -> None:
    """Look after the database of the EC2 API."""
    from trimaran.config import ec2 as options

    context.obj = options.load(files, dirs).database.connection


@_manage.command("db_sync")
@click.argument("version", required=False)
@click.argument("rest", nargs=-1)
@click.pass_obj
def _db_sync(url: str, version: str | None, rest: tuple[str, ...]) -> None:
    """Bring the schema to this release (there is no way back; VERSION is accepted and ignored)."""
    from trimaran.db import migrate

    migrate.upgrade(url, "ec2")


@_manage.command("db_version")
@click.pass_obj
def _db_version(url: str) -> None:
    """Print the revisions that the database is at."""
    from trimaran.db import migrate

    click.echo("\n".join(migrate.current(url)) or "none")


def manage() -> None:
    """Entry point: one sentence and exit code 1 instead of a trace."""
    try:
        _manage(prog_name="ec2-api-manage")
    except (ConfigError, TrimaranError) as error:
        click.echo(f"ec2-api-manage: {error}", err=True)
        sys.exit(1)
