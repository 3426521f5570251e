"""The access log: one line a request, written when the answer is complete.

Only the path is written, never the query: signatures and tokens travel there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Container

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimaran.web.context import OPERATION

LOG = logging.getLogger("trimaran.access")

AGENT_LENGTH = 200


class AccessLogStage:
    """Writes the line.

    Args:
        app: the next stage.
        quiet: paths whose successes are logged at DEBUG only (health checks
            and scrapes come every few seconds).
    """

    def __init__(self, app: ASGIApp, quiet: Container[str]) -> None:
        self.app = app
        self.quiet = quiet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0
        length = 0

        async def counted(message: Message) -> None:
            nonlocal status, length
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                length += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            level = logging.DEBUG if scope["path"] in self.quiet and status < 400 else logging.INFO
            if LOG.isEnabledFor(level):
                LOG.log(level, "%s", _line(scope, status, length, time.perf_counter() - started))


def _line(scope: Scope, status: int, length: int, seconds: float) -> str:
    client = scope.get("client")
    # raw_path is percent-encoded: a client cannot write a second line.
    path = scope.get("raw_path", b"").decode("latin-1") or "/"
    agent = Headers(scope=scope).get("user-agent", "-")[:AGENT_LENGTH]
    return (
        f'{client[0] if client else "-"} "{scope["method"]} {path} '
        f'HTTP/{scope.get("http_version", "1.1")}" status: {status} len: {length} '
        f"time: {seconds:.4f} op: {scope.get(OPERATION, '-')} agent: {agent!r}"
    )
