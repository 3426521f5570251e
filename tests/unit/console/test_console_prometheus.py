"""Prometheus from the wire's side (spec/skyline.md 1.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
import requests_mock
from starlette.testclient import TestClient

Person = Callable[..., TestClient]

BASE = "http://prometheus.test/base/api/v1"
WHERE = {"prometheus_endpoint": "http://prometheus.test/base/"}


def series(project: str | None, **more: Any) -> dict[str, Any]:
    metric = {"__name__": "up"} | ({"project_id": project} if project else {})
    return {"metric": metric, **(more or {"value": [1.5, "1"]})}


def vector(*result: Any, kind: str = "vector", **more: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": list(result)}, **more}


def asked(adapter: requests_mock.Mocker, name: str = "query") -> dict[str, list[str]]:
    """The parameters that Prometheus got last; requests_mock has them in lower case."""
    found: dict[str, list[str]] = adapter.request_history[-1].qs
    return found


def test_a_member_gets_his_own_series(person: Person, adapter: requests_mock.Mocker) -> None:
    client = person(default=WHERE)
    adapter.get(f"{BASE}/query", json=vector(series("p1"), series("p2"), series(None)))
    answer = client.get("/api/v1/query?query=up&time=5&timeout=1s&other=x")
    assert answer.json() == vector(series("p1"))
    assert asked(adapter) == {
        "query": ['up { project_id="p1" }'],
        "time": ["5"],
        "timeout": ["1s"],
    }


def test_a_label_that_was_made_up_does_not_help(
    person: Person, adapter: requests_mock.Mocker
) -> None:
    client = person(default=WHERE)
    adapter.get(f"{BASE}/query", json=vector())
    query = 'label_replace(up, "project_id", "p1", "", "")'
    assert client.get("/api/v1/query", params={"query": query}).status_code == 200
    assert 'up { project_id="p1" }' in asked(adapter)["query"][0]


def test_sums_of_the_own_series_are_shown(person: Person, adapter: requests_mock.Mocker) -> None:
    client = person(default=WHERE)
    adapter.get(f"{BASE}/query", json=vector(series(None), series("p2")))
    answer = client.get("/api/v1/query", params={"query": "sum(up)"})
    assert answer.json()["data"]["result"] == [series(None)]


@pytest.mark.parametrize("kind", ["admin", "reader"])
def test_administrators_and_readers_get_everything(
    person: Person, adapter: requests_mock.Mocker, kind: str
) -> None:
    client = person(kind, default=WHERE)
    adapter.get(f"{BASE}/query", json=vector(series("p1"), series("p2"), series(None)))
    answer = client.get("/api/v1/query?query=up{or} # as it is")
    assert len(answer.json()["data"]["result"]) == 3
    assert asked(adapter)["query"] == ["up{or} "]


def test_ranges_have_their_samples_under_value(
    person: Person, adapter: requests_mock.Mocker
) -> None:
    client = person("admin", default=WHERE)
    samples = [[1, "1"], [2, "2"]]
    reply = vector(series("p1", values=samples), kind="matrix", warnings=["slow"])
    adapter.get(f"{BASE}/query_range", json=reply)
    answer = client.get("/api/v1/query_range?query=up&start=1&end=2&step=1&timeout=3").json()
    assert answer["data"]["result"] == [series("p1", value=samples)]
    assert answer["warnings"] == ["slow"]
    assert list(asked(adapter)) == ["query", "start", "end", "step", "timeout"]


@pytest.mark.parametrize("kind", ["scalar", "string"])
def test_scalars_and_strings(person: Person, adapter: requests_mock.Mocker, kind: str) -> None:
    client = person(default=WHERE)
    reply = {"status": "success", "data": {"resultType": kind, "result": [1.5, "1"]}}
    adapter.get(f"{BASE}/query", json=reply)
    assert client.get("/api/v1/query?query=1").json() == reply


@pytest.mark.parametrize(
    ("status", "shown"), [(400, 400), (422, 422), (503, 503), (302, 500), (401, 500), (403, 500)]
)
def test_errors_of_prometheus(
    person: Person, adapter: requests_mock.Mocker, status: int, shown: int
) -> None:
    client = person(default=WHERE)
    adapter.get(f"{BASE}/query", text='{"status":"error"}', status_code=status)
    answer = client.get("/api/v1/query?query=up")
    assert (answer.status_code, answer.json()) == (shown, {"detail": '{"status":"error"}'})


def test_a_query_that_cannot_be_confined(person: Person, adapter: requests_mock.Mocker) -> None:
    client = person(default=WHERE)
    answer = client.get("/api/v1/query", params={"query": '{a="b" or c="d"}'})
    assert answer.status_code == 400
    assert "bad_data" in answer.json()["detail"]
    assert all("prometheus" not in each.url for each in adapter.request_history)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"status":"success","data":{"resultType":"vector","result":[1]}}',
        b'{"status":"success","error":NaN}',
    ],
)
def test_replies_that_are_none(person: Person, adapter: requests_mock.Mocker, body: bytes) -> None:
    client = person(default=WHERE)
    adapter.get(f"{BASE}/query", content=body)
    answer = client.get("/api/v1/query?query=up")
    assert answer.status_code == 500
    assert answer.json() == {"detail": "The answer of Prometheus cannot be read."}


def test_prometheus_away(person: Person, adapter: requests_mock.Mocker) -> None:
    client = person(default=WHERE)
    adapter.get(f"{BASE}/query", exc=requests.ConnectTimeout)
    answer = client.get("/api/v1/query?query=up")
    assert (answer.status_code, answer.json()) == (500, {"detail": "Prometheus does not answer."})


def test_the_password_of_prometheus(person: Person, adapter: requests_mock.Mocker) -> None:
    options = {
        **WHERE,
        "prometheus_enable_basic_auth": True,
        "prometheus_basic_auth_user": "prom",
        "prometheus_basic_auth_password": "sécret",
    }
    client = person(default=options)
    adapter.get(f"{BASE}/query", json=vector())
    client.get("/api/v1/query?query=up")
    sent = adapter.request_history[-1].headers
    assert sent["Authorization"] == "Basic cHJvbTpzw6ljcmV0"
    assert "X-Auth-Token" not in sent


@pytest.mark.parametrize("path", ["query", "query_range"])
def test_nobody_asks(person: Person, path: str) -> None:
    assert person("nobody").get(f"/api/v1/{path}?query=up").status_code == 401
