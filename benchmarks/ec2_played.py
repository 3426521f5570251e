"""How a cloud of prepared answers speaks: what `ec2_cloud` and `ec2_metadata` have in common."""

from __future__ import annotations

import json
import threading
import time
from abc import abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

from benchmarks.ec2_describe import token_body


class Played(BaseHTTPRequestHandler):
    """Plays Keystone and the services; ``GET /control`` tells what was asked since the last time.

    Attributes:
        asked: requests to the services.
        lock: guards them.
    """

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []
    lock = threading.Lock()

    @abstractmethod
    def found(self, path: str, query: str) -> tuple[bytes | None, float]:
        """The answer to a question, and the seconds that it takes."""

    @property
    def base(self) -> str:
        """The cloud's URL."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"  # type: ignore[index]

    def do_GET(self) -> None:
        """Answers a question."""
        url = urlsplit(self.path)
        path = url.path.rstrip("/")
        if path == "/control":
            with self.lock:
                told = json.dumps(self.asked).encode()
                self.asked.clear()
            self.send(200, told)
            return
        known = versions(self.base, path)
        if known is not None:
            self.send(200, json.dumps(known).encode())
            return
        body, seconds = self.found(path, url.query)
        self.note(path if body else f"404 {path}")
        time.sleep(seconds)
        self.send(200 if body else 404, body or b'{"itemNotFound": {"message": "no"}}')

    def note(self, asked: str) -> None:
        """Counts a question."""
        with self.lock:
            self.asked.append(asked)

    def token(self) -> bytes:
        """A token whose catalog is this cloud."""
        body = token_body(self.base)
        rows = body["token"]["catalog"]
        place = {**rows[0]["endpoints"][0], "url": self.base}
        rows.append({"type": "identity", "endpoints": [place]})
        for entry in rows:
            [public] = entry["endpoints"]
            entry["id"] = entry["name"] = entry["type"]
            entry["endpoints"] = [
                {**public, "id": kind, "interface": kind}
                for kind in ("public", "internal", "admin")
            ]
        return json.dumps(body).encode()

    def send(self, status: int, body: bytes) -> None:
        """Sends an answer."""
        # One packet: Nagle's algorithm would add 40 ms to two.
        head = (
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
            f"X-Subject-Token: a-token\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.wfile.write(head.encode() + body)

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


class Server(ThreadingHTTPServer):
    """A server of a free port for one of them."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, handler: type[Played]) -> None:
        super().__init__(("127.0.0.1", 0), handler)


def versions(base: str, path: str) -> dict[str, Any] | None:
    """The documents that clients look for before they ask."""
    if path == "/v3":
        links = [{"rel": "self", "href": f"{base}/v3/"}]
        return {"version": {"id": "v3.14", "status": "stable", "links": links}}
    if path in ("/nova", "/nova/v2.1"):
        one = {
            "id": "v2.1",
            "status": "CURRENT",
            "version": "2.96",
            "min_version": "2.1",
            "links": [{"rel": "self", "href": f"{base}/nova/v2.1/"}],
        }
        return {"versions": [one]} if path == "/nova" else {"version": one}
    if path == "/glance":
        links = [{"rel": "self", "href": f"{base}/glance/v2/"}]
        return {"versions": [{"id": "v2.9", "status": "CURRENT", "links": links}]}
    return None
