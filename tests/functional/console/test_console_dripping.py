"""A service that sends a byte now and then: no socket's time-out ever ends, the request's does."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from starlette.testclient import TestClient

from tests.support.console import cookie, settings
from trimaran.console import app as console
from trimaran.db import migrate
from trimaran.identity import budget, transport

OK = b"HTTP/1.1 200 OK\r\n"
STARTS = {
    "status": b"",
    "fields": OK + b"X-Slow: ",
    "body": OK + b"Content-Length: 100000\r\n\r\n",
    "body without a length": OK + b"Connection: close\r\n\r\n",
    "chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n",
}
# Of a block's time; what an answer may take that is cut in time.
TIME, GENEROUS = 0.5, 90.0


class Dripping:
    """A server that drips after the start it is given."""

    def __init__(self) -> None:
        self.start = b""
        self.ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._drip, args=(client,), daemon=True).start()

    def _drip(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.recv(65536)
            client.sendall(self.start)
            while not self.ended.wait(0.05):
                client.sendall(b"1")

    def close(self) -> None:
        self.ended.set()
        self._listener.close()


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    server = Dripping()
    yield server
    server.close()


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """The call's value; fails instead of waiting for ever."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(call).result(seconds)
    finally:
        pool.shutdown(wait=False)


@pytest.mark.parametrize("kind", STARTS)
def test_an_answer_that_drips_ends_with_its_block(dripping: Dripping, kind: str) -> None:
    dripping.start = STARTS[kind]
    session = transport.Transport(2)

    def ask() -> float:
        began = time.monotonic()
        with budget.within(TIME), pytest.raises(requests.ReadTimeout):
            session.get(dripping.url, timeout=budget.cut((5, 5)))
        return time.monotonic() - began

    assert within(GENEROUS, ask) >= TIME
    session.close()


def test_an_answer_in_time_is_not_touched(dripping: Dripping) -> None:
    dripping.start = OK + b"Content-Length: 4\r\n\r\n"
    session = transport.Transport(2)

    def ask() -> str:
        with budget.within(GENEROUS):
            return session.get(dripping.url, timeout=60).text

    assert within(GENEROUS, ask) == "1111"
    session.close()


@pytest.mark.parametrize("kind", ["fields", "body"])
def test_a_request_ends_although_its_services_drip(
    dripping: Dripping, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dripping.start = STARTS[kind]
    monkeypatch.setattr("trimaran.console.time_stage.PATIENCE", TIME)
    database = f"sqlite:///{tmp_path}/console.sqlite"
    migrate.upgrade(database, "console")
    app = console.build(settings(database, openstack={"keystone_url": f"{dripping.url}/v3/"}))
    parts = app.state.parts
    # Our own token is known, or its taking, which is for all, would have all the time there is.
    monkeypatch.setattr(parts.identity, "service_token", lambda: "service")
    monkeypatch.setattr(parts.identity, "endpoint", lambda region=None: f"{dripping.url}/v3")
    client = TestClient(app)
    headers = {"Cookie": f"session={cookie()}"}
    answer = within(GENEROUS, lambda: client.get("/api/v1/settings", headers=headers))
    assert answer.status_code == 503
    assert answer.json() == {"message": "The service is temporarily unavailable."}
    parts.db.dispose()


def test_prometheus_has_no_more_time_than_the_request(dripping: Dripping, tmp_path: Path) -> None:
    dripping.start = STARTS["body"]
    options = settings(
        f"sqlite:///{tmp_path}/x.sqlite", default={"prometheus_endpoint": dripping.url}
    )
    app = console.build(options)

    def ask() -> int:
        with budget.within(TIME):
            return int(app.state.parts.prometheus.ask("query", {"query": "up"}).status)

    assert within(GENEROUS, ask) == 0
    app.state.parts.prometheus.close()
    app.state.parts.db.dispose()
