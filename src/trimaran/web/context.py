"""The request id, and what follows a request into the OpenStack calls made for it.

The outermost stage: everything inside it, the access log included, can name
the request.  Our id is always made here; an id that the client sent becomes
the global request id of our calls (OpenStack's convention), never our own, so
that a client cannot make two requests look like one in the log.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimaran.config import logs
from trimaran.identity.outgoing import headers_for, outgoing_headers

CLIENT_ID_HEADER = "x-openstack-request-id"

# Scope keys of the stages.  Handlers use the functions below.
OPERATION = "trimaran.operation"


def request_id() -> str:
    """Returns the id of the request being handled, "" outside of one."""
    return logs.REQUEST_ID.get()


@contextmanager
def new_request_id() -> Iterator[str]:
    """Gives a request its id for the length of the block."""
    identifier = f"req-{uuid.uuid4()}"
    mark = logs.REQUEST_ID.set(identifier)
    try:
        yield identifier
    finally:
        logs.REQUEST_ID.reset(mark)


def name_operation(scope: Scope, name: str) -> None:
    """Names what a request does, for the access log and the metrics.

    Services whose path says nothing (EC2) call this once the action is known.

    Args:
        scope: the request's ASGI scope.
        name: from a closed set of names: it becomes a metric's label, so a
            client's free text must never get here.
    """
    scope[OPERATION] = name


class RequestIdStage:
    """Makes the id and sets the headers of outgoing calls.

    Args:
        app: the next stage.
        header: response header that carries the id; None sends none.
    """

    def __init__(self, app: ASGIApp, header: str | None) -> None:
        self.app = app
        self.header = header.lower().encode("ascii") if header else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with new_request_id() as identifier:
            await self._identified(identifier, scope, receive, send)

    async def _identified(
        self, identifier: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        client = scope.get("client")
        outgoing = {
            **headers_for(request_id=identifier, remote_address=client[0] if client else ""),
            # Left out unless it has the form of an id.
            **headers_for(request_id=Headers(scope=scope).get(CLIENT_ID_HEADER, "")),
        }
        header = self.header

        async def stamped(message: Message) -> None:
            if header is not None and message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (header, identifier.encode("ascii")),
                ]
            await send(message)

        calls = outgoing_headers.set(outgoing)
        try:
            await self.app(scope, receive, stamped)
        finally:
            outgoing_headers.reset(calls)
