"""The limit to failed logins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi import HTTPException
from starlette.testclient import TestClient

from tests.support.console import PASSWORD, Cloud
from trimaran.console import guard
from trimaran.console.guard import LoginGuard
from trimaran.errors import TooManyRequests

Person = Callable[..., TestClient]

LOGIN = "/api/v1/login"
BAD = {"username": "demo", "password": "wrong"}
GOOD = {"username": "demo", "password": PASSWORD}
OWN = {"failed_logins_per_minute": 3}


def fail(limit: LoginGuard, user: str, address: str = "") -> None:
    with pytest.raises(HTTPException), limit.attempt(user, address):
        raise HTTPException(401, "no")


def test_off_by_default(person: Person, keystone: Cloud) -> None:
    client = person("nobody")
    assert [client.post(LOGIN, json=BAD).status_code for _ in range(8)] == [401] * 8


def test_guesses_are_slowed(person: Person, keystone: Cloud) -> None:
    client = person("nobody", trimaran=OWN)
    assert [client.post(LOGIN, json=BAD).status_code for _ in range(3)] == [401] * 3
    asked = len(keystone.seen)
    refused = client.post(LOGIN, json=GOOD)
    assert refused.status_code == 429
    assert refused.json() == {"detail": "Too many failed logins. Please try again later."}
    assert 1 <= int(refused.headers["Retry-After"]) <= 61
    assert len(keystone.seen) == asked
    code = {"username": "demo", "passcode": "123456", "receipt": "r"}
    assert client.post("/api/v1/login/totp", json=code).status_code == 429
    assert client.get("/api/v1/config").status_code == 200


def test_good_logins_and_first_factors_are_no_failures(person: Person, keystone: Cloud) -> None:
    client = person("nobody", trimaran=OWN)
    totp = {"username": "totp", "password": PASSWORD}
    for _ in range(5):
        assert client.post(LOGIN, json=GOOD).status_code == 200
        assert client.post(LOGIN, json=totp).status_code == 401
    assert client.post(LOGIN, json=GOOD).status_code == 200


def test_a_minute_heals() -> None:
    now = [0.0]
    limit = LoginGuard(2, clock=lambda: now[0])
    fail(limit, "a")
    now[0] = 30.0
    fail(limit, "a")
    now[0] = 59.0
    with pytest.raises(TooManyRequests) as refused, limit.attempt("a", ""):
        pass
    assert refused.value.headers == {"Retry-After": "2"}
    with limit.attempt("b", ""):
        pass
    now[0] = 60.0
    with limit.attempt("a", ""):
        pass


def test_an_address_that_tries_many_users() -> None:
    limit = LoginGuard(2, clock=lambda: 0.0)
    for user in ("a", "b"):
        fail(limit, user, "192.0.2.1")
    with pytest.raises(TooManyRequests), limit.attempt("c", "192.0.2.1"):
        pass
    with limit.attempt("c", "192.0.2.2"):
        pass


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST", 3)
    limit = LoginGuard(1, clock=lambda: 0.0)
    for number in range(5):
        fail(limit, str(number))
    assert len(limit._failures) == 3
    with limit.attempt("0", ""):
        pass
    with pytest.raises(TooManyRequests), limit.attempt("4", ""):
        pass
