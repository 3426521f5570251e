"""What a broker says: the few frames of AMQP 0-9-1 that we need, by hand.

Only an opened connection shows that a port is a broker, that guest may log in and that
the virtual host exists; only the consumers of a queue show that a daemon takes calls.
A client library would be a dependency for a hundred lines.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from trimaran.sandbox.settings import HOST

_FRAME_END = b"\xce"
# (class, method) numbers of the specification
_START, _START_OK, _TUNE, _TUNE_OK = (10, 10), (10, 11), (10, 30), (10, 31)
_OPEN, _OPEN_OK = (10, 40), (10, 41)
_CHANNEL_OPEN, _CHANNEL_OPEN_OK, _CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
_DECLARE, _DECLARE_OK = (50, 10), (50, 11)
_PASSIVE = 1
_ERRORS = (OSError, ValueError, struct.error)


def opens(port: int, vhost: str) -> bool:
    """Whether guest can open a connection to the virtual host of a broker on loopback."""
    try:
        with Connection(port, vhost):
            return True
    except _ERRORS:
        return False


def without_consumer(port: int, vhost: str, queues: Iterable[str]) -> set[str]:
    """The queues that do not exist, or that nobody takes messages from."""
    missing = set(queues)
    try:
        with Connection(port, vhost) as connection:
            for number, name in enumerate(sorted(missing), start=1):
                if connection.consumers(number, name):
                    missing.discard(name)
    except _ERRORS:
        pass
    return missing


class Connection:
    """An open connection.

    Raises:
        OSError, ValueError, struct.error: it is not one, or is refused.
    """

    def __init__(self, port: int, vhost: str, timeout: float = 5.0) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=timeout)
        try:
            self._socket.sendall(b"AMQP\x00\x00\x09\x01")
            self._expect(_START)
            self._send(0, _START_OK, start_ok("guest", "guest"))
            tune = self._expect(_TUNE)[:8]
            self._send(0, _TUNE_OK, tune)
            self._send(0, _OPEN, _short(vhost) + b"\x00\x00")
            self._expect(_OPEN_OK)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def consumers(self, channel: int, queue: str) -> int:
        """How many consumers a queue has, on a channel not used before; 0 without a queue."""
        self._send(channel, _CHANNEL_OPEN, b"\x00")
        self._expect(_CHANNEL_OPEN_OK)
        flags = bytes([_PASSIVE])
        self._send(channel, _DECLARE, b"\x00\x00" + _short(queue) + flags + b"\x00" * 4)
        method, arguments = self._receive()
        if method == _CHANNEL_CLOSE:
            return 0
        if method != _DECLARE_OK:
            raise ValueError(f"unexpected method {method}")
        return int(struct.unpack(">II", arguments[1 + arguments[0] :][:8])[1])

    def _send(self, channel: int, method: tuple[int, int], arguments: bytes) -> None:
        payload = struct.pack(">HH", *method) + arguments
        head = struct.pack(">BHI", 1, channel, len(payload))
        self._socket.sendall(head + payload + _FRAME_END)

    def _expect(self, method: tuple[int, int]) -> bytes:
        got, arguments = self._receive()
        if got != method:
            raise ValueError(f"method {got} instead of {method}")
        return arguments

    def _receive(self) -> tuple[tuple[int, int], bytes]:
        while True:
            kind, _, size = struct.unpack(">BHI", self._exactly(7))
            payload = self._exactly(size + 1)[:-1]
            if kind == 1:
                return struct.unpack(">HH", payload[:4]), payload[4:]

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ValueError("connection closed")
            data += part
        return data


def start_ok(user: str, password: str) -> bytes:
    """Arguments of connection.start-ok: no properties, PLAIN, en_US."""
    response = f"\0{user}\0{password}".encode()
    no_properties, size = struct.pack(">I", 0), struct.pack(">I", len(response))
    return no_properties + _short("PLAIN") + size + response + _short("en_US")


def _short(text: str) -> bytes:
    raw = text.encode()
    return bytes([len(raw)]) + raw
