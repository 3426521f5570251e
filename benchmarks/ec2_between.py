"""What stands between an EC2 service and a real cloud: it counts, and helps ec2-api 17 along.

Each service of the catalog gets a listener of its own, and the addresses in all
answers are replaced by those, so that an EC2 service whose ``auth_url`` is ours
sends every call through here.  ec2-api 17 does not work with today's services
by itself (spec ec2.md 11): its ``ec2tokens`` carry no token, and Neutron refuses
to take the gateway from a subnet whose router port is there.  The first gets
the service user's token, the second is asked again without the gateway.  A
process of its own keeps its work out of the measured times of the others.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.cloud import ADMIN, CloudEnv, Person

SERVICE = Person("ec2api", "service")
#: Headers of one connection, which are not passed on.
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding"}
BODY = ("POST", "PUT", "PATCH")


class Passing:
    """What all listeners share.

    Args:
        cloud: the sandbox.
    """

    def __init__(self, cloud: CloudEnv) -> None:
        self.service = cloud.session(SERVICE)
        self.asked: list[str] = []
        self.lock = threading.Lock()
        access = cloud.session(ADMIN).auth.get_access(cloud.session(ADMIN))
        urls = [
            urlsplit(endpoint["url"])
            for entry in access.service_catalog.catalog
            for endpoint in entry["endpoints"]
            if entry["type"] not in ("ec2", "container-infra", "panel")
        ]
        self.places: dict[bytes, bytes] = {}
        for place in dict.fromkeys(
            [urlsplit(cloud.auth_url).netloc, *(url.netloc for url in urls)]
        ):
            listener = Listener(("127.0.0.1", 0), self._handler(place))
            threading.Thread(target=listener.serve_forever, daemon=True).start()
            here = f"127.0.0.1:{listener.server_address[1]}"
            self.places[place.encode()] = here.encode()
        self.auth_url = self.rewritten(cloud.auth_url.encode()).decode()

    def rewritten(self, text: bytes) -> bytes:
        """A text with our addresses in the place of the cloud's."""
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def told(self) -> list[str]:
        """The requests since the last time."""
        with self.lock:
            told, self.asked = self.asked, []
        return told

    def _handler(self, place: str) -> type[BaseHTTPRequestHandler]:
        passing = self

        class Handler(Pass):
            shared = passing
            there = place

        return Handler


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class Pass(BaseHTTPRequestHandler):
    """One connection of the EC2 service, with one of its own to the cloud."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    shared: Passing
    there: str
    backend: http.client.HTTPConnection | None = None

    def _pass(self) -> None:
        body = self._body()
        headers = {name: text for name, text in self.headers.items() if name.lower() not in HOP}
        path = urlsplit(self.path).path
        if re.search(r"/(ec2|s3)tokens$", path) and "X-Auth-Token" not in headers:
            headers["X-Auth-Token"] = str(self.shared.service.get_token())
        status, told, answer = self._ask(body, headers)
        if status == 409 and self.command == "PUT" and "/v2.0/subnets/" in path:
            asked = json.loads(body)
            if asked["subnet"].get("gateway_ip", "") is None:
                del asked["subnet"]["gateway_ip"]
                status, told, answer = self._ask(json.dumps(asked).encode(), headers)
        kind = next((text for name, text in told if name.lower() == "content-type"), "")
        if "json" in kind or "text" in kind:
            answer = self.shared.rewritten(answer)
        with self.shared.lock:
            self.shared.asked.append(f"{self.command} {self.path}")
        self.send_response_only(status)
        for name, text in told:
            if name.lower() not in HOP:
                self.send_header(name, self.shared.rewritten(text.encode()).decode())
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)
        self.wfile.flush()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        read = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            read += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return read

    def _ask(
        self, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        sent = body if body or self.command in BODY else None
        for again in (True, False):
            fresh = self.backend is None
            self.backend = self.backend or http.client.HTTPConnection(self.there, timeout=300)
            try:
                self.backend.request(self.command, self.path, sent, headers)
                answer = self.backend.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            except (ConnectionError, http.client.HTTPException):
                # An idle connection that the service has closed meanwhile.
                self.backend.close()
                self.backend = None
                if fresh or not again:
                    raise
        raise AssertionError

    def finish(self) -> None:
        super().finish()
        if self.backend is not None:
            self.backend.close()

    def log_message(self, *args: Any) -> None:
        pass

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _pass


def _run(state: Path, pipe: Any) -> None:
    passing = Passing(CloudEnv(state))
    pipe.send(passing.auth_url)
    while pipe.recv():
        pipe.send(passing.told())


@dataclass
class Between:
    """The running process.

    Attributes:
        auth_url: Keystone's, by way of it.
    """

    auth_url: str
    pipe: Any

    def told(self) -> list[str]:
        """The requests since the last time."""
        self.pipe.send(True)
        return list(self.pipe.recv())


@contextlib.contextmanager
def between(cloud: CloudEnv) -> Iterator[Between]:
    """Runs it in front of a cloud."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_run, args=(cloud.state, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Between(ours.recv(), ours)
    finally:
        process.terminate()
        process.join()
