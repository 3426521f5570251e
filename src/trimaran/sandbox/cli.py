"""The ``sandbox`` commands: up, down, status, env, reset."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pymysql
import requests

from trimaran.sandbox import api, describe
from trimaran.sandbox import status as state_of
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.settings import DEFAULT_BASE_PORT, EXTRAS, Settings
from trimaran.sandbox.venv import Environment


def state_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option every command has."""
    return click.option(
        "--state",
        envvar="TRIMARAN_SANDBOX",
        default=".sandbox",
        show_default=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="State directory; $TRIMARAN_SANDBOX also sets it.",
    )(command)


class Commands(click.Group):
    """A group whose commands end in one sentence also when the system refuses something."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except pymysql.Error as error:
            raise SandboxError(f"The database server refused a step: {error}.") from error
        except requests.RequestException as error:
            raise SandboxError(f"A service stopped answering: {error}.") from error
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            raise SandboxError(f"{error.strerror or error}{place}.") from error


@click.group(cls=Commands)
def sandbox() -> None:
    """A real small OpenStack on this machine: for the demo, the tests, the benchmarks."""


@sandbox.command()
@state_option
@click.option(
    "--base-port",
    type=click.IntRange(1024, 64735),
    help=f"Keystone's port; the others follow.  [default: {DEFAULT_BASE_PORT}]",
)
@click.option(
    "--with",
    "extras",
    multiple=True,
    type=click.Choice(EXTRAS),
    help="Also start this; remembered until reset.",
)
@click.option(
    "--own-servers",
    is_flag=True,
    help="Start a MariaDB and a RabbitMQ of the sandbox's own even where the machine has them.",
)
@click.option("--console-port", type=int, help="The console's port, for the catalog.  [9998]")
@click.option("--ec2-port", type=int, help="The EC2 API's port, for the catalog.  [8788]")
@click.option("--magnum-port", type=int, help="The magnum API's port, for the catalog.  [9511]")
def up(state: Path, extras: tuple[str, ...], **options: Any) -> None:
    """Install what is missing, start what does not run, fill in what is not there."""
    api.up(state, extras, **options)


@sandbox.command()
@state_option
def down(state: Path) -> None:
    """Stop everything that up started; the data stays."""
    api.down(state)


@sandbox.command()
@state_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(state: Path, as_json: bool) -> None:
    """Say what is up, since when, with how much memory; exit status 1 if something is not."""
    lines = api.lines(state)
    click.echo(json.dumps(state_of.as_dict(lines)) if as_json else state_of.table(lines))
    sys.exit(0 if all(line.up for line in lines) else 1)


@sandbox.command()
@state_option
@click.argument("who", default="admin")
def env(state: Path, who: str) -> None:
    """Print shell exports of a user: eval "$(trimaran sandbox env demo)".

    WHO is admin, demo, alt, or the name of any other user.
    """
    click.echo(describe.exports(Settings.load(state), Environment(), who), nl=False)


@sandbox.command()
@state_option
def reset(state: Path) -> None:
    """Stop everything and forget all data; the cached environment stays."""
    api.reset(state)


@sandbox.command()
@state_option
@click.argument("wanted", nargs=-1, required=True, metavar="PACKAGE[:FILE]...")
def install(state: Path, wanted: tuple[str, ...]) -> None:
    """Install Debian packages that tests need, unless their files are there.

    FILE is a program or a shared library; without it a program of the package's
    name is looked for.  Nothing is started.
    """
    api.install(state, wanted)
