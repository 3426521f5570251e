"""HTTP/1.1 as uvicorn speaks it, with our answers to what cannot be parsed.

uvicorn answers a broken or oversized request head with one line of plain
text.  Here the application's renderer is asked, so that a client gets its own
wire's error even then.  A head of up to ``HEAD_ROOM`` beyond the limit is read
whole: the limit stage then refuses it in peace, where cutting the connection
while the client is still sending would lose the answer.
"""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import Any

import h11
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from trimaran.errors import BadRequest, TrimaranError
from trimaran.web.limits import HeadersTooLarge

HEAD_ROOM = 2 * 1024 * 1024


class Protocol(H11Protocol):
    """One connection."""

    def send_400_response(self, msg: str) -> None:
        """Answers a request that h11 refused, in the service's format, and closes."""
        hint = getattr(sys.exc_info()[1], "error_status_hint", 400)
        error: TrimaranError = HeadersTooLarge() if hint == 431 else BadRequest()
        response = self._rendered(error)
        if response is None or self.conn.our_state is not h11.IDLE:
            super().send_400_response(msg)
            return
        body = bytes(response.body)
        headers = [
            (name, value)
            for name, value in response.raw_headers
            if name.lower() not in {b"connection", b"content-length"}
        ]
        headers += [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        head = h11.Response(
            status_code=response.status_code,
            headers=headers,
            reason=HTTPStatus(response.status_code).phrase.encode("ascii"),
        )
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _rendered(self, error: TrimaranError) -> Response | None:
        state = getattr(self.app, "state", None)
        render = getattr(state, "render_error", None)
        if render is None:
            return None
        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": self.scheme or "http",
            "server": self.server,
            "client": self.client,
            "path": "/",
            "raw_path": b"/",
            "root_path": "",
            "query_string": b"",
            "headers": [],
            "app": self.app,
        }
        response = render(error, Request(scope))
        return response if isinstance(response, Response) else None
