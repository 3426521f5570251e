"""What Keystone is told, checked by Keystone's own signer against botocore's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from botocore.auth import SigV2Auth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from keystoneclient.contrib.ec2.utils import Ec2Signer

from trimaran.ec2 import auth
from trimaran.ec2.auth import Signed
from trimaran.ec2.protocol import parameters
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Unauthenticated, Unavailable

URL = "http://ec2.example:8788"
KEYS = Credentials("AKACCESS", "secret")
CALL = {"Action": "DescribeVpcs", "Version": "2016-11-15", "Filter.1.Name": "tag:é ü/~*"}


class Keystone:
    """Verifies as Keystone 30 does: python-keystoneclient's signer on what it was sent."""

    def __init__(self, secret: str = "secret") -> None:
        self.secret = secret
        self.asked: list[dict[str, Any]] = []

    def ec2(self, credentials: dict[str, Any]) -> Any:
        self.asked.append(credentials)
        signature = Ec2Signer(self.secret).generate(
            {**credentials, "params": dict(credentials["params"])}
        )
        if signature != credentials["signature"]:
            error = Unauthenticated()
            error.remote_status = 401  # type: ignore[attr-defined]
            raise error
        return type("Token", (), {"project_id": "p" * 32, "user_id": "u"})()


def as_received(request: AWSRequest, **changed: Any) -> Signed:
    prepared = request.prepare()
    parts = urlsplit(prepared.url)
    body = prepared.body or b""
    body = body.encode() if isinstance(body, str) else body
    headers = {
        name.lower(): value.decode() if isinstance(value, bytes) else value
        for name, value in prepared.headers.items()
    }
    headers.setdefault("host", parts.netloc)
    body = changed.pop("body", body)
    query = changed.pop("query", parts.query)
    headers.update(changed.pop("headers", {}))
    sent = parameters.collect(query.encode(), headers.get("content-type", ""), body)
    return Signed(prepared.method, parts.path or "/", headers, sent, body)


def v4_post(**options: Any) -> AWSRequest:
    request = AWSRequest(
        "POST",
        URL + "/",
        headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
        data=urlencode(CALL),
    )
    SigV4Auth(KEYS, "ec2", "RegionOne").add_auth(request)
    return request


def v4_get() -> AWSRequest:
    request = AWSRequest("GET", URL + "/services/Cloud", params=dict(CALL))
    SigV4Auth(KEYS, "ec2", "RegionOne").add_auth(request)
    return request


def presigned(expires: int = 600) -> AWSRequest:
    request = AWSRequest("GET", URL + "/", params=dict(CALL))
    SigV4QueryAuth(KEYS, "ec2", "RegionOne", expires=expires).add_auth(request)
    return request


def v2(method: str = "POST", **extra: str) -> AWSRequest:
    request = AWSRequest(method, URL + "/", data={**CALL, **extra})
    if method == "GET":
        request = AWSRequest(method, URL + "/", params={**CALL, **extra})
    SigV2Auth(KEYS).add_auth(request)
    if method == "POST":
        request.data = urlencode(request.data)
        request.headers["Content-Type"] = "application/x-www-form-urlencoded"
    return request


def check(signed: Signed, keystone: Any = None, now: datetime | None = None) -> Any:
    return auth.authenticate(signed, keystone or Keystone(), now or datetime.now(UTC), 300)


def refusal(signed: Signed, keystone: Any = None, now: datetime | None = None) -> EC2Error:
    with pytest.raises(EC2Error) as caught:
        check(signed, keystone, now)
    return caught.value


FORMS = {
    "v4 post": v4_post,
    "v4 get": v4_get,
    "presigned": presigned,
    "v2 post": v2,
    "v2 get": lambda: v2("GET"),
}


@pytest.mark.parametrize("form", FORMS)
def test_keystone_computes_the_signature_that_botocore_sent(form: str) -> None:
    assert check(as_received(FORMS[form]())).project_id == "p" * 32


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_secret_is_an_auth_failure_with_keystones_status(form: str) -> None:
    error = refusal(as_received(FORMS[form]()), Keystone("other"))
    assert (error.code, error.status) == ("AuthFailure", 401)


