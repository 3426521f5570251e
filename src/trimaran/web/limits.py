"""Bounds on what a client may send, before anything of it is parsed.

The declared length is refused at once; a body without one is counted while
it streams.  A refused body is still read and dropped by the server, because
closing a connection on a client that is sending loses our answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimaran.errors import BadRequest, TooLarge, TrimaranError

# Renders an error as the wire's own answer and sends it.
Refuse = Callable[[TrimaranError, Scope, Receive, Send], Awaitable[None]]


class HeadersTooLarge(TooLarge):
    """The header fields are beyond the limit (431, RFC 6585 section 5)."""

    status: ClassVar[int] = 431
    default: ClassVar[str] = "The request's headers are too large."


class UriTooLong(TooLarge):
    """The request line is beyond the limit (414)."""

    status: ClassVar[int] = 414
    default: ClassVar[str] = "The request's URI is too long."


class LimitStage:
    """Refuses what is too large.

    Args:
        app: the next stage.
        refuse: answers with an error in the service's format.
        max_header: bytes of request line and header fields together.
        max_body: bytes of the body; 0 means no limit.
        unlimited: path prefixes whose handlers stream bodies and bound them
            themselves (uploads).
    """

    def __init__(
        self,
        app: ASGIApp,
        refuse: Refuse,
        max_header: int,
        max_body: int,
        unlimited: tuple[str, ...] = (),
    ) -> None:
        self.app = app
        self.refuse = refuse
        self.max_header = max_header
        self.max_body = max_body
        self.unlimited = unlimited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        fault = self._fault(scope)
        if fault is not None:
            await self.refuse(fault, scope, receive, send)
            return
        if not self.max_body or scope["path"].startswith(self.unlimited or ("\0",)):
            await self.app(scope, receive, send)
            return
        await self._counting(scope, receive, send)

    def _fault(self, scope: Scope) -> TrimaranError | None:
        line = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        if line > self.max_header:
            return UriTooLong()
        fields = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if line + fields > self.max_header:
            return HeadersTooLarge()
        declared = Headers(scope=scope).get("content-length")
        if declared is None:
            return None
        if not (declared.isascii() and declared.isdigit()):
            return BadRequest("The Content-Length header is not a number.")
        unlimited = bool(self.unlimited) and scope["path"].startswith(self.unlimited)
        if self.max_body and not unlimited and int(declared) > self.max_body:
            return TooLarge()
        return None

    async def _counting(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = 0
        started = False
        refused = False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self.max_body:
                    raise TooLarge
            return message

        async def checked(message: Message) -> None:
            # Frameworks turn what happens while a body is read into answers
            # of their own; the truth is known here only.
            nonlocal started, refused
            if received > self.max_body and not started:
                if not refused:
                    refused = True
                    await self.refuse(TooLarge(), scope, receive, send)
                return
            started = True
            await send(message)

        await self.app(scope, counted, checked)
