"""Validation: whose fault a refusal is, and how the service token heals."""

from __future__ import annotations

import logging

import pytest
import requests
import requests_mock as mocking

from tests.support.keystone import ENDPOINTS, URL, Keystone, error, identity, token_body
from trimaran import errors
from trimaran.config.common import defaults
from trimaran.identity import RemoteError, count_calls


def test_valid_token_is_asked_for_once(keystone: Keystone) -> None:
    keystone.subjects["good"] = token_body()
    ours = identity()
    first = ours.validate("good")
    assert first.project_id == "p1"
    assert ours.validate("good") is first
    assert keystone.validations == 1


def test_fresh_asks_again(keystone: Keystone) -> None:
    keystone.subjects["good"] = token_body()
    ours = identity()
    ours.validate("good")
    ours.validate("good", fresh=True)
    assert keystone.validations == 2


def test_forget_asks_again(keystone: Keystone) -> None:
    keystone.subjects["good"] = token_body()
    ours = identity()
    ours.validate("good")
    del keystone.subjects["good"]
    ours.forget("good")
    with pytest.raises(errors.Unauthenticated):
        ours.validate("good")


def test_unknown_token_is_the_caller_s_fault(keystone: Keystone) -> None:
    ours = identity()
    with count_calls() as calls, pytest.raises(errors.Unauthenticated):
        ours.validate("bad")
    # Authentication, question; no doubt about our own token.
    assert calls.total == 2


@pytest.mark.parametrize("bad", ["", "a b", "a\nX-Evil: 1", "ключ", "x" * 40000])
def test_what_cannot_be_a_token_is_not_sent(keystone: Keystone, bad: str) -> None:
    with count_calls() as calls, pytest.raises(errors.Unauthenticated):
        identity().validate(bad)
    assert calls.total == 0


def test_service_token_revoked_behind_our_back(keystone: Keystone) -> None:
    keystone.subjects["good"] = token_body()
    ours = identity()
    ours.service_token()
    keystone.valid.clear()
    assert ours.validate("good").user_id == "u1"
    assert len(keystone.service_tokens) == 2


def test_caller_s_fault_with_a_revoked_service_token(keystone: Keystone) -> None:
    ours = identity()
    ours.service_token()
    keystone.valid.clear()
    with pytest.raises(errors.Unauthenticated):
        ours.validate("bad")


