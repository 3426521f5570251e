"""An API server's outside for tests: HTTPS with client certificates, answers as a test says."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509 as certs
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from trimaran.magnum.certificates import x509
from trimaran.magnum.certificates.x509 import KeyPair, Rules

RULES = Rules(
    extensions=frozenset({"subjectAltName", "keyUsage", "extendedKeyUsage"}),
    key_usages=frozenset({"Digital Signature", "Key Encipherment"}),
)


def node(name: str, ready: str | None = "True") -> dict[str, Any]:
    """A node as the API lists it; None: without any condition."""
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


class Stub:
    """What the server answers; change it at will.

    Attributes:
        healthz: body of /healthz, or a function that answers by itself.
        status: of /healthz.
        nodes: what /api/v1/nodes lists.
        asked: what was asked for: (path, common name of the client).
    """

    def __init__(self) -> None:
        self.healthz: str | Callable[[Any], None] = "ok"
        self.status = 200
        self.nodes: Any = []
        self.asked: list[tuple[str, str]] = []
        self.connections = 0
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        peer = dict(item[0] for item in handler.connection.getpeercert()["subject"])  # type: ignore[attr-defined]
        self.asked.append((handler.path, peer["commonName"]))
        if handler.path == "/healthz":
            if callable(self.healthz):
                self.healthz(handler)
            else:
                send(handler, self.status, self.healthz.encode())
            return
        body = self.nodes if isinstance(self.nodes, dict) else self._page(handler.path)
        send(handler, 200, json.dumps(body).encode())

    def _page(self, path: str) -> dict[str, Any]:
        query = parse_qs(urlsplit(path).query)
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        rest = start + limit < len(self.nodes)
        return {
            "kind": "NodeList",
            "metadata": {"continue": str(start + limit)} if rest else {},
            "items": self.nodes[start : start + limit],
        }


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Sends a whole answer."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def server_files(folder: Path, authority: KeyPair, host: str = "127.0.0.1") -> tuple[Path, Path]:
    """Writes certificate and key of a server that an authority signed."""
    import ipaddress

    key = rsa.generate_private_key(65537, 2048)
    name = certs.Name([certs.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    alternative = certs.SubjectAlternativeName([certs.IPAddress(ipaddress.ip_address(host))])
    request = (
        certs.CertificateSigningRequestBuilder()
        .subject_name(name)
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = request.public_bytes(serialization.Encoding.PEM).decode()
    certificate, private = folder / "server.crt", folder / "server.key"
    certificate.write_text(x509.sign(pem, authority, RULES))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, private


@contextlib.contextmanager
def serving(
    folder: Path, authority: KeyPair, *, host: str = "127.0.0.1", trusts: KeyPair | None = None
) -> Iterator[Stub]:
    """Serves a stub.

    Args:
        folder: for certificate and key.
        authority: signs the server's certificate.
        host: that the certificate is for.
        trusts: signs the clients' certificates, by default the same.
    """
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                stub.answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            stub.connections += 1
            with (
                contextlib.suppress(OSError),
                context.wrap_socket(request, server_side=True) as secure,
            ):
                self.RequestHandlerClass(secure, client_address, self)

        def handle_error(self, request: Any, client_address: Any) -> None:
            return

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server_files(folder, authority, host))
    context.load_verify_locations(cadata=(trusts or authority).certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with Server(("127.0.0.1", 0), Handler) as server:
        stub.url = f"https://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield stub
        server.shutdown()
