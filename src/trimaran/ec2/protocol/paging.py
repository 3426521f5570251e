"""Pages of a Describe: the limits of spec 1.10 and tokens keyed on the last item shown.

A token names the last item of the page before, not an offset, so items that
come or go between two calls neither repeat nor hide others.  It is bound to
its action by a digest: it carries no project, and a forged one only picks
another starting point inside the caller's own items.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from trimaran.ec2.protocol.errors import EC2Error, invalid_combination, invalid_value

T = TypeVar("T")
Key = str | tuple[str, ...]

MINIMUM = 5
MAXIMUM = 1000
_DIGEST = 6
_LONGEST_TOKEN = 4096


class Page:
    """What part of a listing the caller asked for.  Make it before any backend is asked.

    Args:
        scope: the action's name; a token of one action is refused by another.
        request: the typed request with ``MaxResults`` and ``NextToken``, if any.
        ids: name of the request's id list that excludes ``MaxResults``
            (``InstanceIds``), or None where the action has no such rule.

    Raises:
        EC2Error: ``InvalidParameterValue`` for MaxResults below 5 (0 is "no
            limit"), ``InvalidParameterCombination``, ``InvalidNextToken``.
    """

    def __init__(self, scope: str, request: Mapping[str, Any], *, ids: str | None = None) -> None:
        self.scope = scope
        asked = request.get("MaxResults") or 0
        if asked < 0 or 0 < asked < MINIMUM:
            raise invalid_value(
                "MaxResults", asked, f"Expecting a value between {MINIMUM} and {MAXIMUM}."
            )
        if ids and asked and request.get(ids):
            raise invalid_combination(
                f"The parameter {ids} cannot be used with the parameter MaxResults"
            )
        self.limit: int | None = min(asked, MAXIMUM) or None
        token = request.get("NextToken")
        self.after: tuple[str, ...] | None = self._decode(token) if token else None

    def slice(self, items: Iterable[T], key: Callable[[T], Key]) -> tuple[list[T], str | None]:
        """One page of the items that passed the filters.

        Args:
            items: everything that matches, in any order.
            key: what items are sorted by; must tell any two of them apart.

        Returns:
            The page, sorted, and the token of the next one or None at the end.
        """
        keyed = sorted(((_tuple(key(item)), item) for item in items), key=lambda pair: pair[0])
        if self.after is not None:
            after = self.after
            keyed = [pair for pair in keyed if pair[0] > after]
        page = keyed if self.limit is None else keyed[: self.limit]
        token = self._encode(page[-1][0]) if len(page) < len(keyed) else None
        return [item for _, item in page], token

    def _digest(self, payload: bytes) -> bytes:
        return hashlib.sha256(self.scope.encode() + b"\0" + payload).digest()[:_DIGEST]

    def _encode(self, last: tuple[str, ...]) -> str:
        payload = "\0".join(last).encode()
        return base64.urlsafe_b64encode(self._digest(payload) + payload).decode()

    def _decode(self, token: str) -> tuple[str, ...]:
        try:
            if len(token) > _LONGEST_TOKEN:
                raise ValueError
            raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
            payload = raw[_DIGEST:]
            if not payload or raw[:_DIGEST] != self._digest(payload):
                raise ValueError
            return tuple(payload.decode().split("\0"))
        except (ValueError, binascii.Error):
            raise EC2Error("InvalidNextToken", "The specified NextToken is not valid.") from None


def _tuple(key: Key) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else key