def test_a_fresh_service_token_that_is_refused_is_not_the_caller_s_fault(
    requests_mock: mocking.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    requests_mock.post(
        f"{URL}/auth/tokens", status_code=201, headers={"X-Subject-Token": "s"}, json=token_body()
    )
    requests_mock.get(f"{URL}/auth/tokens", status_code=401, json=error(401))
    with pytest.raises(errors.Unavailable) as caught:
        identity().validate("any")
    assert caught.value.service == "identity"
    assert "refuses the service token" in caplog.text


def test_missing_role_is_ours_and_the_log_says_what_to_do(
    keystone: Keystone, requests_mock: mocking.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    requests_mock.get(f"{URL}/auth/tokens", status_code=403, json=error(403, "no"))
    with pytest.raises(errors.Unavailable):
        identity().validate("any")
    assert "give it the role" in caplog.text


@pytest.mark.parametrize("status", [500, 502, 503])
def test_keystone_failing_is_unavailable_and_not_remembered(
    keystone: Keystone,
    requests_mock: mocking.Mocker,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange.time.sleep", lambda _seconds: None)
    ours = identity()
    ours.service_token()
    requests_mock.get(f"{URL}/auth/tokens", status_code=status, text="<h1>oops</h1>")
    with pytest.raises(errors.Unavailable) as caught:
        ours.validate("good")
    assert caught.value.service == "identity"
    requests_mock.get(f"{URL}/auth/tokens", json=token_body())
    assert ours.validate("good").user_id == "u1"


@pytest.mark.parametrize("answer", [{"json": {}}, {"text": "hello"}, {"json": {"access": {}}}])
def test_an_answer_that_is_no_token(
    keystone: Keystone, requests_mock: mocking.Mocker, answer: dict[str, object]
) -> None:
    requests_mock.get(f"{URL}/auth/tokens", **answer)
    with pytest.raises(errors.Unavailable):
        identity().validate("good")


def test_the_service_user_cannot_log_in(
    keystone: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    keystone.password = "another"
    with caplog.at_level(logging.ERROR), pytest.raises(errors.Unavailable) as caught:
        identity().validate("good")
    assert caught.value.service == "identity"
    assert "check user, password" in caplog.text
    assert "s3cret" not in caplog.text
    assert "s3cret" not in str(caught.value)


class TestServiceToken:
    def test_made_once(self, keystone: Keystone) -> None:
        ours = identity()
        assert ours.service_token() == ours.service_token() == "service-1"

    def test_renewed_before_its_end(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        ours = identity()
        requests_mock.post(
            f"{URL}/auth/tokens",
            [
                {
                    "status_code": 201,
                    "headers": {"X-Subject-Token": name},
                    "json": token_body(seconds=seconds),
                }
                for name, seconds in (("short", 60), ("long", 3600))
            ],
        )
        assert ours.service_token() == "short"
        assert ours.service_token() == "long"
        assert ours.service_token() == "long"

    def test_keystone_away_at_the_time_of_renewal(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        ours = identity()
        answer = {"status_code": 201, "headers": {"X-Subject-Token": "old"}}
        requests_mock.post(f"{URL}/auth/tokens", json=token_body(seconds=60), **answer)
        ours.service_token()
        requests_mock.post(f"{URL}/auth/tokens", exc=requests.ConnectTimeout)
        assert [ours.service_token() for _ in range(3)] == ["old"] * 3
        ours.service_auth.discard("old")
        with pytest.raises(errors.Unavailable):
            ours.service_token()

    def test_an_old_token_at_its_end_is_not_used(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        ours = identity()
        answer = {"status_code": 201, "headers": {"X-Subject-Token": "old"}}
        requests_mock.post(f"{URL}/auth/tokens", json=token_body(seconds=5), **answer)
        ours.service_token()
        requests_mock.post(f"{URL}/auth/tokens", exc=requests.ConnectTimeout)
        with pytest.raises(errors.Unavailable):
            ours.service_token()

    @pytest.mark.parametrize(
        "answer",
        [
            {"status_code": 201, "json": token_body()},
            {"status_code": 201, "text": "hello", "headers": {"X-Subject-Token": "s"}},
            {"status_code": 201, "json": {}, "headers": {"X-Subject-Token": "s"}},
            {"status_code": 300, "json": {"versions": {}}},
            {"status_code": 404, "text": "nothing here"},
        ],
    )
    def test_something_else_answers_at_the_url(
        self, keystone: Keystone, requests_mock: mocking.Mocker, answer: dict[str, object]
    ) -> None:
        requests_mock.post(f"{URL}/auth/tokens", **answer)
        with pytest.raises(errors.Unavailable):
            identity().service_token()

    def test_a_wrong_password_is_tried_again_after_a_while_only(
        self, keystone: Keystone, requests_mock: mocking.Mocker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [100.0]
        monkeypatch.setattr("trimaran.identity.auth.time.monotonic", lambda: now[0])
        keystone.password = "another"
        ours = identity()
        for _ in range(5):
            with pytest.raises(errors.Unavailable):
                ours.service_token()
        assert requests_mock.call_count == 1
        keystone.password = "s3cret"
        now[0] += 1.01
        assert ours.service_token() == "service-1"

    def test_no_answer_is_unavailable(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.post(f"{URL}/auth/tokens", exc=requests.ConnectTimeout)
        with pytest.raises(errors.Unavailable) as caught:
            identity().service_token()
        assert caught.value.service == "identity"

    def test_a_refusal_of_the_token_before_does_not_cost_the_new_one(
        self, keystone: Keystone, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [100.0]
        monkeypatch.setattr("trimaran.identity.auth.time.monotonic", lambda: now[0])
        ours = identity()
        ours.service_token()
        now[0] += 1
        assert ours.service_auth.invalidate()
        assert ours.service_token() == "service-1"
        now[0] += 2
        assert ours.service_auth.invalidate()
        assert ours.service_token() == "service-2"

    def test_discard_of_an_old_token_keeps_the_current_one(self, keystone: Keystone) -> None:
        ours = identity()
        ours.service_token()
        ours.service_auth.discard("another")
        assert ours.service_token() == "service-1"
        ours.service_auth.discard("service-1")
        assert ours.service_token() == "service-2"


class TestEndpoint:
    def test_of_the_catalog_with_the_version(self, keystone: Keystone) -> None:
        assert identity().endpoint() == URL

    def test_of_a_region_without_keystone(self, keystone: Keystone) -> None:
        with pytest.raises(errors.Unavailable, match="Endpoint not found"):
            identity().endpoint("Elsewhere")

    def test_falls_back_to_the_configured_url(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.post(
            f"{URL}/auth/tokens",
            status_code=201,
            headers={"X-Subject-Token": "s"},
            json=token_body(catalog=[]),
        )
        assert identity().endpoint() == URL

    def test_regions_of_our_catalog(self, keystone: Keystone) -> None:
        assert identity().service_regions() == ["RegionOne"]
        assert identity().service_regions("nothing") == []
        assert [row["type"] for row in identity().service_catalog()] == list(ENDPOINTS)


class TestSessionFor:
    def test_carries_the_token_and_calls_no_keystone(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        keystone.subjects["good"] = token_body()
        ours = identity()
        token = ours.validate("good")
        requests_mock.get("http://nova.test/v2.1/servers", json={"servers": []})
        with count_calls() as calls:
            ours.session_for(token).get(
                "/servers",
                endpoint_filter={"service_type": "compute", "interface": "public"},
            )
        assert calls.by_service == {"compute": 1}
        assert requests_mock.last_request.headers["X-Auth-Token"] == "good"
        assert "X-Service-Token" not in requests_mock.last_request.headers

    def test_a_refused_token_is_not_tried_twice(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        keystone.subjects["good"] = token_body()
        ours = identity()
        token = ours.validate("good")
        requests_mock.get("http://nova.test/v2.1/servers", status_code=401)
        with count_calls() as calls:
            answer = ours.session_for(token).get(
                "/servers", endpoint_filter={"service_type": "compute"}, raise_exc=False
            )
        assert answer.status_code == 401
        assert calls.total == 1

    def test_service_token_beside_it(
        self, keystone: Keystone, requests_mock: mocking.Mocker
    ) -> None:
        keystone.subjects["good"] = token_body()
        ours = identity()
        token = ours.validate("good")
        requests_mock.get("http://nova.test/v2.1/servers", json={"servers": []})
        ours.session_for(token, service_token=True).get(
            "/servers", endpoint_filter={"service_type": "compute"}
        )
        assert requests_mock.last_request.headers["X-Service-Token"] == "service-1"


class TestPing:
    def test_answers(self, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(URL, json={"version": {}})
        identity().ping()

    def test_wrong_password(self, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(URL, json={"version": {}})
        keystone.password = "another"
        with pytest.raises(errors.Unavailable):
            identity().ping()

    def test_down_later(self, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
        ours = identity()
        ours.service_token()
        requests_mock.get(URL, exc=requests.ConnectTimeout)
        with pytest.raises(errors.Unavailable):
            ours.ping()

    def test_a_wrong_page(self, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(URL, status_code=404)
        with pytest.raises(RemoteError):
            identity().ping()


def test_cache_options_are_used(keystone: Keystone) -> None:
    keystone.subjects["good"] = token_body()
    ours = identity(own=defaults(token_cache_seconds=0))
    ours.validate("good")
    ours.validate("good")
    assert keystone.validations == 2
