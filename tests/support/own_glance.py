"""A Glance of the test's own on the sandbox's images, which may fetch from this machine.

The sandbox's keeps Glance's defaults, which refuse loopback addresses to its
method ``web-download``.  What it does in this process is the real thing.
"""

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

PATIENCE = 120.0
_IMPORT = """
[import_filtering_opts]
allowed_hosts = [{host}]
allowed_ports = []
"""


@contextlib.contextmanager
def own_glance(state: Path, directory: Path) -> Iterator[str]:
    """Runs it beside a sandbox, with its database and its store; yields its URL.

    Args:
        state: the sandbox.
        directory: for its configuration and its log.
    """
    settings, environment, port = Settings.load(state), Environment(), free_port()
    home = directory / "glance"
    home.mkdir()
    (home / "glance-api.conf").symlink_to(settings.config_file("glance"))
    (home / "glance-image-import.conf").write_text(_IMPORT.format(host=HOST))
    url = f"http://{HOST}:{port}"
    command = [str(environment.python), str(LIB / "run_api.py"), "glance", HOST, str(port), "3"]
    variables = service_environment(settings, environment, "glance")
    with served(
        command,
        home / "log",
        lambda: answers(f"{url}/versions", 200, 300),
        patience=PATIENCE,
        cwd=settings.state,
        env={**variables, "OS_GLANCE_CONFIG_DIR": str(home)},
    ):
        yield url
