"""What a user has in Keystone beside his token: projects and a default one, remembered shortly.

The front end asks for its profile with every page that is loaded, and only these
two of its members would need a question each time.  They are kept as long as the
token's validation is, ``trimaran.token_cache_seconds``, and with that option at 0
they are asked for each time, as upstream does.  A login and a switch of the
project always bring them anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import TTLCache

from trimaran.console.sessions import token_key

# Projects that are remembered, of all users together.
MOST = 50_000
_KEPT = ("id", "name", "enabled", "domain_id", "description")


@dataclass(frozen=True)
class Belongings:
    """A user's.

    Attributes:
        default_project_id: as Keystone has it, even when it cannot be used.
        projects: Keystone's rows, disabled ones included.
    """

    default_project_id: str | None
    projects: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, user: Mapping[str, Any], projects: Sequence[Mapping[str, Any]]) -> Belongings:
        """Keeps what a profile shows of Keystone's rows."""
        rows = tuple({name: row.get(name) for name in _KEPT if name in row} for row in projects)
        return cls(user.get("default_project_id"), rows)


class Memory:
    """Belongings by token.

    Args:
        seconds: how long they are remembered; 0 remembers nothing.
        most: projects that are kept.
        clock: seconds.
    """

    def __init__(
        self,
        seconds: float,
        *,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._known: TTLCache[str, Belongings] = TTLCache(
            most, seconds, timer=clock, getsizeof=_size
        )

    def of(self, token_id: str) -> Belongings | None:
        """Returns what is remembered for a token."""
        with self._lock:
            return self._known.get(token_key(token_id))

    def keep(self, token_id: str, found: Belongings) -> None:
        """Remembers, unless it is too much."""
        if self._seconds and _size(found) <= self._most:
            with self._lock:
                self._known[token_key(token_id)] = found

    def forget(self, token_id: str) -> None:
        """Drops what belongs to a token."""
        with self._lock:
            self._known.pop(token_key(token_id), None)


def _size(found: Belongings) -> int:
    return len(found.projects) + 1
