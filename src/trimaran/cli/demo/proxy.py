"""Debian's nginx in front of the demo's console: the front end, the API and the cloud.

It runs as the user who started the demo and keeps its files below the demo's
directory, so the machine's own nginx, if there is one, is not touched.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import click

from trimaran.cli.demo.background import Background
from trimaran.cli.demo.process import answers
from trimaran.cli.demo.settings import Places

PORT = 9999
#: the API's readiness probe, by nginx' way
PROBE = "/api/openstack/skyline/api/v1/config"
LANGUAGE = "en"
GENERATE_SECONDS = 120


def program() -> str:
    """Debian's nginx.

    Raises:
        click.ClickException: it is not installed.
    """
    # A user's PATH has no sbin.
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not found:
        raise click.ClickException("nginx is not installed: apt-get install nginx-light")
    return found


class Proxy:
    """The background process nginx.

    Args:
        places: where its files are.
        port: where it listens on the loopback.
    """

    def __init__(self, places: Places, port: int = PORT) -> None:
        self.port = port
        self.etc = places.etc
        self.conf = places.nginx / "nginx.conf"
        self.log = places.log.parent / "nginx.log"
        self.process = Background("nginx", places.nginx / "process.json", self.log)

    @property
    def url(self) -> str:
        """Where a browser finds the console."""
        return f"http://127.0.0.1:{self.port}"

    def ensure_running(self, static: Path, api: int) -> None:
        """Write the configuration, and start nginx unless it runs with it already.

        Args:
            static: the front end.
            api: port of the console API.

        Raises:
            click.ClickException: the catalog cannot be read, nginx ended, or the
                port is taken by something else.
        """
        changed = self._configure(static, api)
        if self.process.pid() and answers(self.port, PROBE) and not changed:
            click.echo("The console's front end is served already.")
            return
        self.stop()
        if answers(self.port, "/"):
            raise click.ClickException(
                f"something else answers on port {self.port}, the console's; stop it first."
            )
        directives = "daemon off;"
        if os.geteuid() == 0:
            # Its workers would be another user, who may not look into our directories.
            directives += f" user {pwd.getpwuid(0).pw_name};"
        command = [program(), "-e", str(self.log), "-c", str(self.conf), "-g", directives]
        seconds = self.process.start(command, os.environ, lambda: answers(self.port, PROBE))
        click.echo(f"The console's front end is served after {seconds:.1f} s.")

    def _configure(self, static: Path, api: int) -> bool:
        """Writes the file; tells whether it is another one."""
        before = self.conf.read_text() if self.conf.exists() else ""
        command = [sys.executable, "-m", "trimaran.console.tools.nginx_generator"]
        command += ["--output-file", str(self.conf), "--static-path", str(static)]
        command += ["--listen-address", f"127.0.0.1:{self.port}"]
        command += ["--upstream", f"127.0.0.1:{api}", "--language", LANGUAGE]
        command += ["--run-dir", str(self.conf.parent), "--log-dir", str(self.log.parent)]
        done = subprocess.run(
            command,
            env={**os.environ, "OS_CONFIG_DIR": str(self.etc)},
            capture_output=True,
            text=True,
            timeout=GENERATE_SECONDS,
            check=False,
        )
        if done.returncode:
            raise click.ClickException(f"no configuration for nginx:\n{done.stderr.strip()}")
        changed = self.conf.read_text() != before
        if changed and before:
            # What is new in the cloud's catalog, in the generator's words.
            click.echo(done.stderr.strip() or "nginx gets another configuration.")
        return changed

    def stop(self) -> None:
        """End nginx."""
        if self.process.stop():
            click.echo("nginx is stopped.")
