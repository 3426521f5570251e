"""The URL forms that lead to the same resource.

``/clusters``, ``/v1/clusters`` and ``/v1/clusters/`` are one resource, as with
upstream.  The path is rewritten before routing, so that routes are written
once; this stage does no I/O.  Spec section 1.1.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send


class OnePath:
    """Rewrites a request's path to the form that the routes have.

    Args:
        app: the next stage.
        untouched: paths outside of the versioned API.
    """

    def __init__(self, app: ASGIApp, untouched: Collection[str]) -> None:
        self.app = app
        self.untouched = frozenset(untouched)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "http":
            # A proxy's prefix stands in front of the path, and stays there.
            prefix = scope.get("root_path", "")
            path = scope["path"].removeprefix(prefix)
            scope["path"] = prefix + self.normal(path)
        await self.app(scope, receive, send)

    def normal(self, path: str) -> str:
        """The path as the routes write it."""
        path = path.rstrip("/") or "/"
        if path in self.untouched or path == "/v1" or path.startswith("/v1/"):
            return path
        return f"/v1{path}"
