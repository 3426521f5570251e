"""A limit to failed logins, by user and by address; off unless the operator sets it.

Keystone's own lockout counts per user and locks the user out.  This one slows
the guesser instead: after so many failures within a minute, further tries are
429 without asking Keystone.  Each process counts for itself, which bounds the
rate all the same, and needs no write to the database per failure.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastapi import HTTPException

from trimaran.errors import TooManyRequests

WINDOW = 60.0
# Remembered users and addresses; beyond, those that failed longest ago are forgotten.
MOST = 10_000


class LoginGuard:
    """Counts failed logins.

    Args:
        allowed: failures within a minute for one user or address; 0 is no limit.
        clock: seconds.
    """

    def __init__(self, allowed: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowed = allowed
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    @contextmanager
    def attempt(self, user: str, address: str) -> Iterator[None]:
        """Surrounds a try; a 401 out of the block is a failure.

        Args:
            user: who is tried, with the domain.
            address: of the client, "" when it is not known.

        Raises:
            errors.TooManyRequests: too many failures lately.
        """
        keys = [("user", user)] + ([("address", address)] if address else [])
        if self._allowed:
            self._check(keys)
        try:
            yield
        except HTTPException as error:
            # The first half of two factors is no failure.
            if self._allowed and error.status_code == 401 and isinstance(error.detail, str):
                self._note(keys)
            raise

    def _check(self, keys: list[tuple[str, str]]) -> None:
        now = self._clock()
        with self._lock:
            waits = [self._wait(key, now) for key in keys]
        wait = max(waits)
        if wait > 0:
            raise TooManyRequests(
                "Too many failed logins. Please try again later.",
                headers={"Retry-After": str(int(wait) + 1)},
            )

    def _wait(self, key: tuple[str, str], now: float) -> float:
        failures = self._failures.get(key)
        if failures is None:
            return 0.0
        while failures and now - failures[0] >= WINDOW:
            failures.popleft()
        if not failures:
            del self._failures[key]
            return 0.0
        return failures[0] + WINDOW - now if len(failures) >= self._allowed else 0.0

    def _note(self, keys: list[tuple[str, str]]) -> None:
        now = self._clock()
        with self._lock:
            for key in keys:
                self._failures.setdefault(key, deque(maxlen=self._allowed)).append(now)
                self._failures.move_to_end(key)
            while len(self._failures) > MOST:
                self._failures.popitem(last=False)
