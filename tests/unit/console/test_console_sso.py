"""Single sign-on and second factors from the wire's side (spec/skyline.md 1.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.console import RECEIPT, Cloud, claims
from tests.support.keystone import URL

Person = Callable[..., TestClient]

SSO = "/api/v1/sso"
WEBSSO = "/api/v1/websso"
TOTP = "/api/v1/login/totp"
CODE = {"username": "totp", "passcode": "123456", "receipt": RECEIPT}


def test_off(person: Person) -> None:
    answer = person("nobody").get(SSO)
    assert answer.text == '{"enable_sso":false,"protocols":[]}'


@pytest.mark.parametrize(
    ("groups", "host", "origin"),
    [
        ({}, "console.test", "https://console.test/api/openstack"),
        ({}, "console.test:9999", "https://console.test:9999/api/openstack"),
        ({}, "[2001:db8::1]:9999", "https://[2001:db8::1]:9999/api/openstack"),
        ({}, 'x"><script>', "https://testserver/api/openstack"),
        ({"default": {"ssl_enabled": False}}, "c.test", "http://c.test/api/openstack"),
        (
            {"trimaran": {"sso_callback_base": "http://outside:80/"}},
            "inside",
            "http://outside:80/api/openstack",
        ),
    ],
)
def test_plain_protocols(person: Person, groups: Any, host: str, origin: str) -> None:
    stack = {"sso_enabled": True, "keystone_url": f"{URL}/", "sso_protocols": ["openid", "saml"]}
    client = person("nobody", **{**groups, "openstack": stack})
    answer = client.get(SSO, headers={"Host": host}).json()
    assert answer == {
        "enable_sso": True,
        "protocols": [
            {
                "protocol": name,
                "url": f"{URL}/auth/OS-FEDERATION/websso/{name}"
                f"?origin={origin}/skyline/api/v1/websso",
                "label": None,
            }
            for name in ("openid", "saml")
        ],
    }


def test_identity_providers(person: Person) -> None:
    providers = [{"name": "corp", "protocol": "openid", "label": "Corp"}]
    client = person("nobody", openstack={"sso_enabled": True, "sso_identity_providers": providers})
    (entry,) = client.get(SSO, headers={"Host": "c"}).json()["protocols"]
    assert entry == {
        "protocol": "openid",
        "url": f"{URL}/auth/OS-FEDERATION/identity_providers/corp/protocols/openid/websso"
        "?origin=https://c/api/openstack/skyline/api/v1/websso",
        "label": "Corp",
    }


@pytest.mark.parametrize("multipart", [False, True])
def test_the_posted_token_begins_a_session(
    person: Person, keystone: Cloud, multipart: bool
) -> None:
    keystone.federated = True
    token = keystone.token("from-keystone", None)
    client = person("nobody")
    form: Any = {"files": {"token": (None, token)}} if multipart else {"data": {"token": token}}
    answer = client.post(WEBSSO, **form)
    assert answer.status_code == 302
    assert answer.headers["location"] == "/base/overview"
    assert answer.content == b""
    assert len(answer.headers.get_list("set-cookie")) == 2
    said = claims(client.cookies["session"])
    assert said["region"] == "RegionOne"
    assert keystone.tokens[said["keystone_token"]]["token"]["project"]["id"] == "p2"


def test_bad_forms(person: Person, keystone: Cloud) -> None:
    client = person("nobody")
    bad = client.post(WEBSSO, data={"token": "bad"})
    assert bad.status_code == 401
    assert set(bad.json()) == {"detail"}
    for hostile in ("", "a b", "a\r\nX-Header: 1", "é", "x" * 100_000):
        answer = client.post(WEBSSO, data={"token": hostile})
        assert answer.status_code in (401, 422), hostile[:10]
    missing = client.post(WEBSSO, data={})
    assert missing.status_code == 422
    assert missing.json()["detail"][0]["loc"] == ["body", "token"]
    get = client.get(WEBSSO)
    assert (get.status_code, get.headers["allow"]) == (405, "POST")
    assert client.cookies.get("session") is None
    keystone.down.add("identity")
    away = client.post(WEBSSO, data={"token": "t"})
    assert away.status_code == 503
    assert set(away.json()) == {"message"}


# -- second factor -------------------------------------------------------------


@pytest.fixture
def totp(keystone: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Lets Keystone know one-time codes: 123456 is right."""
    plain = keystone._authenticate

    def authenticate(request: Any, context: Any) -> Any:
        identity = request.json()["auth"]["identity"]
        if keystone.refusal is not None or "totp" not in identity:
            return plain(request, context)
        right = identity["totp"]["user"]["passcode"] == "123456"
        if not right or request.headers["Openstack-Auth-Receipt"] != RECEIPT:
            context.status_code = 401
            return {"error": {"code": 401, "title": "Unauthorized", "message": "No."}}
        context.status_code = 201
        context.headers["X-Subject-Token"] = keystone.token("t-totp", "p2")
        return keystone.tokens["t-totp"]

    monkeypatch.setattr(keystone, "_authenticate", authenticate)
    return keystone


