"""A value that is asked for when somebody needs it.

A guest's first question waits for Nova and Neutron once; what only a few paths
show (the key's text, subnets, names of groups) is asked for by the first of
those, so that no question waits for two rounds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """One value.

    Args:
        ask: finds it, and may take its time; a failure is raised and not kept.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._found: list[T] = []

    @property
    def known(self) -> bool:
        """Whether ``get`` would answer at once."""
        return bool(self._found)

    def get(self) -> T:
        """The value; threads that come together ask once."""
        if not self._found:
            with self._lock:
                if not self._found:
                    self._found.append(self._ask())
        return self._found[0]