@pytest.mark.parametrize("form", FORMS)
def test_a_changed_parameter_breaks_the_signature(form: str) -> None:
    request = as_received(FORMS[form]())
    for part in ("query", "form"):
        sent = dict(getattr(request.parameters, part))
        if "Action" in sent:
            sent["Action"] = "TerminateInstances"
            changed = parameters.collect(
                urlencode(sent).encode() if part == "query" else b"",
                "",
                urlencode(sent).encode() if part == "form" else request.body,
            )
            body = urlencode(sent).encode() if part == "form" else request.body
            altered = Signed(request.method, request.path, request.headers, changed, body)
            assert refusal(altered).code == "AuthFailure"
            return
    pytest.fail("the form has no Action to change")


def test_parameters_outside_the_signature_of_a_post_are_refused() -> None:
    # Keystone would accept both: it leaves the query of a POST unverified.
    for extra in ("Action=TerminateInstances", "Timestamp=2030-01-01T00:00:00Z"):
        keystone = Keystone()
        error = refusal(as_received(v4_post(), query=extra), keystone)
        assert error.code == "AuthFailure"
        assert not keystone.asked


def test_a_header_signature_cannot_be_passed_off_as_a_query_signature() -> None:
    request = as_received(v4_post())
    stolen = request.v4_header["Signature"]  # type: ignore[index]
    query = urlencode(
        {"Signature": stolen, "AWSAccessKeyId": "AKACCESS", "Action": "TerminateInstances"}
    )
    keystone = Keystone()
    assert refusal(as_received(v4_post(), query=query), keystone).code == "AuthFailure"
    assert not keystone.asked
    presented = urlencode({"X-Amz-Signature": stolen, "Action": "TerminateInstances"})
    assert refusal(as_received(v4_post(), query=presented), keystone).code == "AuthFailure"
    assert not keystone.asked


def test_the_authorization_header_goes_to_keystone_only_when_it_is_the_signature() -> None:
    keystone = Keystone()
    request = as_received(v2(), headers={"authorization": "AWS4-HMAC-SHA256 Credential=x"})
    check(request, keystone)
    assert "Authorization" not in keystone.asked[0]["headers"]
    check(as_received(v4_get()), keystone)
    assert keystone.asked[1]["headers"]["Authorization"].startswith("AWS4")
    assert "X-Amz-Date" in keystone.asked[1]["headers"]


@pytest.mark.parametrize(
    ("query", "headers", "text"),
    [
        ("Action=DescribeVpcs", {}, "Signature not provided"),
        ("Action=X", {"authorization": "Basic abc"}, "Signature not provided"),
        ("Action=X", {"authorization": "AWS4-HMAC-SHA256 "}, "Signature not provided"),
        ("Signature=x&SignatureVersion=2", {}, "Access key not provided"),
        ("Signature=x&SignatureVersion=3&AWSAccessKeyId=a", {}, "SignatureVersion"),
        ("Signature=x&AWSAccessKeyId=a", {}, "SignatureVersion"),
        ("Signature=x&AWSAccessKeyId=a&SignatureVersion=0", {}, "Timestamp"),
        ("Signature=&AWSAccessKeyId=a&SignatureVersion=2", {}, "malformed"),
        ("Signature=%C3%A9&AWSAccessKeyId=a&SignatureVersion=2", {}, "malformed"),
        ("Signature=x&AWSAccessKeyId=%C3%A9&SignatureVersion=2", {}, "malformed"),
        ("X-Amz-Signature=x", {}, "incomplete"),
        (
            "X-Amz-Signature=x&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-SignedHeaders=host"
            "&X-Amz-Credential=a/20240101/r",
            {},
            "scope",
        ),
        (
            "",
            {"authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, Signature=x"},
            "SignedHeaders",
        ),
        (
            "",
            {
                "authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, "
                "Signature=x",
            },
            "scope",
        ),
    ],
)
def test_what_cannot_be_a_signature_never_reaches_keystone(
    query: str, headers: dict[str, str], text: str
) -> None:
    keystone = Keystone()
    sent = parameters.collect(query.encode(), "", b"")
    error = refusal(Signed("GET", "/", {"host": "h", **headers}, sent, b""), keystone)
    assert (error.code, error.status) == ("AuthFailure", 400)
    assert text in error.message
    assert not keystone.asked


