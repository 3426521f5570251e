"""Places outside of a state directory, and how files are written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

# what runs in the services' environment, and the pins of that environment
LIB = Path(__file__).resolve().parent / "lib"


def cache_root() -> Path:
    """The per-user cache directory (XDG base directory specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "trimaran" / "sandbox"


def pins_digest() -> str:
    """What the cached environment and schemas are keyed by: the pins' content."""
    return hashlib.sha256((LIB / "requirements.txt").read_bytes()).hexdigest()[:16]


def write_file(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file whole; the mode is set before anything is in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "w") as handle:
        handle.write(text)
    temporary.replace(path)