def test_a_good_code(person: Person, totp: Cloud) -> None:
    client = person("nobody")
    answer = client.post(TOTP, json=CODE)
    assert answer.status_code == 200
    assert answer.json()["project"]["id"] == "p2"
    assert len(answer.headers.get_list("set-cookie")) == 2


def test_the_region_is_honoured(person: Person, totp: Cloud) -> None:
    totp.regions = ["RegionOne", "RegionTwo"]
    client = person("nobody")
    assert client.post(TOTP, json={**CODE, "region": "RegionTwo"}).json()["region"] == "RegionTwo"
    answer = client.post(TOTP, json={**CODE, "region": "Nowhere"})
    assert (answer.status_code, answer.json()) == (401, {"detail": "authentication_failed"})


@pytest.mark.parametrize("change", [{"passcode": "654321"}, {"receipt": "x"}, {"receipt": "a\nb"}])
def test_a_wrong_code_or_receipt(person: Person, totp: Cloud, change: dict[str, str]) -> None:
    answer = person("nobody").post(TOTP, json={**CODE, **change})
    assert (answer.status_code, answer.json()) == (401, {"detail": "invalid_totp"})
    assert answer.headers.get("set-cookie") is None


@pytest.mark.parametrize(
    ("status", "message", "detail"),
    [
        (401, "The receipt has expired.", "receipt_expired"),
        (401, "No.", "invalid_totp"),
        (403, "No.", "authentication_failed"),
        (400, "No.", "authentication_failed"),
    ],
)
def test_what_keystone_says(
    person: Person, totp: Cloud, status: int, message: str, detail: str
) -> None:
    client = person("nobody")
    totp.refusal = (status, message)
    answer = client.post(TOTP, json=CODE)
    assert (answer.status_code, answer.json()) == (401, {"detail": detail})


@pytest.mark.parametrize(
    ("receipt", "detail"), [("", "receipt_expired"), ("r", "authentication_failed")]
)
def test_keystone_wants_more(
    person: Person, keystone: Cloud, monkeypatch: pytest.MonkeyPatch, receipt: str, detail: str
) -> None:
    def authenticate(request: Any, context: Any) -> Any:
        context.status_code = 401
        if receipt:
            context.headers["Openstack-Auth-Receipt"] = receipt
        return {"receipt": {}, "required_auth_methods": [["password", "totp"]]}

    monkeypatch.setattr(keystone, "_authenticate", authenticate)
    answer = person("nobody").post(TOTP, json=CODE)
    assert (answer.status_code, answer.json()) == (401, {"detail": detail})


@pytest.mark.parametrize(
    "passcode", ["12345", "1234567", "12345a", "\uff11" * 6, "123456\n", 123456]
)
def test_a_code_has_six_digits(person: Person, passcode: Any) -> None:
    answer = person("nobody").post(TOTP, json={**CODE, "passcode": passcode})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "passcode"]


def test_keystone_away(person: Person, keystone: Cloud) -> None:
    keystone.down.add("identity")
    answer = person("nobody").post(TOTP, json=CODE)
    assert answer.status_code == 503
