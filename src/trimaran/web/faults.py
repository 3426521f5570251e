"""Errors become answers in one place, by the hull's renderer.

What a handler raises on purpose is a ``TrimaranError`` and is rendered as it
is.  Anything else is our fault: it is logged with its traceback and the
request id, and the client gets the wire's internal error without a word about
the inside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimaran.errors import TrimaranError, Unavailable
from trimaran.web.context import request_id

LOG = logging.getLogger(__name__)

Render = Callable[[TrimaranError, Request], Response]


def respond(render: Render, error: TrimaranError, request: Request) -> Response:
    """Renders an error and adds its headers.

    Args:
        render: the hull's renderer.
        error: what is to be told.
        request: the request it is about.
    """
    if isinstance(error, Unavailable):
        LOG.warning("answering %d: %s is not available", error.status, error.service or "a part")
    response = render(error, request)
    for name, value in error.headers.items():
        response.headers[name] = value
    return response


class ErrorStage:
    """Renders what escapes from the application.

    Args:
        app: the next stage.
        render: the hull's renderer.
    """

    def __init__(self, app: ASGIApp, render: Render) -> None:
        self.app = app
        self.render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            LOG.debug("the client of %s went away", request_id())
        except TrimaranError as error:
            if started:
                raise
            await respond(self.render, error, Request(scope))(scope, receive, send)
        except Exception:
            LOG.exception("%s: unexpected error in %s", request_id(), scope["path"])
            if started:
                # The status is gone; only breaking the connection tells the client.
                raise
            internal = respond(self.render, TrimaranError(), Request(scope))
            await internal(scope, receive, send)
