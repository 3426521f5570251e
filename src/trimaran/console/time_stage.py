"""How long a request may wait for OpenStack, all its calls together.

A login is four questions to Keystone, one after the other, and each has a
time-out of its own.  The limit is less than the minute after which nginx gives
up, so that the front end gets our error, which says who was slow, and not 504.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from trimaran.identity import budget

# Seconds.
PATIENCE = 50.0


class TimeStage:
    """Limits the waiting of every request.

    Args:
        app: the next stage.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with budget.within(PATIENCE):
            await self.app(scope, receive, send)
