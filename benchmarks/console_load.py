"""A load generator for one server on this machine: keep-alive connections, each asking on and on.

One asyncio loop over plain streams, no HTTP library: reading an answer costs it a fraction of
what making it costs the server, so it is not what is measured (``python console_load.py`` shows
what it does against a server that does nothing).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Load:
    """What a load has seen.

    Attributes:
        seconds: from the first request to the last answer.
        times: seconds of each answer that was a success.
        statuses: all answers by status.
    """

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def add(self, other: Load) -> None:
        """Takes another round in."""
        self.seconds += other.seconds
        self.times += other.times
        self.statuses += other.statuses

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.times) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Seconds that this share of the answers took at most."""
        ordered = sorted(self.times)
        return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else math.nan

    @property
    def failures(self) -> int:
        """Answers that were no success."""
        return sum(count for status, count in self.statuses.items() if status >= 400)


def request(
    method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """The bytes of one request."""
    fields = {"Host": "127.0.0.1", "Accept": "application/json", **(headers or {})}
    if body:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes
) -> tuple[int, bytes]:
    """Sends one request; returns status and body."""
    writer.write(sent)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    _, found, rest = head.partition(b"content-length:")
    length = int(rest.partition(b"\r\n")[0]) if found else 0
    return status, await reader.readexactly(length) if length else b""


async def _client(port: int, sent: bytes, until: float, pause: float, load: Load) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    try:
        while time.perf_counter() < until:
            began = time.perf_counter()
            status, _ = await ask(reader, writer, sent)
            load.statuses[status] += 1
            if status < 400:
                load.times.append(time.perf_counter() - began)
            if pause:
                await asyncio.sleep(pause)
    finally:
        writer.close()


async def drive(port: int, requests: list[bytes], seconds: float, *, pause: float = 0.0) -> Load:
    """One connection for each request, each repeating it.

    Args:
        port: of the server.
        requests: see ``request``.
        seconds: after which no request begins.
        pause: seconds between an answer and the next request.
    """
    load = Load()
    began = time.perf_counter()
    clients = [_client(port, sent, began + seconds, pause, load) for sent in requests]
    await asyncio.gather(*clients)
    load.seconds = time.perf_counter() - began
    return load


async def beside(
    port: int, background: list[bytes], asked: bytes, seconds: float
) -> tuple[Load, Load]:
    """The load of one client, with a pause of 10 ms, beside others; returns (its, theirs)."""
    others = asyncio.create_task(drive(port, background, seconds))
    own = await drive(port, [asked], seconds, pause=0.01)
    return own, await others


async def _idle(connections: int = 8, seconds: float = 3.0) -> Load:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            while await reader.readline() != b"\r\n":
                pass
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        return await drive(port, [request("GET", "/")] * connections, seconds)


if __name__ == "__main__":
    seen = asyncio.run(_idle())
    print(f"{seen.rate:.0f} answers a second, generator and an idle server in one process")
