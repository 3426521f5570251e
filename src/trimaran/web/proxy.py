"""Who the client is when a proxy stands in front.

Nothing that a client can write is believed unless the operator says that a
proxy overwrites it.  There are two such statements: one header that holds
exactly one address, and the ``X-Forwarded-*`` family.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send


def remote_address(
    connection: HTTPConnection, *, trust_forwarded: bool = False, header: str | None = None
) -> str:
    """Returns the client's address, "" when it is not known (UNIX sockets).

    Args:
        connection: the request.
        trust_forwarded: take the first address of ``X-Forwarded-For``.
        header: take this header if it occurs once, is not empty and has no
            comma (spec/skyline.md 1.1); it goes first.
    """
    return _address(connection.scope, trust_forwarded, header)


def _address(scope: Scope, trust_forwarded: bool, header: str | None) -> str:
    headers = Headers(scope=scope)
    if header:
        values = headers.getlist(header)
        if len(values) == 1 and values[0].strip() and "," not in values[0]:
            return values[0].strip()
    if trust_forwarded:
        first = headers.get("x-forwarded-for", "").split(",")[0].strip()
        if first:
            return first
    client = scope.get("client")
    return str(client[0]) if client else ""


class ProxyStage:
    """Puts the client's address, and with ``X-Forwarded-*`` also scheme, host and prefix, right.

    Args:
        app: the next stage.
        trust_forwarded: believe ``X-Forwarded-{For,Proto,Host,Prefix}``
            (oslo.middleware's http_proxy_to_wsgi reads the same).
        header: believe this header's single address.
    """

    def __init__(self, app: ASGIApp, trust_forwarded: bool, header: str | None) -> None:
        self.app = app
        self.trust_forwarded = trust_forwarded
        self.header = header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "http":
            address = _address(scope, self.trust_forwarded, self.header)
            if address:
                port = scope["client"][1] if scope.get("client") else 0
                scope["client"] = (address, port)
            if self.trust_forwarded:
                self._base(scope)
        await self.app(scope, receive, send)

    def _base(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        scheme = headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
        if scheme in {"http", "https"}:
            scope["scheme"] = scheme
        host = headers.get("x-forwarded-host", "").split(",")[0].strip()
        if host:
            others = [item for item in scope["headers"] if item[0].lower() != b"host"]
            scope["headers"] = [*others, (b"host", host.encode("latin-1"))]
        prefix = headers.get("x-forwarded-prefix", "").strip().rstrip("/")
        if prefix.startswith("/"):
            scope["root_path"] = prefix + scope.get("root_path", "")
            scope["path"] = prefix + scope["path"]
