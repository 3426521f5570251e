"""Nova's own metadata service in front of the sandbox's cloud, for tests of what is passed on."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import requests

from tests.support.ec2 import free_port
from trimaran.sandbox.places import LIB
from trimaran.sandbox.services import service_environment
from trimaran.sandbox.settings import HOST, Settings
from trimaran.sandbox.venv import Environment

#: The secret that Nova shares with Neutron's agent in a sandbox.
SECRET = "password"
PATIENCE = 120.0


@contextlib.contextmanager
def nova_metadata(state: Path, directory: Path) -> Iterator[int]:
    """Runs it beside a sandbox, whose own processes it leaves alone; yields its port.

    Args:
        state: the sandbox.
        directory: for its log.
    """
    settings, environment, port = Settings.load(state), Environment(), free_port()
    log = directory / "nova-metadata.log"
    command = [
        str(environment.python),
        str(LIB / "run_api.py"),
        "nova-metadata",
        HOST,
        str(port),
        "2",
        "--config-file",
        str(settings.config_file("nova")),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=settings.state,
            env=service_environment(settings, environment, "nova-metadata"),
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(requests.ConnectionError):
                if requests.get(f"http://{HOST}:{port}/", timeout=30).status_code == 200:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text(errors="replace")[-4000:])
            time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
