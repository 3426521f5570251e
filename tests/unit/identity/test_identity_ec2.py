"""EC2 signatures: what goes to Keystone, and whose fault a refusal is."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import requests_mock as mocking

from tests.support.keystone import URL, Keystone, error, identity, token_body
from trimaran import errors
from trimaran.identity import RemoteError, count_calls
from trimaran.identity.ec2 import malformed

EC2 = f"{URL}/ec2tokens"
CREDENTIALS: dict[str, Any] = {
    "access": "a",
    "signature": "s",
    "host": "h",
    "verb": "GET",
    "path": "/",
    "params": {"SignatureVersion": "2", "Action": "DescribeRegions"},
    "headers": {"Host": "h"},
    "body_hash": "0" * 64,
}
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=a/20300101/R/ec2/aws4_request, SignedHeaders=host, "
V4: dict[str, Any] = CREDENTIALS | {
    "params": {},
    "headers": {"Authorization": AUTHORIZATION + "Signature=s", "X-Amz-Date": "20300101T000000Z"},
}
PRESIGNED: dict[str, Any] = CREDENTIALS | {
    "params": {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "a/20300101/R/ec2/aws4_request",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Date": "20300101T000000Z",
    },
}


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


@pytest.mark.parametrize("credentials", [CREDENTIALS, V4, PRESIGNED])
@pytest.mark.parametrize("changes", [{}, {"signature": None}])
def test_well_formed(credentials: dict[str, Any], changes: dict[str, Any]) -> None:
    assert malformed(credentials | changes) is None


def _without(credentials: dict[str, Any], part: str, *names: str) -> dict[str, Any]:
    rest = {name: value for name, value in credentials[part].items() if name not in names}
    return credentials | {part: rest}


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        CREDENTIALS | {"access": None},
        CREDENTIALS | {"host": 7},
        CREDENTIALS | {"signature": ["s"]},
        CREDENTIALS | {"params": None},
        CREDENTIALS | {"params": {"SignatureVersion": 2}},
        CREDENTIALS | {"params": {}},
        CREDENTIALS | {"params": {"SignatureVersion": "3"}},
        CREDENTIALS | {"params": {"SignatureVersion": "0"}},
        CREDENTIALS | {"headers": {"Authorization": "Basic x"}, "params": {}},
        PRESIGNED | {"headers": {"Authorization": "Basic x"}},
        V4 | {"body_hash": None},
        _without(V4, "headers", "X-Amz-Date"),
        V4 | {"headers": V4["headers"] | {"X-Amz-Date": "20300102T000000Z"}},
        V4 | {"headers": V4["headers"] | {"Authorization": "AWS4-HMAC-SHA256 Credential=a/b"}},
        V4 | {"headers": V4["headers"] | {"Authorization": "AWS4-HMAC-SHA256"}},
        _without(PRESIGNED, "params", "X-Amz-Credential"),
        _without(PRESIGNED, "params", "X-Amz-SignedHeaders"),
        _without(PRESIGNED, "params", "X-Amz-Date"),
        _without(PRESIGNED, "params", "X-Amz-Algorithm"),
    ],
)
def test_malformed_is_the_caller_s_fault_and_not_sent(
    keystone: Keystone, credentials: dict[str, Any]
) -> None:
    with count_calls() as calls, pytest.raises(errors.Unauthenticated) as caught:
        identity().ec2(credentials)
    assert caught.value.remote_status == 401  # type: ignore[attr-defined]
    assert calls.total == 0


def test_headers_under_the_names_keystone_looks_for(
    keystone: Keystone, requests_mock: mocking.Mocker
) -> None:
    requests_mock.post(EC2, json=token_body(), headers={"X-Subject-Token": "minted"})
    lower = {name.lower(): value for name, value in V4["headers"].items()}
    identity().ec2(V4 | {"headers": lower})
    assert requests_mock.last_request.json()["ec2Credentials"]["headers"] == V4["headers"]
