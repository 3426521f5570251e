"""Keystone's Fernet and credential keys.

They are three files of 32 random bytes each, in URL-safe base64 (the Fernet
specification); writing them here saves two starts of keystone-manage.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

from trimaran.sandbox.places import write_file
from trimaran.sandbox.settings import Settings


def ensure(settings: Settings) -> None:
    """Make the key repositories that are not there.

    Key 0 is the staged one, the highest number is used to encrypt; credentials
    must stay readable, so a key that exists is never replaced.
    """
    for repository in ("fernet", "credential"):
        folder = directory(settings, repository)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for number in ("0", "1"):
            if not (folder / number).exists():
                key = base64.urlsafe_b64encode(os.urandom(32)).decode()
                write_file(folder / number, key, 0o600)


def directory(settings: Settings, repository: str) -> Path:
    """Where a key repository is."""
    return settings.path("data", "keystone", repository)
