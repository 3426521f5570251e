"""Settings (spec/skyline.md 1.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from trimaran.db.queries import console as queries
from trimaran.errors import Unavailable

Person = Callable[..., TestClient]

ALL = "/api/v1/settings"
ONE = "/api/v1/setting"


def test_defaults_in_order(person: Person) -> None:
    found = person().get(ALL).json()["settings"]
    assert [each["key"] for each in found] == ["flavor_families", "gpu_models", "usb_models"]
    assert found[1] == {
        "key": "gpu_models",
        "value": ["nvidia_t4"],
        "hidden": False,
        "restart_service": False,
    }
    assert [each["architecture"] for each in found[0]["value"]] == [
        "x86_architecture",
        "heterogeneous_computing",
    ]


@pytest.mark.parametrize(
    "value", [["a"], None, {}, "", 0, False, {"a": [1.5, None, "ü€😀"]}, "\u0000", 2**53]
)
def test_any_value_is_served_back_until_it_is_reset(person: Person, value: Any) -> None:
    client = person("admin")
    put = client.put(ONE, json={"key": "gpu_models", "value": value})
    assert put.status_code == 200
    wanted = {"key": "gpu_models", "value": value, "hidden": False, "restart_service": False}
    assert put.json() == wanted
    # Another process of the service sees it too.
    other = person()
    assert other.get(f"{ONE}/gpu_models").json() == wanted
    assert other.get(ALL).json()["settings"][1] == wanted
    for _ in range(2):
        assert client.delete(f"{ONE}/gpu_models").json()["value"] == ["nvidia_t4"]
    assert other.get(f"{ONE}/gpu_models").json()["value"] == ["nvidia_t4"]


@pytest.mark.parametrize("kind", ["member", "reader"])
def test_only_administrators_change(person: Person, kind: str) -> None:
    client = person(kind)
    # The role is checked before the key.
    put = client.put(ONE, json={"key": "nope", "value": 1})
    assert (put.status_code, put.json()) == (403, {"detail": "Not allowed to update settings."})
    reset = client.delete(f"{ONE}/nope")
    assert (reset.status_code, reset.json()) == (
        403,
        {"detail": "Not allowed to reset settings."},
    )


def test_unknown_keys(person: Person) -> None:
    client = person("admin")
    wanted = {"detail": "Not a valid setting key."}
    for answer in (
        client.get(f"{ONE}/nope"),
        client.put(ONE, json={"key": "nope", "value": 1}),
        client.delete(f"{ONE}/nope"),
        client.get(f"{ONE}/base_settings"),
    ):
        assert (answer.status_code, answer.json()) == (404, wanted)


@pytest.mark.parametrize(
    "body",
    [
        b'{"key": "gpu_models"}',
        b'{"value": 1}',
        b'{"key": "gpu_models", "value": NaN}',
        b'{"key": "gpu_models", "value": [1e999]}',
        b'{"key": "gpu_models", "value": "\\ud800"}',
        b'{"key": "gpu_models", "value": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        b"[]",
        b"{",
    ],
)
def test_bad_bodies(person: Person, body: bytes) -> None:
    client = person("admin")
    answer = client.put(ONE, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert client.get(f"{ONE}/gpu_models").json()["value"] == ["nvidia_t4"]


def test_bytes_that_are_no_text(person: Person) -> None:
    answer = person("admin").put(
        ONE, content=b'{"key": "\xff"}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)


def test_rows_and_keys_without_an_option(person: Person) -> None:
    client: Any = person("admin", setting={"base_settings": ["gpu_models", "ours"]})
    database = client.app.state.parts.db
    database.write(lambda session: queries.set_setting(session, "old", 1))
    found = client.get(ALL).json()["settings"]
    assert [(each["key"], each["value"]) for each in found] == [
        ("gpu_models", ["nvidia_t4"]),
        ("ours", None),
    ]


def test_the_database_away(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = person("admin")
    client.get(ALL)

    def fail(*_: Any, **__: Any) -> None:
        raise Unavailable(service="database")

    monkeypatch.setattr(client.app.state.parts.db, "write", fail)
    answer = client.put(ONE, json={"key": "gpu_models", "value": 1})
    assert answer.status_code == 503
    assert set(answer.json()) == {"message"}
