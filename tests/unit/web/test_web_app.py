"""The stages around every hull, in their order."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI, Request
from prometheus_client import REGISTRY
from starlette.middleware import Middleware
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.web import make
from trimaran import errors, web

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make()) as client:
        yield client


def test_each_answer_has_an_id_of_its_own(client: TestClient) -> None:
    first = client.get("/who")
    second = client.get("/who")
    ids = [answer.headers["x-openstack-request-id"] for answer in (first, second)]
    assert ids == [first.json()["id"], second.json()["id"]]
    assert ids[0] != ids[1]
    assert all(REQUEST_ID.fullmatch(item) for item in ids)
    assert web.request_id() == ""


def test_the_clients_id_goes_out_with_our_calls_but_is_not_ours(client: TestClient) -> None:
    theirs = "req-00000000-1111-2222-3333-444444444444"
    answer = client.get("/who", headers={"X-Openstack-Request-Id": theirs})
    assert answer.json()["id"] != theirs
    assert answer.json()["out"]["X-OpenStack-Request-ID"] == theirs
    for bad in ("", "x", "req-\tx", "req-" + "a" * 100):
        answer = client.get("/who", headers={"X-Openstack-Request-Id": bad})
        assert answer.json()["out"]["X-OpenStack-Request-ID"] == answer.json()["id"]


def test_the_header_can_be_left_out() -> None:
    with TestClient(make(request_id_header=None)) as client:
        assert "x-openstack-request-id" not in client.get("/who").headers


def test_errors_are_the_hulls_own(client: TestClient) -> None:
    answer = client.get("/known")
    assert (answer.status_code, answer.text) == (409, "wire:Conflict:taken")
    assert answer.headers["retry-after"] == "7"
    assert client.get("/gone").text.startswith("wire:Unavailable:")


def test_an_unexpected_error_is_logged_whole_and_shown_without_the_inside(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="trimaran.web"):
        answer = client.get("/boom")
    assert (answer.status_code, answer.text) == (500, "wire:TrimaranError:Internal error.")
    identifier = answer.headers["x-openstack-request-id"]
    assert identifier in caplog.text
    assert "ValueError: inner secret" in caplog.text


def test_an_error_in_the_hulls_own_stage_is_rendered_too() -> None:
    class Broken:
        def __init__(self, app: ASGIApp) -> None:
            self.app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] == "/who":
                raise errors.Unauthenticated("no")
            await self.app(scope, receive, send)

    with TestClient(make(stages=[Middleware(Broken)])) as client:
        assert client.get("/who").text == "wire:Unauthenticated:no"
        assert client.get("/known").status_code == 409


def test_an_answer_that_breaks_half_way_breaks_the_connection(client: TestClient) -> None:
    def half() -> Iterator[bytes]:
        yield b"first"
        raise ValueError("inner")

    app: Any = client.app
    app.add_api_route("/half", lambda: StreamingResponse(half()), methods=["GET"])
    with pytest.raises(ValueError, match="inner"):
        client.get("/half")


@pytest.mark.parametrize("size", [4001, 1_000_000])
def test_headers_beyond_the_limit_are_431(client: TestClient, size: int) -> None:
    answer = client.get("/who", headers={"X-Big": "x" * size})
    assert (answer.status_code, answer.text.split(":")[1]) == (431, "HeadersTooLarge")
    # Refusals have an id and a line in the log like everything else.
    assert "x-openstack-request-id" in answer.headers


def test_a_request_line_beyond_the_limit_is_414(client: TestClient) -> None:
    assert client.get("/who?" + "x" * 4001).status_code == 414
    assert client.get("/" + "x" * 4001).status_code == 414


def test_a_declared_body_beyond_the_limit_is_413_unread(client: TestClient) -> None:
    answer = client.post("/echo", content=b"x" * 1001)
    assert (answer.status_code, answer.text.split(":")[1]) == (413, "TooLarge")
    assert client.post("/echo", json={"a": "x" * 900}).status_code == 200


def test_a_streamed_body_is_counted(client: TestClient) -> None:
    parts = [b'{"a": "', *[b"x" * 100] * 12, b'"}']
    answer = client.post("/echo", content=iter(parts), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.text.split(":")[1]) == (413, "TooLarge")
    fits = [b'{"a": "', *[b"x" * 100] * 9, b'"}']
    answer = client.post("/echo", content=iter(fits), headers={"Content-Type": "application/json"})
    assert answer.json() == {"a": "x" * 900}


@pytest.mark.parametrize("declared", ["-1", "1e3", "१२", "0x10"])
def test_a_content_length_that_is_no_number_is_400(declared: str) -> None:
    with TestClient(make()) as client:
        answer = client.post("/echo", headers={"Content-Length": declared.encode()})
    assert answer.status_code == 400


def test_uploads_may_be_let_through() -> None:
    with TestClient(make(unlimited_bodies=("/echo",))) as client:
        assert client.post("/echo", json={"a": "x" * 5000}).status_code == 200
        assert client.post("/other", content=b"x" * 5000).status_code == 413


def test_addresses_are_believed_only_when_the_operator_says_so() -> None:
    headers = {"X-Forwarded-For": "9.9.9.9, 10.0.0.1", "X-Real-IP": "8.8.8.8"}
    with TestClient(make(), client=("127.0.0.1", 1)) as client:
        assert client.get("/who", headers=headers).json()["address"] == "127.0.0.1"
    with TestClient(make(trust_forwarded=True)) as client:
        answer = client.get("/who", headers=headers).json()
        assert answer["address"] == "9.9.9.9"
        assert answer["out"]["Forwarded"].startswith("for=9.9.9.9;")
    with TestClient(make(address_header="X-Real-IP")) as client:
        assert client.get("/who", headers=headers).json()["address"] == "8.8.8.8"


@pytest.mark.parametrize("values", [["8.8.8.8, 1.1.1.1"], ["8.8.8.8", "1.1.1.1"], [" "], []])
def test_an_address_header_must_hold_one_address_once(values: list[str]) -> None:
    with TestClient(make(address_header="X-Real-IP"), client=("127.0.0.1", 1)) as client:
        headers = [("X-Real-IP", value) for value in values]
        assert client.get("/who", headers=headers).json()["address"] == "127.0.0.1"


def test_scheme_host_and_prefix_follow_a_trusted_proxy() -> None:
    headers = {
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "cloud.example:8443",
        "X-Forwarded-Prefix": "/magnum",
    }
    with TestClient(make(trust_forwarded=True)) as client:
        url = client.get("/who", headers=headers).json()["url"]
        assert url == "https://cloud.example:8443/magnum/who"
    with TestClient(make()) as client:
        assert client.get("/who", headers=headers).json()["url"] == "http://testserver/who"


def test_the_access_log_is_one_line_without_the_query(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="trimaran.access"):
        client.get(
            "/known%0Aforged?Signature=s3cret", headers={"User-Agent": "a'gent\u00e9".encode()}
        )
        client.get("/healthcheck")
    (record,) = [record for record in caplog.records if record.name == "trimaran.access"]
    line = record.getMessage()
    assert '"GET /known%0Aforged HTTP/1.1" status: 404' in line
    assert re.search(r"time: \d+\.\d{4} ", line)
    assert "s3cret" not in line
    assert "\n" not in line


def test_requests_are_counted_by_route_and_not_by_path(client: TestClient) -> None:
    def count(operation: str, status: str) -> float:
        labels = {"service": "test", "method": "GET", "operation": operation, "status": status}
        return REGISTRY.get_sample_value("trimaran_http_requests_total", labels) or 0.0

    before = count("/known", "409"), count("none", "404")
    client.get("/known")
    client.get("/no-such-path-1")
    client.get("/no-such-path-2")
    assert (count("/known", "409"), count("none", "404")) == (before[0] + 1, before[1] + 2)
    text = client.get("/metrics").text
    assert 'trimaran_http_requests_total{method="GET",operation="/known"' in text
    assert "no-such-path" not in text


def test_a_hull_names_the_operation(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    def named(request: Request) -> str:
        web.name_operation(request.scope, "DescribeThings")
        return "x"

    app: Any = client.app
    app.add_api_route("/named", named, methods=["GET"])
    with caplog.at_level(logging.INFO, logger="trimaran.access"):
        client.get("/named")
    assert "op: DescribeThings" in caplog.text
    assert 'operation="DescribeThings"' in client.get("/metrics").text


def test_a_catch_all_route_does_not_hide_health_and_metrics() -> None:
    app = make()
    app.add_api_route("/{path:path}", lambda: "caught", methods=["GET", "POST"])
    with TestClient(app) as client:
        assert client.get("/healthcheck").text == "OK"
        assert b"# HELP" in client.get("/metrics").content
        assert client.get("/healthcheck/x").json() == "caught"
        # Only GET and HEAD are the health check's.
        assert client.post("/healthcheck").json() == "caught"


def test_parts_are_started_in_order_and_stopped_in_order_whatever_happens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[tuple[str, bool]] = []

    def note(name: str) -> Any:
        def step() -> None:
            seen.append((name, threading.current_thread() is threading.main_thread()))
            if name == "stop-1":
                raise RuntimeError("stuck")

        return step

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        seen.append(("enter", False))
        yield
        seen.append(("leave", False))

    app = make(
        start=[note("start-1"), note("start-2")],
        stop=[note("stop-1"), note("stop-2")],
        lifespan=lifespan,
    )
    with TestClient(app):
        assert [name for name, _ in seen] == ["start-1", "start-2", "enter"]
    names = [name for name, _ in seen]
    assert names == ["start-1", "start-2", "enter", "leave", "stop-1", "stop-2"]
    assert not any(main for _, main in seen)
    assert "a part did not stop cleanly" in caplog.text
