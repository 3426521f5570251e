"""The services of the demo: one process in the background for all of them."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

import click

from trimaran.cli.demo.background import Background
from trimaran.cli.demo.settings import Places

#: service: port; upstream's ports
PORTS = {"console": 9998, "ec2": 8788, "metadata": 8789, "s3": 3334, "magnum": 9511}


def answers(port: int, path: str) -> bool:
    """Whether somebody on this port of loopback answers 200 to a GET of the path."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def healthy(port: int) -> bool:
    """Whether the service on this port of loopback answers its health check."""
    return answers(port, "/healthcheck")


class Server:
    """The background process ``trimaran serve all``.

    Args:
        places: where its files are.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.process = Background("trimaran serve all", places.pid, places.log)

    def pid(self) -> int | None:
        """The pid of the running server, None when there is none."""
        return self.process.pid()

    def ensure_running(self) -> None:
        """Start the server unless it runs; wait until every service answers.

        Raises:
            click.ClickException: it ended, or a port is taken by something else.
        """
        if self.pid() and all(healthy(port) for port in PORTS.values()):
            click.echo("The services run already.")
            return
        self.stop()
        taken = [name for name, port in PORTS.items() if healthy(port)]
        if taken:
            raise click.ClickException(
                f"something else answers on the port of {', '.join(taken)}; stop it first."
            )
        command = [sys.executable, "-m", "trimaran", "serve", "all"]
        command += ["--config-dir", str(self.places.etc)]
        env = dict(
            os.environ,
            MAGNUM_SANDBOX_DIR=str(self.places.magnum_sandbox),
            # Each thread would get a malloc arena of its own: twice the memory.
            MALLOC_ARENA_MAX="2",
        )
        seconds = self.process.start(
            command, env, lambda: all(healthy(port) for port in PORTS.values())
        )
        click.echo(f"The services are ready after {seconds:.1f} s.")

    def stop(self) -> None:
        """Ask the server to drain and end; kill it when it does not."""
        if self.process.stop():
            click.echo("The services are stopped.")
