"""Logins: what is sent, Keystone's own words, the second factor."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock as mocking

from tests.support.keystone import URL, Keystone, error, identity, token_body
from trimaran import errors
from trimaran.identity import Identity, MoreMethodsRequired, RemoteError


@pytest.fixture
def ours(keystone: Keystone) -> Identity:
    made = identity()
    made.service_token()
    return made


def _answer(mock: mocking.Mocker, **options: Any) -> None:
    values = {
        "status_code": 201,
        "json": token_body(),
        "headers": {"X-Subject-Token": "new"},
    } | options
    mock.post(f"{URL}/auth/tokens", **values)


def _sent(mock: mocking.Mocker) -> dict[str, Any]:
    auth: dict[str, Any] = mock.last_request.json()["auth"]
    return auth


def test_password_without_scope(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(requests_mock)
    token = ours.password(
        username="u", password="pw", domain_name="Acme", headers={"Forwarded": "for=192.0.2.1"}
    )
    assert token.id == "new"
    assert _sent(requests_mock) == {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": "u", "domain": {"name": "Acme"}, "password": "pw"}},
        }
    }
    assert requests_mock.last_request.headers["Forwarded"] == "for=192.0.2.1"
    assert "X-Auth-Token" not in requests_mock.last_request.headers


def test_domain_id_wins(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(requests_mock)
    ours.password(username="u", password="pw", domain_name="Acme", domain_id="d9")
    user = _sent(requests_mock)["identity"]["password"]["user"]
    assert user["domain"] == {"id": "d9"}


@pytest.mark.parametrize(
    ("how", "scope"),
    [
        ({"project_id": "p2"}, {"project": {"id": "p2"}}),
        ({"system": True}, {"system": {"all": True}}),
        ({"domain_id": "d2"}, {"domain": {"id": "d2"}}),
        ({}, "unscoped"),
    ],
)
def test_rescope(
    ours: Identity, requests_mock: mocking.Mocker, how: dict[str, Any], scope: object
) -> None:
    _answer(requests_mock)
    ours.rescope("old", **how)
    assert _sent(requests_mock) == {
        "identity": {"methods": ["token"], "token": {"id": "old"}},
        "scope": scope,
    }


@pytest.mark.parametrize(
    "text",
    [
        "The request you have made requires authentication.",
        "The account is locked for user: u1.",
        "The password is expired and needs to be changed for user: u1.",
    ],
)
def test_keystone_s_words_reach_the_caller(
    ours: Identity, requests_mock: mocking.Mocker, text: str
) -> None:
    _answer(
        requests_mock,
        status_code=401,
        json=error(401, text),
        headers={"x-openstack-request-id": "req-k"},
    )
    with pytest.raises(errors.Unauthenticated) as caught:
        ours.password(username="u", password="pw")
    assert isinstance(caught.value, RemoteError)
    assert str(caught.value) == caught.value.message == text
    assert caught.value.request_id == "req-k"
    assert not isinstance(caught.value, MoreMethodsRequired)


def test_a_token_that_is_no_more_valid(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(requests_mock, status_code=404, json=error(404, "Failed to validate token"))
    with pytest.raises(errors.Unauthenticated) as caught:
        ours.rescope("old", "p1")
    assert isinstance(caught.value, RemoteError)
    assert caught.value.remote_status == 404
    assert str(caught.value) == "Failed to validate token"


def test_second_factor(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(
        requests_mock,
        status_code=401,
        headers={"Openstack-Auth-Receipt": "rcpt"},
        json={
            "receipt": {"methods": ["password"]},
            "required_auth_methods": [["password", "totp"], ["password", "custom"]],
        },
    )
    with pytest.raises(MoreMethodsRequired) as caught:
        ours.password(username="u", password="pw")
    assert caught.value.receipt == "rcpt"
    assert caught.value.methods == ("password",)
    assert caught.value.required == (("password", "totp"), ("password", "custom"))
    assert isinstance(caught.value, errors.Unauthenticated)


def test_second_factor_without_receipt(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(requests_mock, status_code=401, headers={}, json={"required_auth_methods": []})
    with pytest.raises(MoreMethodsRequired) as caught:
        ours.password(username="u", password="pw")
    assert caught.value.receipt == ""


def test_totp_sends_code_and_receipt(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(requests_mock)
    ours.totp(username="u", passcode="123456", receipt="rcpt", domain_name="Acme")
    assert requests_mock.last_request.headers["Openstack-Auth-Receipt"] == "rcpt"
    assert _sent(requests_mock)["identity"] == {
        "methods": ["totp"],
        "totp": {"user": {"name": "u", "domain": {"name": "Acme"}, "passcode": "123456"}},
    }


def test_keystone_down_while_logging_in(ours: Identity, requests_mock: mocking.Mocker) -> None:
    _answer(requests_mock, status_code=500, json=error(500, "internal: db01 is away"))
    with pytest.raises(errors.Unavailable) as caught:
        ours.password(username="u", password="pw")
    assert "db01" not in str(caught.value)


def test_a_password_is_sent_once(
    ours: Identity, requests_mock: mocking.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange.time.sleep", lambda _seconds: None)
    _answer(requests_mock, status_code=503)
    before = requests_mock.call_count
    with pytest.raises(errors.Unavailable):
        ours.password(username="u", password="pw")
    # Two tries would count twice for Keystone's lockout.
    assert requests_mock.call_count == before + 1


def test_projects(ours: Identity, requests_mock: mocking.Mocker) -> None:
    rows = [{"id": "p1", "enabled": True}, {"id": "p2", "enabled": False}]
    requests_mock.get(f"{URL}/auth/projects", json={"projects": rows})
    assert ours.projects("tok") == rows
    assert requests_mock.last_request.headers["X-Auth-Token"] == "tok"


def test_projects_of_an_ended_token(ours: Identity, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{URL}/auth/projects", status_code=401, json=error(401))
    with pytest.raises(errors.Unauthenticated):
        ours.projects("tok")


def test_user_and_projects_as_service(ours: Identity, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{URL}/users/u1", json={"user": {"id": "u1", "default_project_id": "p1"}})
    requests_mock.get(f"{URL}/users/u1/projects", json={"projects": [{"id": "p1"}]})
    assert ours.user("u1")["default_project_id"] == "p1"
    assert ours.user_projects("u1") == [{"id": "p1"}]
    assert requests_mock.last_request.headers["X-Auth-Token"] == "service-1"


def test_user_ids_do_not_leave_their_place(ours: Identity, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{URL}/users/a%2Fb%3Fc", json={"user": {"id": "x"}})
    assert ours.user("a/b?c") == {"id": "x"}


def test_project_and_domains_as_service(ours: Identity, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{URL}/projects/p1", json={"project": {"id": "p1"}})
    requests_mock.get(f"{URL}/projects/p9", status_code=404, json=error(404, "no"))
    requests_mock.get(f"{URL}/domains", json={"domains": [{"id": "default"}]})
    assert ours.project("p1") == {"id": "p1"}
    assert ours.domains() == [{"id": "default"}]
    with pytest.raises(errors.NotFound):
        ours.project("p9")


@pytest.mark.parametrize("bad", ["", ".", ".."])
def test_ids_that_would_leave_the_path(ours: Identity, bad: str) -> None:
    for ask in (ours.project, ours.user, ours.user_projects):
        with pytest.raises(errors.NotFound):
            ask(bad)


def test_user_missing(ours: Identity, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{URL}/users/u9", status_code=404, json=error(404, "no"))
    with pytest.raises(errors.NotFound):
        ours.user("u9")


def test_our_user_may_not_read_users(ours: Identity, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{URL}/users/u1", status_code=403, json=error(403, "no"))
    with pytest.raises(errors.Unavailable):
        ours.user("u1")


class TestRevoke:
    def test_revoked_with_itself_and_forgotten(
        self, ours: Identity, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        keystone.subjects["tok"] = token_body()
        ours.validate("tok")
        requests_mock.delete(f"{URL}/auth/tokens", status_code=204)
        ours.revoke("tok")
        sent = requests_mock.last_request
        assert sent.headers["X-Auth-Token"] == sent.headers["X-Subject-Token"] == "tok"
        del keystone.subjects["tok"]
        with pytest.raises(errors.Unauthenticated):
            ours.validate("tok")

    @pytest.mark.parametrize("status", [401, 404])
    def test_gone_already(self, ours: Identity, requests_mock: mocking.Mocker, status: int) -> None:
        requests_mock.delete(f"{URL}/auth/tokens", status_code=status)
        ours.revoke("tok")

    def test_keystone_fails(
        self,
        ours: Identity,
        keystone: Keystone,
        requests_mock: mocking.Mocker,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("trimaran.identity.exchange.time.sleep", lambda _seconds: None)
        keystone.subjects["tok"] = token_body()
        ours.validate("tok")
        requests_mock.delete(f"{URL}/auth/tokens", status_code=503)
        with pytest.raises(errors.Unavailable):
            ours.revoke("tok")
        ours.validate("tok")
        assert keystone.validations == 2
