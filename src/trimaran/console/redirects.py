"""Redirects that survive a proxy.

Starlette sends a path with one slash too many to the absolute URL that it
believes in, which knows nothing of the prefix and the scheme of the proxy in
front (spec/skyline.md F46).  A relative reference (RFC 3986 section 4.2) is
right behind any number of them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RelativeRedirectStage:
    """Rewrites the Location of slash redirects.

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

        async def rewriting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 307:
                headers = MutableHeaders(scope=message)
                location = urlsplit(headers.get("location", ""))
                if location.netloc and location.path.rstrip("/") == scope["path"].rstrip("/"):
                    name = location.path.rstrip("/").rsplit("/", 1)[-1]
                    up = "../" if scope["path"].endswith("/") else ""
                    slash = "/" if location.path.endswith("/") else ""
                    query = f"?{location.query}" if location.query else ""
                    headers["location"] = f"{up}{name}{slash}{query}"
            await send(message)

        await self.app(scope, receive, rewriting)
