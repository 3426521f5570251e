"""What the tools have in common: messages, files, ends."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path

import click

from trimaran.errors import ConfigError, TrimaranError

# What an operator can do something about; all else is a traceback.
FAILURES = (ConfigError, TrimaranError, OSError)


def log_to_stderr(*, debug: bool = False) -> None:
    """Sends our messages to stderr, so that stdout is the product alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    ours = logging.getLogger("trimaran")
    ours.handlers = [handler]
    ours.propagate = False
    ours.setLevel(logging.DEBUG if debug else logging.INFO)


def run(command: click.Command, name: str) -> None:
    """Runs a tool; what it cannot do is one sentence and exit 1, wrong usage exit 2.

    Args:
        command: the tool.
        name: as it was called.
    """
    try:
        command(prog_name=name)
    except FAILURES as error:
        click.echo(f"{name}: {error}", err=True)
        sys.exit(1)


def write(path: Path, text: str) -> None:
    """Writes a file as a whole: whoever reads it sees the old one or the new one.

    A file that is there keeps its permissions; a device or pipe is written to.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
