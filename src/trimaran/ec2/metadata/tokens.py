"""Session tokens of IMDSv2: made and checked without remembering them (spec ec2.md 6.5).

A token holds its end and a MAC over that and the server's id, under a key made
from the secret that all processes share with the agent, so that any process on
any host accepts what another gave out.  A token of one server is worth nothing
to another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

#: Seconds that a token may live at most.
LONGEST = 21600

_END = 6
_NONCE = 4
# With the MAC these are 42 bytes: 56 characters, as AWS's tokens have.
_LABEL = b"trimaran ec2 metadata session token"


class Tokens:
    """Makes and checks tokens.

    Args:
        secret: ``[metadata] metadata_proxy_shared_secret``.
        clock: seconds since 1970.
    """

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.new(secret.encode(), _LABEL, hashlib.sha256).digest()
        self._clock = clock

    def make(self, server_id: str, seconds: int) -> str:
        """A token for a server that ends after so many seconds."""
        end = int(self._clock()) + seconds
        head = end.to_bytes(_END, "big") + secrets.token_bytes(_NONCE)
        return base64.urlsafe_b64encode(head + self._mac(head, server_id)).decode()

    def accepts(self, token: str, server_id: str) -> bool:
        """Whether a token is this server's and has not ended."""
        try:
            raw = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            return False
        head, mac = raw[: _END + _NONCE], raw[_END + _NONCE :]
        if not hmac.compare_digest(mac, self._mac(head, server_id)):
            return False
        return int.from_bytes(head[:_END], "big") > self._clock()

    def _mac(self, head: bytes, server_id: str) -> bytes:
        return hmac.new(self._key, head + server_id.encode(), hashlib.sha256).digest()
