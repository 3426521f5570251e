"""Validated tokens, remembered for a short while.

The cache is bounded in number and in time, an entry never outlives its token,
and keys are digests, so that a memory dump of it opens nothing.  When many
requests arrive with the same unknown token, one of them asks Keystone and the
others take its answer.  Refusals are not remembered: a token that Keystone did
not know a second ago may be valid now.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from cachetools import TLRUCache

from trimaran.errors import Unauthenticated
from trimaran.identity.token import Token


class TokenCache:
    """Cache with single flight.

    Args:
        seconds: how long an answer is trusted; 0 remembers nothing.
        size: entries kept; the least recently used one goes first.
        timer: clock of the remembering, in seconds.
    """

    def __init__(
        self, seconds: float, size: int, *, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asking: dict[str, Future[Token]] = {}
        self._known: TLRUCache[str, Token] = TLRUCache(
            maxsize=size,
            ttu=lambda _key, token, now: now + min(self._seconds, token.expires_in()),
            timer=timer,
        )

    def get(self, token_id: str, ask: Callable[[], Token], *, fresh: bool = False) -> Token:
        """Returns the remembered token or asks for it.

        Args:
            token_id: the token's id.
            ask: asks Keystone; its exception goes to all who wait for the answer.
            fresh: do not use what is remembered or being asked.
        """
        key = _digest(token_id)
        if fresh:
            try:
                return self._remember(key, ask())
            except Unauthenticated:
                self.forget(token_id)
                raise
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.expires_in() > 0:
                return known
            waiting = self._asking.get(key)
            if waiting is None:
                answer = self._asking[key] = Future[Token]()
        if waiting is not None:
            return waiting.result()
        try:
            token = self._remember(key, ask(), answer)
        except BaseException as failure:
            self._done(key, answer)
            answer.set_exception(failure)
            raise
        self._done(key, answer)
        answer.set_result(token)
        return token

    def known(self, token_id: str) -> Token | None:
        """Returns the token if it is remembered and has not ended; never waits for Keystone."""
        with self._lock:
            token = self._known.get(_digest(token_id))
        return token if token is not None and token.expires_in() > 0 else None

    def forget(self, token_id: str) -> None:
        """Drops a token, also one that is being asked for right now."""
        key = _digest(token_id)
        with self._lock:
            self._known.pop(key, None)
            self._asking.pop(key, None)

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._known.clear()
            self._asking.clear()

    def __len__(self) -> int:
        with self._lock:
            self._known.expire()
            return len(self._known)

    def _remember(self, key: str, token: Token, answer: Future[Token] | None = None) -> Token:
        with self._lock:
            # After a forget() during the question, the answer is old news.
            if self._seconds > 0 and (answer is None or self._asking.get(key) is answer):
                self._known[key] = token
        return token

    def _done(self, key: str, answer: Future[Token]) -> None:
        with self._lock:
            if self._asking.get(key) is answer:
                del self._asking[key]


def _digest(token_id: str) -> str:
    return hashlib.sha256(token_id.encode("utf-8", "surrogateescape")).hexdigest()
