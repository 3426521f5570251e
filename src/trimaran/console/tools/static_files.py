"""Where the front end's files are (spec/skyline.md 6.2)."""

from __future__ import annotations

import importlib
import site
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from trimaran.errors import ConfigError

PACKAGE = "skyline_console"
# Distributions' packages and upstream's own image.
ELSEWHERE = (
    "/usr/local/lib/python3*/dist-packages",
    "/usr/lib/python3*/dist-packages",
    "/usr/lib/python3*/site-packages",
    "/opt/skyline_apiserver",
)


def find() -> Path:
    """Finds the front end.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        package = importlib.import_module(PACKAGE)
    except ImportError:
        pass
    else:
        return Path(package.static_path)
    for place in _places():
        candidate = place / PACKAGE / "static"
        if (candidate / "index.html").is_file():
            return candidate
    raise ConfigError(
        f"The front end is not found: install {PACKAGE.replace('_', '-')}, or name its directory "
        "with --static-path."
    )


def _places() -> Iterator[Path]:
    yield Path(sysconfig.get_path("purelib"))
    yield Path(site.getusersitepackages())
    for pattern in ELSEWHERE:
        yield from sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True)