@pytest.mark.parametrize("form", ["v4 post", "v4 get", "presigned"])
@pytest.mark.parametrize("minutes", [-16, 16])
def test_a_skewed_v4_date_is_expired(form: str, minutes: int) -> None:
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    keystone = Keystone()
    error = refusal(as_received(FORMS[form]()), keystone, now)
    assert (error.code, error.status) == ("RequestExpired", 400)
    assert not keystone.asked
    check(as_received(FORMS[form]()), keystone, datetime.now(UTC) + timedelta(minutes=minutes / 2))


@pytest.mark.parametrize(
    ("timestamp", "expired"),
    [
        ("2024-01-01T00:00:00Z", False),
        ("2024-01-01T00:05:00Z", False),
        ("2023-12-31T23:55:00.123Z", False),
        ("2024-01-01T00:00:00.123456Z", False),
        ("2023-12-31T23:54:59Z", True),
        ("2024-01-01T00:05:01Z", True),
        ("2024-01-01T00:00:00", True),
        ("2024-01-01T00:00:00.1234567Z", True),
        ("2024-01-01T00:00:00+00:00", True),
        ("2024-13-01T00:00:00Z", True),
        ("junk", True),
        ("", True),
    ],
)
def test_the_timestamp_window(timestamp: str, expired: bool) -> None:
    sent = parameters.collect(
        urlencode({"Signature": "x", "Timestamp": timestamp}).encode(), "", b""
    )
    request = Signed("GET", "/", {}, sent, b"")
    now = datetime(2024, 1, 1, tzinfo=UTC)
    if expired:
        with pytest.raises(EC2Error) as caught:
            auth.check_time(request, now, 300)
        assert caught.value.code == "RequestExpired"
    else:
        auth.check_time(request, now, 300)


def test_expires_ends_a_request_and_excludes_timestamp() -> None:
    now = datetime(2024, 1, 1, tzinfo=UTC)

    def sent(**names: str) -> Signed:
        query = urlencode({"Signature": "x", **names}).encode()
        return Signed("GET", "/", {}, parameters.collect(query, "", b""), b"")

    auth.check_time(sent(Expires="2024-01-01T00:00:00Z"), now, 300)
    auth.check_time(sent(Expires="2023-12-31T23:59:59Z"), now, 300)
    with pytest.raises(EC2Error, match="expired"):
        auth.check_time(sent(Expires="2023-12-31T23:59:58Z"), now, 300)
    with pytest.raises(EC2Error) as caught:
        auth.check_time(sent(Expires="2024-01-01T00:00:00Z", Timestamp="x"), now, 300)
    assert (caught.value.code, caught.value.status) == ("InvalidRequest", 400)


def test_a_presigned_request_lives_as_long_as_it_says() -> None:
    request = as_received(presigned(expires=60))
    assert refusal(request, now=datetime.now(UTC) + timedelta(seconds=90)).code == "RequestExpired"
    bad = as_received(
        presigned(), query=presigned().prepare().url.split("?")[1] + "&X-Amz-Expires=x"
    )
    assert refusal(bad).code == "AuthFailure"


def test_keystones_absence_is_not_the_callers_fault() -> None:
    class Away:
        def ec2(self, credentials: Any) -> Any:
            raise Unavailable(service="identity")

    with pytest.raises(Unavailable):
        check(as_received(v4_post()), Away())


def test_an_unknown_key_keeps_keystones_404() -> None:
    class Unknown:
        def ec2(self, credentials: Any) -> Any:
            error = Unauthenticated()
            error.remote_status = 404  # type: ignore[attr-defined]
            raise error

    error = refusal(as_received(v4_post()), Unknown())
    assert (error.code, error.status) == ("AuthFailure", 404)
