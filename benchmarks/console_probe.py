"""Serves a console with a task on its event loop that notes how late the loop wakes it.

    python console_probe.py skyline.yaml PORT            # ours, one worker
    python console_probe.py idle PORT                    # nothing but the probe
    gunicorn -k uvicorn.workers.UvicornWorker console_probe:upstream   # skyline-apiserver

``GET /bench/stall`` answers the longest delay in milliseconds since the last question.  What it
measures is all that keeps the loop from turning: work on the loop, threads that hold the
interpreter, and the machine, whose part the idle one shows.  Nothing else of the service is
changed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATH = "/bench/stall"
EVERY = 0.005

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Probe:
    """An ASGI application with the probe around it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._longest = 0.0
        self._task: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handles one request, or the lifespan."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        body = json.dumps({"longest_ms": self._longest * 1000}).encode()
        self._longest = 0.0
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _watch(self) -> None:
        while True:
            due = time.perf_counter() + EVERY
            await asyncio.sleep(EVERY)
            self._longest = max(self._longest, time.perf_counter() - due)


def _ours(path: str, port: int) -> None:
    from trimaran.config import common, logs
    from trimaran.config import console as options
    from trimaran.console import app
    from trimaran.web import server

    settings = options.load(path)
    logs.setup(settings, "console")
    server.run(
        lambda: Probe(app.build(options.load(path))),
        host="127.0.0.1",
        port=port,
        workers=1,
        own=common.own(settings),
        name="console",
    )


async def _idle(port: int) -> None:
    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        """An application without a route."""

    probe = Probe(nothing)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                lines = [b"HTTP/1.1 200 OK", *(b": ".join(pair) for pair in message["headers"])]
                writer.write(b"\r\n".join([*lines, b"connection: close", b"", b""]))
            else:
                writer.write(message["body"])

        await probe({"type": "http", "path": PATH}, None, send)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port) as server:
        await server.serve_forever()


def __getattr__(name: str) -> Any:
    # Only gunicorn asks, in an environment that has upstream and not us.
    if name == "upstream":
        from skyline_apiserver.main import app  # type: ignore[import-not-found]

        return Probe(app)
    raise AttributeError(name)


if __name__ == "__main__":
    if sys.argv[1] == "idle":
        asyncio.run(_idle(int(sys.argv[2])))
    else:
        _ours(sys.argv[1], int(sys.argv[2]))
