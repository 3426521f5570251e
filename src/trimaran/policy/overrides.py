"""Operators' override files, read again when they change.

A look at the file's metadata at most once a second, not once a rule.  A file
that cannot be used is reported once per change and changes nothing: an editor
that saves half a file must not open or close an API.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from trimaran.policy.compiler import InvalidCheck, parse

LOG = logging.getLogger(__name__)

# What a file looked like when it was read: path, time of change, size, inode.
_Look = tuple[tuple[str, int, int, int], ...]


class Overrides:
    """The rules in a file and in directories of files.

    Args:
        service: for the log.
        file: path, or None.
        directories: read after the file, each one's files in the order of
            their names; a later rule replaces an earlier one.
        interval: seconds between two looks.
    """

    def __init__(
        self,
        service: str,
        file: str | None,
        directories: Sequence[str] = (),
        *,
        interval: float = 1.0,
    ) -> None:
        self._service = service
        self._file = Path(file) if file else None
        self._directories = [Path(each) for each in directories]
        self._interval = interval
        self._lock = threading.Lock()
        self._next = 0.0
        self._look: _Look = ()
        self._rules: dict[str, Any] = {}

    @property
    def rules(self) -> dict[str, Any]:
        """The last good rules: name to oslo.policy's tree."""
        return self._rules

    def refresh(self) -> bool:
        """Reads the files again if they changed.

        Returns:
            True when ``rules`` are other ones than before.
        """
        if (not self._file and not self._directories) or time.monotonic() < self._next:
            return False
        with self._lock:
            if time.monotonic() < self._next:
                return False
            self._next = time.monotonic() + self._interval
            paths = self._paths()
            look = tuple(_look_at(path) for path in paths)
            if look == self._look:
                return False
            self._look = look
            try:
                rules: dict[str, Any] = {}
                for path in paths:
                    rules.update(_read(path))
            except (OSError, ValueError) as failure:
                LOG.warning(
                    "policy of %s: the override is not used, the rules before it stay: %s",
                    self._service,
                    failure,
                )
                return False
            LOG.info("policy of %s: %d overrides from %s", self._service, len(rules), paths)
            self._rules = rules
            return True

    def _paths(self) -> list[Path]:
        """The files that are there; one that cannot be looked at counts as being there."""
        paths = [self._file] if self._file and os.path.lexists(self._file) else []
        for directory in self._directories:
            try:
                names = sorted(os.listdir(directory))
            except FileNotFoundError:
                continue
            except OSError:
                paths.append(directory)
                continue
            found = (directory / name for name in names if not name.startswith("."))
            paths.extend(path for path in found if not path.is_dir())
        return paths


def _look_at(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except OSError as failure:
        return (str(path), -1, failure.errno or -1, -1)
    return (str(path), status.st_mtime_ns, status.st_size, status.st_ino)


def _read(path: Path) -> dict[str, Any]:
    """Reads one file of rules (YAML, of which JSON is a part)."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as failure:
        raise ValueError(f"{path} is not YAML: {failure}") from failure
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ValueError(f"{path} is not a list of rules (name: check)")
    rules = {}
    for name, check in document.items():
        if not isinstance(name, str) or not isinstance(check, str | list | None):
            raise ValueError(f"{path}: the rule {name!r} is not a name with a check")
        try:
            rules[name] = parse(check or "")
        except InvalidCheck as failure:
            raise ValueError(f"{path}: rule {name}: {failure}") from failure
    return rules
