"""The ``trimaran`` command.

Each subcommand lives in a module of its own that is imported when it is asked
for: a daemon's start must not pay for the imports of the others.
"""

from __future__ import annotations

import importlib
import sys

import click

from trimaran import __version__
from trimaran.errors import ConfigError

#: name: (module, attribute, one line for --help)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "console": ("trimaran.cli.services", "console", "Serve the console API (Skyline's wire)."),
    "db": ("trimaran.cli.db", "db", "Migrate and check the databases."),
    "demo": ("trimaran.cli.demo", "demo", "A sandbox cloud with all services, and a tour."),
    "ec2-api": ("trimaran.cli.services", "ec2_api", "Serve the EC2 API."),
    "ec2-metadata": ("trimaran.cli.services", "ec2_metadata", "Serve EC2 instance metadata."),
    "ec2-s3": ("trimaran.cli.services", "ec2_s3", "Serve the S3 stub."),
    "jobs": ("trimaran.cli.jobs", "jobs", "Look at durable jobs, retry or cancel them."),
    "magnum": ("trimaran.cli.magnum", "magnum", "Look after Magnum's operations and conductors."),
    "magnum-api": ("trimaran.cli.services", "magnum_api", "Serve the Magnum API."),
    "magnum-conductor": ("trimaran.cli.services", "magnum_conductor", "Run a Magnum conductor."),
    "sandbox": ("trimaran.sandbox.cli", "sandbox", "A real small OpenStack on this machine."),
    "serve": ("trimaran.cli.serve", "serve", "Serve everything in one process."),
}


class LazyGroup(click.Group):
    """A group that imports a subcommand when it runs, and only then."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trimaran")
def cli() -> None:
    """Three OpenStack services on one deck: console, EC2 and Magnum."""


def run(command: click.Command, name: str) -> None:
    """Run a command; a configuration error is one sentence and exit 1."""
    try:
        command(prog_name=name)
    except ConfigError as error:
        click.echo(f"{name}: {error}", err=True)
        sys.exit(1)


def main() -> None:
    """Run the ``trimaran`` command."""
    run(cli, "trimaran")
