"""EC2 signatures: what goes to Keystone, and whose fault a refusal is."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import requests_mock as mocking
from tests.support.keystone import URL, Keystone, error, identity, token_body

from trimaran import errors
from trimaran.identity import RemoteError, count_calls

EC2 = f"{URL}/ec2tokens"
CREDENTIALS = {"access": "a", "signature": "s", "host": "h", "verb": "GET", "path": "/"}


def test_token_of_keystone(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    requests_mock.post(
        EC2, json=token_body(methods=["ec2credential"]), headers={"X-Subject-Token": "minted"}
    )
    token = identity().ec2(CREDENTIALS)
    assert (token.id, token.project_id, token.methods) == ("minted", "p1", ("ec2credential",))
    sent = requests_mock.last_request
    assert sent.headers["X-Auth-Token"] == "service-1"
    assert sent.json() == {"ec2Credentials": CREDENTIALS}


def test_each_signature_is_checked(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    requests_mock.post(EC2, json=token_body(), headers={"X-Subject-Token": "minted"})
    ours = identity()
    ours.ec2(CREDENTIALS)
    with count_calls() as calls:
        ours.ec2(CREDENTIALS)
    assert [call.path for call in calls.seen] == ["/v3/ec2tokens"]


def test_url_of_the_option(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    requests_mock.post(
        "http://other.test/v3/ec2tokens", json=token_body(), headers={"X-Subject-Token": "m"}
    )
    assert identity(ec2_tokens_url="http://other.test/v3/ec2tokens").ec2(CREDENTIALS).id == "m"


def test_legacy_url_gets_the_legacy_body(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    url = "http://other.test/v3/s3tokens"
    requests_mock.post(url, json=token_body(), headers={"X-Subject-Token": "m"})
    identity(ec2_tokens_url=url).ec2(CREDENTIALS)
    assert requests_mock.last_request.json() == {"auth": {"OS-KSEC2:ec2Credentials": CREDENTIALS}}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Invalid input"),
        (401, "The request you have made requires authentication."),
        (403, "User is disabled"),
        (404, "EC2 access key not found."),
        (500, "Unexpected signature format."),
    ],
)
def test_the_caller_s_fault(
    keystone: Keystone, requests_mock: mocking.Mocker, status: int, text: str
) -> None:
    requests_mock.post(EC2, status_code=status, json=error(status, text))
    with pytest.raises(errors.Unauthenticated) as caught:
        identity().ec2(CREDENTIALS)
    assert isinstance(caught.value, RemoteError)
    assert caught.value.remote_status == status
    assert caught.value.remote_message == text
    assert text not in caught.value.message or status == 401
    assert len(keystone.service_tokens) == 1


@pytest.mark.parametrize(
    ("status", "text", "advice"),
    [
        (
            403,
            "You are not authorized to perform the requested action: identity:ec2tokens_validate.",
            "role service",
        ),
        (503, "Method ec2credential is not configured", "[auth] methods"),
        (500, "An unexpected error prevented the server from fulfilling your request.", ""),
        (502, "", ""),
    ],
)
def test_keystone_s_fault_or_ours(
    keystone: Keystone,
    requests_mock: mocking.Mocker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
    text: str,
    advice: str,
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange.time.sleep", lambda _seconds: None)
    requests_mock.post(EC2, status_code=status, json=error(status, text))
    with pytest.raises(errors.Unavailable) as caught:
        identity().ec2(CREDENTIALS)
    assert caught.value.service == "identity"
    assert advice in caplog.text


def test_our_own_token_is_repaired(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    def check(request: Any, context: Any) -> dict[str, Any]:
        if request.headers["X-Auth-Token"] not in keystone.valid:
            context.status_code = 401
            return error(401)
        context.headers["X-Subject-Token"] = "minted"
        return token_body()

    requests_mock.post(EC2, json=check)
    ours = identity()
    ours.service_token()
    keystone.valid.clear()
    assert ours.ec2(CREDENTIALS).id == "minted"
    assert keystone.service_tokens == ["service-1", "service-2"]


def test_no_answer(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    requests_mock.post(EC2, exc=requests.ReadTimeout)
    with pytest.raises(errors.Unavailable):
        identity().ec2(CREDENTIALS)
