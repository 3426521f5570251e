"""The session cookie: upstream's to the letter, and nobody else's."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest
from starlette.requests import HTTPConnection

from tests.support.console import SECRET, cookie
from trimaran.config.console import Default
from trimaran.console.sessions import Session, Sessions, over_https, token_key
from trimaran.errors import Unauthenticated


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(Default(secret_key=SECRET))


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_new_session_is_what_upstream_writes(sessions: Sessions) -> None:
    before = int(time.time())
    session = sessions.new("tok", "RegionOne")
    value = sessions.encode(session)
    assert jwt.get_unverified_header(value) == {"alg": "HS256", "typ": "JWT"}
    claims = jwt.decode(value, SECRET, algorithms=["HS256"])
    assert set(claims) == {"keystone_token", "region", "exp", "uuid"}
    assert claims["keystone_token"] == "tok"
    assert before + 3600 <= claims["exp"] <= int(time.time()) + 3600
    assert len(session.uuid) == 32
    assert int(session.uuid, 16) >= 0
    assert sessions.decode(value) == session
    assert sessions.new("tok", "RegionOne").uuid != session.uuid


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("garbage", "Not enough segments"),
        ("", "Not enough segments"),
        ("a.b.c", None),
        ("é.ü.ß", None),
        ("." * 5000, None),
        (cookie(exp=1), "Token expired - Signature has expired."),
        (cookie(region=None), "'region'"),
        (cookie(uuid=None), "'uuid'"),
        (cookie(exp=None), "'exp'"),
        (cookie(keystone_token=None), "'keystone_token'"),
        (cookie(keystone_token=["x"]), "'keystone_token'"),
        (cookie(region=5), "'region'"),
        (cookie(exp=4102444800.5), "'exp'"),
        (jwt.encode({"a": 1}, "x" * 32, algorithm="HS256"), "Signature verification failed."),
        (jwt.encode({"a": 1}, SECRET, algorithm="HS512"), None),
        (jwt.encode({"a": 1}, None, algorithm="none"), None),
        (f"{_part({'alg': 'none', 'typ': 'JWT'})}.{cookie().split('.')[1]}.", None),
        (f"{_part({'alg': 'NONE'})}.{cookie().split('.')[1]}.{cookie().split('.')[2]}", None),
        (f"{_part({'alg': 'RS256', 'jwk': {}})}.{cookie().split('.')[1]}.AAAA", None),
        (cookie() + "A", None),
        (cookie()[:-10], None),
    ],
)
def test_whatever_is_not_ours_is_refused(
    sessions: Sessions, value: str, reason: str | None
) -> None:
    with pytest.raises(Unauthenticated) as caught:
        sessions.decode(value)
    if reason is not None:
        assert caught.value.message == reason
    assert SECRET not in caught.value.message


def test_changed_claims_are_refused(sessions: Sessions) -> None:
    head, body, signature = cookie().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = _part({**claims, "keystone_token": "admin's"})
    with pytest.raises(Unauthenticated, match="Signature verification failed"):
        sessions.decode(f"{head}.{forged}.{signature}")


@pytest.mark.parametrize(
    ("left", "renewed"), [(3600, False), (1801, False), (1799, True), (5, True), (-5, False)]
)
def test_renewal_is_due_in_the_last_seconds_only(
    sessions: Sessions, left: int, renewed: bool
) -> None:
    session = Session("tok", "R", int(time.time()) + left, "u" * 32)
    fresh = sessions.renewed(session)
    assert (fresh is not None) is renewed
    if fresh is not None:
        assert (fresh.keystone_token, fresh.region, fresh.uuid) == ("tok", "R", "u" * 32)
        assert fresh.exp >= int(time.time()) + 3599


def test_a_revocation_outlives_every_copy_of_the_cookie(sessions: Sessions) -> None:
    now = int(time.time())
    # No renewed copy can exist: the row ends with the session, as upstream's.
    assert sessions.revoked_until(Session("t", "R", now + 3000, "u")) == now + 3000
    # A copy that was renewed a moment ago ends in an hour.
    assert sessions.revoked_until(Session("t", "R", now + 100, "u")) >= now + 3600


@pytest.mark.parametrize(
    ("scheme", "headers", "https"),
    [
        ("https", [], True),
        ("http", [], False),
        ("http", [(b"x-forwarded-proto", b"https")], True),
        ("http", [(b"x-forwarded-proto", b"https, http")], True),
        ("https", [(b"x-forwarded-proto", b"http")], False),
    ],
)
def test_https_is_what_the_browser_speaks(
    scheme: str, headers: list[tuple[bytes, bytes]], https: bool
) -> None:
    scope = {
        "type": "http",
        "scheme": scheme,
        "headers": headers,
        "server": ("x", 80),
        "path": "/",
        "query_string": b"",
    }
    assert over_https(HTTPConnection(scope)) is https


def test_a_tokens_key_fits_the_column_and_hides_the_token() -> None:
    key = token_key("gAAAA-secret")
    assert "secret" not in key
    assert len(key) <= 128
    assert key != token_key("gAAAA-secreu")
