"""Nova's own metadata service in front of the sandbox's cloud, for tests of what is passed on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.support.ports import free_port
from tests.support.served import answers, served
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
    with served(
        command,
        directory / "nova-metadata.log",
        lambda: answers(f"http://{HOST}:{port}/", 200),
        patience=PATIENCE,
        cwd=settings.state,
        env=service_environment(settings, environment, "nova-metadata"),
    ):
        yield port
