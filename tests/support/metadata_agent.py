"""Neutron's metadata agent as guests meet it: a proxy that says, signed, who asks."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests

#: What agents of today pass on of a guest's headers (Neutron's ``metadata`` proxy).
_PASSED_ON = ("x-aws-ec2-metadata-token", "x-aws-ec2-metadata-token-ttl-seconds")


def agents_headers(
    server_id: str, project_id: str, secret: str, address: str = "10.0.0.77"
) -> dict[str, str]:
    """The headers of a guest's request."""
    signature = hmac.new(secret.encode(), server_id.encode(), hashlib.sha256).hexdigest()
    return {
        "X-Instance-ID": server_id,
        "X-Tenant-ID": project_id,
        "X-Instance-ID-Signature": signature,
        "X-Forwarded-For": address,
    }


class Agent:
    """A running proxy.

    Attributes:
        url: where the guest finds its metadata.
        answers: (method, path, status) of each answer so far.
    """

    def __init__(self, service: str, headers: Mapping[str, str]) -> None:
        self.answers: list[tuple[str, str, int]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                passed = {n: v for n, v in self.headers.items() if n.lower() in _PASSED_ON}
                with requests.Session() as session:
                    session.trust_env = False
                    found = session.request(
                        self.command,
                        service + self.path,
                        headers={**passed, **headers},
                        data=body or None,
                        timeout=120,
                    )
                outer.answers.append((self.command, self.path, found.status_code))
                self.send_response(found.status_code)
                for name in ("Content-Type", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"):
                    if name in found.headers:
                        self.send_header(name, found.headers[name])
                self.send_header("Content-Length", str(len(found.content)))
                self.end_headers()
                self.wfile.write(found.content)

            do_GET = do_PUT = do_POST = answer

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def agent(service: str, headers: Mapping[str, str]) -> Iterator[Agent]:
    """Runs an agent for one guest.

    Args:
        service: URL of the metadata service.
        headers: of `agents_headers`.
    """
    made = Agent(service, headers)
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join(30)
