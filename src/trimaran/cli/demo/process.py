"""The one process of the demo: started in the background, found again by pid.

A pid alone may have been taken over by another program after a reboot; the
start time beside it tells the two apart.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import click

from trimaran.cli.demo.settings import Places

#: service: port; upstream's ports
PORTS = {"console": 9998, "ec2": 8788, "metadata": 8789, "s3": 3334, "magnum": 9511}
START_SECONDS = 60.0
STOP_SECONDS = 40.0


def _start_time(pid: int) -> str | None:
    """The kernel's start time of this process in clock ticks; None if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def healthy(port: int) -> bool:
    """Whether the service on this port of loopback answers its health check."""
    try:
        url = f"http://127.0.0.1:{port}/healthcheck"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


class Server:
    """The background process ``trimaran serve all``.

    Args:
        places: where its files are.
    """

    def __init__(self, places: Places) -> None:
        self.places = places

    def pid(self) -> int | None:
        """The pid of the running server, None when there is none."""
        try:
            known = json.loads(self.places.pid.read_text())
        except (OSError, ValueError):
            return None
        pid = int(known["pid"])
        return pid if _start_time(pid) == known["started"] else None

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
        begin = time.monotonic()
        process = self._start()
        while not all(healthy(port) for port in PORTS.values()):
            if process.poll() is not None:
                raise click.ClickException(
                    f"the services ended at their start; the last lines of {self.places.log}:\n"
                    + self._tail()
                )
            if time.monotonic() - begin > START_SECONDS:
                raise click.ClickException(
                    f"the services are not ready after {START_SECONDS:.0f} s; see {self.places.log}"
                )
            time.sleep(0.1)
        click.echo(f"The services are ready after {time.monotonic() - begin:.1f} s.")

    def _start(self) -> subprocess.Popen[bytes]:
        env = dict(os.environ)
        env.update(
            MAGNUM_SANDBOX_DIR=str(self.places.magnum_sandbox),
            # Each thread would get a malloc arena of its own: twice the memory.
            MALLOC_ARENA_MAX="2",
        )
        command = [
            sys.executable,
            "-m",
            "trimaran",
            "serve",
            "all",
            "--config-dir",
            str(self.places.etc),
        ]
        with self.places.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        record = {"pid": process.pid, "started": _start_time(process.pid)}
        self.places.pid.write_text(json.dumps(record))
        return process

    def _tail(self, lines: int = 15) -> str:
        text = self.places.log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """Ask the server to drain and end; kill it when it does not."""
        pid = self.pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + STOP_SECONDS
        while self.pid() is not None:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        self.places.pid.unlink(missing_ok=True)
        click.echo("The services are stopped.")
