"""The sandbox cloud of the demo: brought up and down by its own command.

A process of its own, because the sandbox is a tool beside the services: its
progress is shown as it comes, and its locks end with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def state_directory() -> Path:
    """Where the sandbox lives: $TRIMARAN_SANDBOX or ./.sandbox."""
    return Path(os.environ.get("TRIMARAN_SANDBOX", ".sandbox")).absolute()


def _sandbox(*words: str) -> None:
    command = [sys.executable, "-m", "trimaran.sandbox", *words, "--state", str(state_directory())]
    done = subprocess.run(command, check=False)
    if done.returncode:
        # The sandbox has said why.
        raise SystemExit(done.returncode)


def up() -> dict[str, Any]:
    """Bring the sandbox up; what it says of itself (``sandbox.json``)."""
    _sandbox("up")
    described: dict[str, Any] = json.loads((state_directory() / "sandbox.json").read_text())
    return described


def install(*packages: str) -> None:
    """Install Debian packages (``PACKAGE:PROGRAM``) whose programs are missing."""
    _sandbox("install", *packages)


def down() -> None:
    """Stop the sandbox; its data stays."""
    _sandbox("down")
