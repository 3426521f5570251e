"""Gates in front of a cloud's services: what a console asks them is seen, and can be answered.

Keystone's catalog leads through the gates, so a service under test needs nothing but Keystone's
gate as its ``keystone_url``.  A gate asks the real service in any case, so the time of a call is
the service's; what it answers may then be replaced by rows that are made here.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_HOP = frozenset({"content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True)
class Call:
    """One call that passed."""

    service: str
    method: str
    path: str
    seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Played:
    """An answer that is not the service's."""

    document: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Play = Callable[[Call], Played | None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Gates:
    """A gate in front of each service.

    Args:
        services: base URLs by name; "keystone" must be among them.

    Attributes:
        calls: what has passed.
        play: may answer a call itself.
        urls: the gates' base URLs by name.
    """

    def __init__(self, services: Mapping[str, str]) -> None:
        self.calls: list[Call] = []
        self.play: Play = lambda call: None
        self.urls: dict[str, str] = {}
        self.places: dict[bytes, bytes] = {}
        self._servers: list[ThreadingHTTPServer] = []
        for name, url in services.items():
            place = urlsplit(url).netloc
            server = _Server(("127.0.0.1", 0), _handler(self, name, place))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            mine = f"127.0.0.1:{server.server_address[1]}"
            self._servers.append(server)
            self.places[f"//{place}".encode()] = f"//{mine}".encode()
            self.urls[name] = url.replace(place, mine)

    @property
    def auth_url(self) -> str:
        """Keystone's v3 URL."""
        return f"{self.urls['keystone']}/v3"

    def take(self) -> list[Call]:
        """Returns what has passed since the last time."""
        taken, self.calls = self.calls, []
        return taken

    def close(self) -> None:
        """Closes all."""
        for server in self._servers:
            server.shutdown()
            server.server_close()


def _handler(gates: Gates, name: str, place: str) -> type[BaseHTTPRequestHandler]:

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            """Carries one request to the service and its answer back."""
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            began = time.perf_counter()
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
            server = http.client.HTTPConnection(place, timeout=60)
            server.request(self.command, self.path, body, kept | {"Connection": "close"})
            answer = server.getresponse()
            data, status = answer.read(), answer.status
            server.close()
            if name == "keystone":
                for theirs, ours in gates.places.items():
                    data = data.replace(theirs, ours)
            fields = [pair for pair in answer.getheaders() if pair[0].lower() not in _HOP]
            played = gates.play(Call(name, self.command, self.path, headers=kept, body=body))
            if played is not None:
                data, status = json.dumps(played.document).encode(), played.status
                fields = [("Content-Type", "application/json"), *played.headers.items()]
            took = time.perf_counter() - began
            gates.calls.append(Call(name, self.command, self.path, took, kept, body))
            self.send_response_only(status)
            for key, value in fields:
                self.send_header(key, value)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    return Handler
