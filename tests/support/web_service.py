"""A service for the server's tests, as a process: ``python -m tests.support.web_service``.

Its behaviour comes from files in the directory given, so that a test can hold
a request until it wants it to end, and can change the configuration.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from tests.support.web import make
from trimaran.config import logs
from trimaran.config.common import defaults
from trimaran.errors import ConfigError
from trimaran.web import protocol, server


def build(place: Path) -> FastAPI:
    """Builds the application; reads ``config`` once, as a daemon reads its file."""
    if (place / "broken").exists():
        raise ConfigError("the.conf: [x] y must be z.")
    config = (place / "config").read_text()

    def note(event: str) -> Any:
        def write() -> None:
            with (place / "events").open("a") as stream:
                stream.write(f"{event} {os.getpid()}\n")

        return write

    app = make(
        own=defaults(max_body=1000, max_header=4000, threads=4),
        start=[note("start")],
        stop=[note("stop")],
    )

    @app.get("/config")
    def config_now() -> dict[str, Any]:
        return {"config": config, "pid": os.getpid()}

    @app.get("/hold")
    def hold() -> str:
        note("held")()
        until = time.monotonic() + 120
        while not (place / "release").exists() and time.monotonic() < until:
            time.sleep(0.02)
        return "released"

    return app


def main(mode: str, place: Path, port: int, workers: int) -> None:
    """Serves."""
    logs.setup_stderr()
    own = defaults(max_body=1000, max_header=4000, threads=4, shutdown_timeout=60)
    if (place / "patient").exists():
        protocol.FIRST_REQUEST = 60.0
    ssl = None
    if (place / "cert.pem").exists():
        ssl = {"certfile": str(place / "cert.pem"), "keyfile": str(place / "key.pem")}
    if mode == "many":
        events = place / "events"

        def note(event: str) -> Any:
            def write() -> None:
                with events.open("a") as stream:
                    stream.write(f"{event} {os.getpid()}\n")

            return write

        server.serve_many(
            [(build(place), "127.0.0.1", port), (build(place), "127.0.0.1", port + 1)],
            own,
            on_start=[note("on_start")],
            on_stop=[note("on_stop_1"), note("on_stop_2")],
        )
        return
    server.run(
        lambda: build(place),
        host="127.0.0.1",
        port=port,
        workers=workers,
        own=own,
        name="web-service",
        ssl=ssl,
        uds=str(place / "socket") if mode == "unix" else None,
    )


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    except ConfigError as error:
        sys.exit(str(error))
