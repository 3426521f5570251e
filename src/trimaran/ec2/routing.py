"""The route that the EC2 daemons need and Starlette does not have: everything.

Any path, newlines included, and any method belong to one endpoint; only the
exact routes registered before it, health and metrics, come first.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send


class Everything(BaseRoute):
    """Matches whatever no route before it did.

    Args:
        endpoint: an ASGI application.
    """

    def __init__(self, endpoint: ASGIApp) -> None:
        self.endpoint = endpoint

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Everything over HTTP is a full match."""
        return (Match.FULL, {}) if scope["type"] == "http" else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request over."""
        await self.endpoint(scope, receive, send)
