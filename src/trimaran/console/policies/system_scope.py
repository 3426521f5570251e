"""Whether a caller may act on the whole system, asked once per token and remembered.

Keystone tells it only by giving, or not giving, a token of that scope.
Upstream asks for one with every list of policies (spec/skyline.md 5.2).
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable

from cachetools import TTLCache

from trimaran.errors import TrimaranError, Unavailable
from trimaran.identity import Identity, NoEndpoint, RemoteError, Token

LOG = logging.getLogger(__name__)


class SystemScope:
    """Answers by token.

    Args:
        identity: Keystone.
        seconds: how long an answer is remembered; 0 asks every time.
        size: how many answers are remembered.
        clock: seconds.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        seconds: float,
        size: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._identity = identity
        self._seconds = seconds
        self._lock = threading.Lock()
        self._known: TTLCache[bytes, str] = TTLCache(max(size, 1), seconds, timer=clock)

    def of(self, token: Token, region: str) -> str:
        """Returns "all" or "".

        A refusal of any status is a no (F30).

        Args:
            token: the caller's.
            region: whose Keystone is asked.

        Raises:
            errors.Unavailable: Keystone does not answer at all; a "no" would
                hide the administrator's pages.
        """
        key = hashlib.sha256(token.id.encode("utf-8", "replace")).digest()
        if self._seconds:
            with self._lock:
                known = self._known.get(key)
            if known is not None:
                return known
        scope = self._ask(token, region)
        if self._seconds:
            with self._lock:
                self._known[key] = scope
        return scope

    def _ask(self, token: Token, region: str) -> str:
        try:
            return self._rescoped(token, region).system_scope
        except Unavailable as failure:
            # Old Keystones answer 500 to a scope that the user does not have.
            if isinstance(failure, RemoteError) and failure.remote_status == 500:
                return ""
            raise
        except TrimaranError as refusal:
            LOG.debug("no system scope for user %s: %s", token.user_id, refusal)
            return ""

    def _rescoped(self, token: Token, region: str) -> Token:
        try:
            return self._identity.rescope(token, system=True, region=region)
        except NoEndpoint:
            # The region has no Keystone of its own (F18).
            return self._identity.rescope(token, system=True)
