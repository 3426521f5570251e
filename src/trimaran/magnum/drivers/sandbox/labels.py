"""The labels by which a test steers the sandbox driver.

A cluster without any of them is made of real servers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

PREFIX = "sandbox_"


class Labels:
    """The steering labels of one cluster.

    Args:
        labels: all labels of the cluster.
    """

    def __init__(self, labels: Mapping[str, str] | None) -> None:
        self._labels = {
            name: value for name, value in (labels or {}).items() if name.startswith(PREFIX)
        }

    def __bool__(self) -> bool:
        return bool(self._labels)

    def text(self, name: str) -> str | None:
        """Returns a label's value, or None."""
        return self._labels.get(PREFIX + name)

    def words(self, name: str) -> list[str]:
        """Returns the comma-separated words of a label."""
        return [word.strip() for word in (self.text(name) or "").split(",") if word.strip()]

    def number(self, name: str, default: float) -> float:
        """Returns a label's number; the default when it is absent or none."""
        try:
            return float(self.text(name) or default)
        except ValueError:
            return default

    def obey(self, operation: str) -> None:
        """Sleeps and fails as the labels ask at the beginning of a call.

        Args:
            operation: ``create``, ``nodegroup-update``…

        Raises:
            RuntimeError: ``sandbox_fail`` names the operation.
        """
        for word in self.words("sleep"):
            which, _, seconds = word.rpartition(":")
            if which in ("", operation):
                time.sleep(_seconds(seconds))
        if operation in self.words("fail"):
            raise RuntimeError(f"sandbox: {operation} refused")


def _seconds(text: Any) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0
