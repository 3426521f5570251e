"""A person's EC2 credential, S3's signatures, and the fresh tokens that follow from them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests_mock as mocking
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support import keystone
from trimaran import errors
from trimaran.cloud import Cloud
from trimaran.ec2.auth import Signed
from trimaran.ec2.on_behalf import Deputies, Person
from trimaran.ec2.protocol import parameters
from trimaran.ec2.s3.auth import authenticate
from trimaran.ec2.s3.errors import S3Error
from trimaran.identity import Identity

URL = f"{keystone.URL}/users/u1/credentials/OS-EC2/AKIA"
PERSON = Person("u1", "p1", "AKIA")
ROW = {"access": "AKIA", "secret": "hidden", "tenant_id": "p1", "user_id": "u1"}


@pytest.fixture
def identity(requests_mock: mocking.Mocker) -> Identity:
    keystone.Keystone(requests_mock)
    return keystone.identity()


@pytest.fixture
def deputies(identity: Identity) -> Deputies:
    return Deputies(identity, Cloud(identity, region="RegionOne"), "RegionOne")


def test_the_keys_are_keystones(requests_mock: mocking.Mocker, deputies: Deputies) -> None:
    requests_mock.get(URL, json={"credential": ROW})
    assert deputies.keys(PERSON) == ("AKIA", "hidden")
    assert "hidden" not in repr(PERSON.noted())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"status_code": 404, "json": keystone.error(404)}, errors.Unauthenticated),
        ({"status_code": 403, "json": keystone.error(403, "forbidden")}, errors.Unavailable),
        ({"status_code": 500}, errors.Unavailable),
        ({"json": {}}, errors.Unavailable),
        ({"json": {"credential": {**ROW, "tenant_id": "p2"}}}, errors.Unauthenticated),
        ({"json": {"credential": {**ROW, "secret": ""}}}, errors.Unauthenticated),
    ],
)
def test_keys_that_cannot_be_had(
    requests_mock: mocking.Mocker, deputies: Deputies, answer: Any, error: type[Exception]
) -> None:
    requests_mock.get(URL, **answer)
    with pytest.raises(error):
        deputies.keys(PERSON)


@pytest.mark.parametrize("change", [{"user": {"id": "u2"}}, {"project": {"id": "p2"}}])
def test_a_token_of_somebody_else_is_not_used(
    requests_mock: mocking.Mocker, deputies: Deputies, change: dict[str, Any]
) -> None:
    requests_mock.get(URL, json={"credential": ROW})
    headers = {"X-Subject-Token": "minted"}
    mint = f"{keystone.URL}/ec2tokens"
    requests_mock.post(mint, json=keystone.token_body(), headers=headers)
    assert deputies.token(PERSON).id == "minted"
    domain = {"name": "x", "domain": {"id": "default", "name": "Default"}}
    other = {name: {**domain, **value} for name, value in change.items()}
    requests_mock.post(mint, json=keystone.token_body(**other), headers=headers)
    with pytest.raises(errors.Unauthenticated):
        deputies.token(PERSON)


# -- S3 -----------------------------------------------------------------------


def signed(url: str, method: str = "GET", presign: bool = False, **headers: str) -> Any:
    """A request as botocore signs it, with its query string."""
    request = AWSRequest(method, url, headers={k.replace("_", "-"): v for k, v in headers.items()})
    kind = S3SigV4QueryAuth if presign else S3SigV4Auth
    kind(Credentials("AKIA", "hidden"), "s3", "RegionOne").add_auth(request)
    told = {name.lower(): value for name, value in request.headers.items()}
    parts = urlsplit(request.url)
    told.setdefault("host", parts.netloc)
    query = parts.query.encode()
    sent = parameters.collect(query, "", b"")
    return Signed(method, parts.path, told, sent, b""), query


@pytest.fixture
def s3tokens(requests_mock: mocking.Mocker, identity: Identity) -> Any:
    return requests_mock.post(f"{keystone.URL}/s3tokens", json=keystone.token_body())


@pytest.mark.parametrize("presign", [False, True])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
@pytest.mark.parametrize(
    "path", ["/b/k?uploads", "/b/a%20b/%C3%A9?x=1&a=%2F&a=", "/b/k?partNumber=1&uploadId=ab"]
)
def test_what_was_signed_is_what_keystone_is_asked(
    identity: Identity, s3tokens: Any, method: str, path: str, presign: bool
) -> None:
    request, query = signed(f"http://s3.test{path}", method, presign)
    token = authenticate(request, query, identity)
    assert token.project_id == "p1"
    asked = s3tokens.last_request.json()["credentials"]
    text = base64.urlsafe_b64decode(asked["token"]).decode()
    auth = S3SigV4Auth(Credentials("AKIA", "hidden"), "s3", "RegionOne")
    # The signature over our text, made with the secret, is the one that came.
    source = AWSRequest(method, f"http://s3.test{path}")
    source.context["timestamp"] = text.split("\n")[1]
    assert auth.signature(text, source) == asked["signature"]


def refused(identity: Identity, request: Signed, query: bytes = b"") -> str:
    with pytest.raises(S3Error) as caught:
        authenticate(request, query, identity)
    return caught.value.code


def altered(request: Signed, **headers: str) -> Signed:
    told = {**request.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return Signed(request.method, request.path, told, request.parameters, b"")


def test_requests_that_are_not_signed_as_they_should_be(identity: Identity, s3tokens: Any) -> None:
    good, query = signed("http://s3.test/b/k")
    header = good.headers["authorization"]
    for bad in (
        altered(good, authorization="Basic x"),
        altered(good, authorization=header.replace("/s3/", "/ec2/")),
        altered(good, authorization=header.replace("AKIA", "")),
        altered(good, authorization=header.replace("host;", "")),
        altered(good, x_amz_copy_source="b/other"),
        altered(good, x_amz_date="20200101T000000Z"),
        altered(good, x_amz_date="nonsense"),
    ):
        assert refused(identity, bad, query) == "AccessDenied"
    no_signature = altered(good, authorization=header.split("Signature=")[0] + "Signature=zz")
    assert refused(identity, no_signature, query) == "SignatureDoesNotMatch"
    assert s3tokens.call_count == 0


def test_a_request_of_long_ago(
    identity: Identity, s3tokens: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC).replace(year=datetime.now(UTC).year + 1)

    request, query = signed("http://s3.test/b/k")
    monkeypatch.setattr("trimaran.ec2.s3.auth.datetime", Later)
    assert refused(identity, request, query) == "RequestTimeTooSkewed"
    assert s3tokens.call_count == 0


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (401, "no", "SignatureDoesNotMatch"),
        (404, "no", "InvalidAccessKeyId"),
        (403, "no", "SignatureDoesNotMatch"),
    ],
)
def test_keystones_refusals(
    identity: Identity, requests_mock: mocking.Mocker, status: int, text: str, code: str
) -> None:
    answer = keystone.error(status, text)
    requests_mock.post(f"{keystone.URL}/s3tokens", status_code=status, json=answer)
    request, query = signed("http://s3.test/b/k")
    assert refused(identity, request, query) == code


def test_our_own_lack_of_rights_is_not_the_callers(
    identity: Identity, requests_mock: mocking.Mocker
) -> None:
    answer = keystone.error(403, "not authorized: identity:s3tokens_validate")
    requests_mock.post(f"{keystone.URL}/s3tokens", status_code=403, json=answer)
    request, query = signed("http://s3.test/b/k")
    with pytest.raises(errors.Unavailable):
        authenticate(request, query, identity)
