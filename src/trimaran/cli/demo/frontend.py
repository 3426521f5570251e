"""Where the console's front end comes from.

It is not a part of this project.  PyPI's wheel carries a bundle of 2022, which
is fetched once into the user's cache and held to its known digest;
``make console-ui`` builds the current sources beside it.  A directory that
``TRIMARAN_CONSOLE_UI`` names goes before both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import click

VERSION = "9.0.0"
PACKAGE = "skyline-console"
WHEEL_SHA256 = "468779c5e3331199afd25043817cda6d175b60a4a39ffde3e2687dd467aa160e"
INSIDE = "skyline_console/static/"
VARIABLE = "TRIMARAN_CONSOLE_UI"
FETCH_SECONDS = 300


def cache() -> Path:
    """Where front ends are kept: the user's cache (XDG base directory specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "trimaran" / "console-ui" / VERSION


def current() -> Path | None:
    """The build of the current sources; None when there is none.

    Raises:
        click.ClickException: the directory that the environment names holds no front end.
    """
    named = os.environ.get(VARIABLE)
    place = Path(named).absolute() if named else cache() / "built"
    if (place / "index.html").is_file():
        return place
    if named:
        raise click.ClickException(f"{VARIABLE}: {place} holds no index.html.")
    return None


def of_wheel() -> Path:
    """The bundle of PyPI's wheel, fetched when it is not in the cache.

    Raises:
        click.ClickException: it cannot be had, or is not what it was.
    """
    place = cache() / "wheel"
    if (place / "index.html").is_file():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        unpacked = _unpack(_fetch(Path(temporary)), Path(temporary) / "unpacked")
        try:
            unpacked.rename(place)
        except OSError:
            # Somebody else was faster.
            if not (place / "index.html").is_file():
                raise
    return place


def _fetch(place: Path) -> Path:
    pin = place / "pin.txt"
    pin.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
    click.echo(f"Fetching the console's front end, {PACKAGE} {VERSION}.")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:"]
    try:
        done = subprocess.run(
            [*command, "--dest", str(place), "--requirement", str(pin)],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise click.ClickException(
            f"{PACKAGE} could not be fetched within {FETCH_SECONDS} s."
        ) from None
    if done.returncode:
        raise click.ClickException(f"{PACKAGE} cannot be fetched:\n{done.stderr.strip()}")
    return next(place.glob("*.whl"))


def _unpack(wheel: Path, place: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE)]
        archive.extractall(place, names)
    return place / INSIDE.rstrip("/")


def find() -> Path:
    """The best front end there is: the current one, else the wheel's."""
    return current() or of_wheel()
