"""The files by which tests watch the sandbox driver (one directory for all conductors)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

VARIABLE = "MAGNUM_SANDBOX_DIR"


def directory() -> Path | None:
    """Returns the directory that the environment names; without one there is no sandbox driver."""
    value = os.environ.get(VARIABLE)
    return Path(value) if value else None


def _home() -> Path:
    home = directory()
    if home is None:
        raise RuntimeError(f"the sandbox driver needs {VARIABLE}")
    home.mkdir(parents=True, exist_ok=True)
    return home


def _append(name: str, **record: Any) -> None:
    line = json.dumps({"t": round(time.time(), 3), "pid": os.getpid(), **record}) + "\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = os.open(_home() / name, flags, 0o644)
    try:
        # One write of one line: appends of several processes do not mix.
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def event(name: str, cluster_uuid: str, **more: Any) -> None:
    """Notes a call of the conductor."""
    _append("events.log", event=name, cluster=cluster_uuid, **more)


def poll(cluster_uuid: str, status: str | None) -> None:
    """Notes a status poll."""
    _append("polls.log", cluster=cluster_uuid, status=status)


def _state(name: str) -> Path:
    folder = _home() / "state"
    folder.mkdir(exist_ok=True)
    return folder / name


def write(name: str, text: str) -> None:
    """Keeps a word of state."""
    target = _state(name)
    partial = target.with_name(f"{name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(target)


def read(name: str) -> str | None:
    """Returns a word of state, or None."""
    try:
        return _state(name).read_text()
    except FileNotFoundError:
        return None


def forget(name: str) -> None:
    """Drops a word of state."""
    _state(name).unlink(missing_ok=True)


def released() -> bool:
    """Whether tests are cleaning up: every poll then finishes its operation."""
    return _state("release").exists()
