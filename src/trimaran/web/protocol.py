"""HTTP/1.1 as uvicorn speaks it, with our answers to what cannot be parsed.

The parser is llhttp, Node's, in C: a parser in Python took a fifth of a small
request's time.  uvicorn answers a broken request head with one line of plain
text and reads a head of any length.  Here the application's renderer is asked,
so that a client gets its own wire's error even then.  A head of up to
``HEAD_ROOM`` beyond the limit is read whole: the limit stage then refuses it in
peace, where cutting the connection while the client is still sending would lose
the answer.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trimaran.errors import BadRequest, TrimaranError
from trimaran.web.limits import HeadersTooLarge

HEAD_ROOM = 2 * 1024 * 1024
# Seconds for which a process that stops waits for the first request of a connection
# that it has taken: the client may have sent it already.
FIRST_REQUEST = 2.0


class Protocol(HttpToolsProtocol):
    """One connection; :func:`limited` makes the class for a service."""

    #: bytes of a request's head after which it is refused unread
    head_limit = HEAD_ROOM

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Bytes of a head that has not ended, and whether we are in one.
        self._head = 0
        self._in_head = True
        self._leaving = False

    def data_received(self, data: bytes) -> None:
        """Takes what the client sent."""
        self._head += len(data)
        super().data_received(data)
        if not self._in_head:
            self._head = 0
        elif self._head > self.head_limit and not self.transport.is_closing():
            self._refuse(HeadersTooLarge())

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._in_head = False
        super().on_headers_complete()
        if self._leaving and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """The request has ended; what comes next is another one's head."""
        self._in_head = True
        self._head = 0
        super().on_message_complete()

    def shutdown(self) -> None:
        """The process stops: what a client has asked is answered, then the connection closes.

        uvicorn closes a connection without a request at once.  One that was taken a
        moment ago was meant for a request, and nobody else will answer it.
        """
        if self.cycle is None and not self._leaving:
            self._leaving = True
            self.loop.call_later(FIRST_REQUEST, super().shutdown)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answers a request that cannot be parsed, in the service's format, and closes."""
        self._refuse(BadRequest(), msg)

    def _refuse(self, error: TrimaranError, plain: str = "") -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            # Nothing may be written into the middle of another answer.
            self.transport.close()
            return
        response = self._rendered(error)
        if response is None:
            super().send_400_response(plain)
            return
        body = bytes(response.body)
        headers = [
            (name, value)
            for name, value in response.raw_headers
            if name.lower() not in {b"connection", b"content-length"}
        ]
        headers += [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        phrase = HTTPStatus(response.status_code).phrase.encode("ascii")
        head = b"HTTP/1.1 %d %b\r\n" % (response.status_code, phrase)
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"%b%b\r\n%b" % (head, lines, body))
        self.transport.close()

    def _rendered(self, error: TrimaranError) -> Response | None:
        state = getattr(self.app, "state", None)
        refuse = getattr(state, "refuse_unread", None)
        if refuse is None:
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
        response = refuse(error, Request(scope))
        return response if isinstance(response, Response) else None


def limited(max_header: int) -> type[Protocol]:
    """Returns the protocol for a service.

    Args:
        max_header: bytes of a request's head that the limit stage permits.
    """
    return type("LimitedProtocol", (Protocol,), {"head_limit": max_header + HEAD_ROOM})
