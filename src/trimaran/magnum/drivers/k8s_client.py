"""Reads a cluster's Kubernetes API, which is not to be trusted.

Whoever owns a cluster decides what its API server answers, and one conductor
asks thousands of them.  So the whole visit has a deadline that a dripping
server cannot stretch, answers have a size, redirects and proxies are not
followed, and the client's private key is never in clear outside of this
process: the standard library's TLS takes it encrypted, from memory.  (The
`kubernetes` client wants key files, follows redirects and reads answers
whole.)
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from trimaran.magnum.certificates.x509 import KeyPair

#: seconds to connect, and for each answer to go on
CONNECT = 5.0
READ = 10.0
#: seconds for one visit in all
DEADLINE = 30.0
#: bytes of one answer
LARGEST = 16 * 1024 * 1024
_PIECE = 65536
_WORDS = 200


class NoAnswer(Exception):
    """The API server gave no answer that can be used; the text is for the cluster's owner."""


def client_context(authority: str, client: KeyPair) -> ssl.SSLContext:
    """Makes the TLS side of a client that a cluster knows.

    Args:
        authority: PEM of the cluster's CA, the only one that is trusted.
        client: certificate and key of the client.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority)
    # A file in memory, since the function takes nothing but a path; the key in it is encrypted.
    descriptor = os.memfd_create("client")
    try:
        with open(descriptor, "w", closefd=False) as handle:
            handle.write(f"{client.certificate}\n{client.private_key}\n")
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=client.passphrase)
    finally:
        os.close(descriptor)
    return context


class ClusterAPI:
    """One visit to an API server: a few GET requests on one connection.

    Args:
        url: of the API server.
        tls: the client's side; not used for http.
        connect: seconds.
        read: seconds that the server may be silent.
        deadline: seconds for all of the visit.
    """

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None,
        *,
        connect: float = CONNECT,
        read: float = READ,
        deadline: float = DEADLINE,
    ) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme != "http"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix = parts.path.rstrip("/")
        self._tls = tls
        self._connect = connect
        self._read = read
        self._deadline = deadline
        self._socket: socket.socket | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._late = threading.Event()
        self._watch = threading.Timer(deadline, self._over)
        self._watch.daemon = True

    def __enter__(self) -> ClusterAPI:
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.cancel()
        if self._connection is not None:
            self._connection.close()
        if self._socket is not None:
            self._socket.close()

    def text(self, path: str, *, largest: int = _PIECE) -> str:
        """Returns an answer of status 200.

        Args:
            path: below the server's URL, with its query.
            largest: bytes at most.

        Raises:
            NoAnswer: there is none, or another.
        """
        try:
            status, body = self._get(path, largest)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            if self._late.is_set():
                raise NoAnswer(f"No answer within {self._deadline:g} s.") from problem
            raise NoAnswer(_said(problem)) from problem
        text = body.decode(errors="replace")
        if status != http.client.OK:
            raise NoAnswer(f"HTTP {status}: {_message(text)}")
        return text

    def json(self, path: str) -> Any:
        """Returns an answer of status 200 that is JSON.

        Raises:
            NoAnswer: there is none, or another.
        """
        text = self.text(path, largest=LARGEST)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise NoAnswer("The answer is no JSON.") from problem

    def _get(self, path: str, largest: int) -> tuple[int, bytes]:
        connection = self._connected()
        connection.request("GET", self._prefix + path, headers={"Accept": "application/json, */*"})
        with connection.getresponse() as response:
            pieces, size = [], 0
            while piece := response.read1(_PIECE):
                size += len(piece)
                if size > largest:
                    raise ValueError(f"The answer is larger than {largest} bytes.")
                pieces.append(piece)
        if self._late.is_set():
            raise TimeoutError
        return response.status, b"".join(pieces)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is not None and self._connection.sock is not None:
            return self._connection
        if self._late.is_set():
            raise TimeoutError
        made = http.client.HTTPConnection(self._host, self._port)
        # Kept where the watch finds it in every stage, the handshake included.
        self._socket = socket.create_connection((self._host, self._port), self._connect)
        if self._secure and self._tls is not None:
            self._socket = self._tls.wrap_socket(
                self._socket, server_hostname=self._host, do_handshake_on_connect=False
            )
            self._socket.do_handshake()
        elif self._secure:
            raise ValueError("The cluster has no certificate to speak TLS with.")
        self._socket.settimeout(self._read)
        made.sock = self._socket
        self._connection = made
        return made

    def _over(self) -> None:
        self._late.set()
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


def _said(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"The certificate of the API is not accepted: {problem.verify_message}."
    if isinstance(problem, TimeoutError):
        return "The API does not answer."
    return str(problem)[:_WORDS] or type(problem).__name__


def _message(text: str) -> str:
    """What a Kubernetes Status says, or the beginning of any other text."""
    with contextlib.suppress(ValueError, RecursionError):
        said = json.loads(text)
        if isinstance(said, dict) and isinstance(said.get("message"), str):
            text = said["message"]
    return " ".join(text.split())[:_WORDS]
