"""``trimaran demo``: the main job on the embedded default, and a tour of it.

The demo brings the sandbox cloud up, starts ``trimaran serve all`` in front of
it and nginx with the console's front end in front of both, and runs real
clients against the three services, printing each command and its answer.
Everything it writes is below one directory.
"""

from __future__ import annotations

from pathlib import Path

import click

from trimaran.cli.demo import cloud as sandbox
from trimaran.cli.demo import environment, frontend, settings, tour
from trimaran.cli.demo.process import PORTS, Server
from trimaran.cli.demo.proxy import Proxy

directory = click.option(
    "--dir",
    "where",
    default=".demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where configuration, logs and the env file of the demo are kept.",
)


@click.group()
def demo() -> None:
    """A sandbox cloud with all services in front of it, and a tour."""


@demo.command()
@directory
@click.option("--tour/--no-tour", "with_tour", default=True, show_default=True)
def up(where: Path, with_tour: bool) -> None:
    """Start the cloud and the services, and take the tour.

    Running it again is quick and harmless.
    """
    where = where.absolute()
    cloud = sandbox.up()
    places = settings.Places(where)
    settings.write(places, cloud)
    sandbox.install("nginx-light:nginx")
    Server(places).ensure_running()
    Proxy(places).ensure_running(frontend.find(), PORTS["console"])
    env = environment.build(places, cloud)
    environment.write(places.env, env)
    if with_tour:
        tour.run(env)
    click.echo(environment.summary(places, env))


@demo.command()
@directory
@click.option("--keep-cloud", is_flag=True, help="Stop the services, leave the sandbox up.")
def stop(where: Path, keep_cloud: bool) -> None:
    """Stop the services and the sandbox cloud."""
    places = settings.Places(where.absolute())
    Proxy(places).stop()
    Server(places).stop()
    if not keep_cloud:
        sandbox.down()


@demo.command()
@directory
def status(where: Path) -> None:
    """Say whether the demo's services run; exit 1 if not."""
    places = settings.Places(where.absolute())
    running = {"services": Server(places).pid(), "nginx": Proxy(places).process.pid()}
    for name, pid in running.items():
        click.echo(f"{name}: running, pid {pid}" if pid else f"{name}: not running")
    if not all(running.values()):
        raise SystemExit(1)
