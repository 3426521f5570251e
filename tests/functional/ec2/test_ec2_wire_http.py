"""The EC2 wire of a running daemon against a real Keystone: signatures and bad input."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import pytest
import requests
from botocore.auth import SigV2Auth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from keystoneclient.contrib.ec2.utils import Ec2Signer

from tests.support.cloud import DEMO, READER, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ports import free_port

CALL = {"Action": "GetCallerIdentity", "Version": "2016-11-15"}
Keys = tuple[str, str]


@pytest.fixture(scope="module")
def keys(cloud_env: CloudEnv) -> Keys:
    return keys_of(cloud_env)


@pytest.fixture(scope="module")
def api(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("ec2")
    port = free_port()
    conf = write_conf(home, cloud_env, f"sqlite:///{home}/ec2.sqlite", ec2api_listen_port=port)
    with running("ec2-api", conf, port) as daemon:
        yield daemon


def send(request: AWSRequest, **kwargs: Any) -> requests.Response:
    ready = request.prepare()
    return requests.request(
        ready.method, ready.url, data=ready.body, headers=dict(ready.headers), timeout=60, **kwargs
    )


def form(url: str, call: dict[str, str]) -> AWSRequest:
    return AWSRequest(
        "POST",
        url,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        data=urlencode(call),
    )


def v4(url: str, keys: Keys, call: dict[str, str]) -> AWSRequest:
    request = form(url, call)
    SigV4Auth(Credentials(*keys), "ec2", "RegionOne").add_auth(request)
    return request


def v4_get(url: str, keys: Keys, call: dict[str, str]) -> AWSRequest:
    request = AWSRequest("GET", url, params=dict(call))
    SigV4Auth(Credentials(*keys), "ec2", "RegionOne").add_auth(request)
    return request


def presigned(url: str, keys: Keys, call: dict[str, str]) -> AWSRequest:
    request = AWSRequest("GET", url, params=dict(call))
    SigV4QueryAuth(Credentials(*keys), "ec2", "RegionOne", expires=300).add_auth(request)
    return request


def v2_get(url: str, keys: Keys, call: dict[str, str]) -> AWSRequest:
    request = AWSRequest("GET", url, params=dict(call))
    SigV2Auth(Credentials(*keys)).add_auth(request)
    return request


def v2_post(url: str, keys: Keys, call: dict[str, str]) -> AWSRequest:
    request = AWSRequest("POST", url, data=dict(call))
    SigV2Auth(Credentials(*keys)).add_auth(request)
    return form(url, request.data)


FORMS = {
    "v4 post": v4,
    "v4 get": v4_get,
    "presigned": presigned,
    "v2 get": v2_get,
    "v2 post": v2_post,
}


def code_of(response: requests.Response) -> str:
    """The error code; also checks that it is an EC2 error document with the header's id."""
    assert response.headers["Content-Type"].startswith("text/xml")
    root = ElementTree.fromstring(response.content)
    assert root.tag == "Response"
    assert root.findtext("RequestID") == response.headers["x-amzn-RequestId"]
    return str(root.findtext("Errors/Error/Code"))


@pytest.mark.parametrize("path", ["/", "/services/Cloud", "/a/b%20c"])
@pytest.mark.parametrize("kind", FORMS)
def test_every_form_of_signature_is_accepted_on_any_path(
    api: Daemon, keys: Keys, kind: str, path: str
) -> None:
    response = send(FORMS[kind](api.url + path, keys, CALL))
    assert response.status_code == 200, response.text
    assert "<Account>" in response.text


@pytest.mark.parametrize("kind", FORMS)
def test_values_that_need_quoting_survive_every_form(api: Daemon, keys: Keys, kind: str) -> None:
    call = {**CALL, "Action": "FooBar", "X": "é ü/+&=~*😀"}
    assert code_of(send(FORMS[kind](api.url + "/", keys, call))) == "InvalidAction"


@pytest.mark.parametrize(
    ("version", "times"),
    [
        ("0", {"Timestamp": 0}),
        ("1", {"Timestamp": 0}),
        ("1", {"Expires": 240}),
        ("2", {"Expires": 240}),
        ("2", {}),
    ],
)
def test_older_signatures_and_their_times(
    api: Daemon, keys: Keys, version: str, times: dict[str, int]
) -> None:
    call = {**CALL, "AWSAccessKeyId": keys[0], "SignatureVersion": version}
    call["SignatureMethod"] = "HmacSHA256" if version == "2" else "HmacSHA1"
    for name, seconds in times.items():
        moment = datetime.now(UTC) + timedelta(seconds=seconds)
        call[name] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    what = {"params": dict(call), "verb": "GET", "host": urlsplit(api.url).netloc, "path": "/"}
    call["Signature"] = Ec2Signer(keys[1]).generate(what)
    assert requests.get(api.url, params=call, timeout=60).status_code == 200
    call["Signature"] = call["Signature"][::-1]
    assert requests.get(api.url, params=call, timeout=60).status_code == 401


@pytest.mark.parametrize("kind", FORMS)
def test_a_wrong_secret_is_401(api: Daemon, keys: Keys, kind: str) -> None:
    response = send(FORMS[kind](api.url + "/", (keys[0], "wrong"), CALL))
    assert (response.status_code, code_of_any(response)) == (401, "AuthFailure")


@pytest.mark.parametrize("kind", FORMS)
def test_an_unknown_key_is_refused(api: Daemon, keys: Keys, kind: str) -> None:
    response = send(FORMS[kind](api.url + "/", ("f" * 32, keys[1]), CALL))
    assert response.status_code in (401, 404)
    assert code_of_any(response) == "AuthFailure"


def code_of_any(response: requests.Response) -> str:
    """The code in the envelope of EC2 or of STS."""
    return str(
        next(
            node for node in ElementTree.fromstring(response.content).iter() if "Code" in node.tag
        ).text
    )


def test_a_revoked_credential_is_refused_at_once(api: Daemon, cloud_env: CloudEnv) -> None:
    session = cloud_env.session(DEMO)
    base = f"{cloud_env.auth_url}/users/{session.get_user_id()}/credentials/OS-EC2"
    row = session.post(base, json={"tenant_id": session.get_project_id()}).json()["credential"]
    mine = (row["access"], row["secret"])
    assert send(v4(api.url + "/", mine, CALL)).status_code == 200
    session.delete(f"{base}/{row['access']}")
    response = send(v4(api.url + "/", mine, CALL))
    assert response.status_code in (401, 404)
    assert code_of_any(response) == "AuthFailure"


@pytest.mark.parametrize("minutes", [-40, -16, 16])
def test_a_skewed_clock_is_expired(
    api: Daemon, keys: Keys, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    skewed = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: skewed)
    call = {**CALL, "Action": "DescribeRegions"}
    for kind in ("v4 post", "v4 get", "presigned"):
        response = send(FORMS[kind](api.url + "/", keys, call))
        assert (response.status_code, code_of(response)) == (400, "RequestExpired")


def test_a_v2_timestamp_ten_minutes_old_is_expired(
    api: Daemon, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (datetime.now(UTC) - timedelta(minutes=10)).timetuple()
    monkeypatch.setattr("botocore.auth.time.gmtime", lambda *_: old)
    response = send(v2_get(api.url + "/", keys, {**CALL, "Action": "DescribeRegions"}))
    assert (response.status_code, code_of(response)) == (400, "RequestExpired")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"Version": "2016-11-15"}, "MissingAction"),
        ({"Action": "FooBar"}, "InvalidAction"),
        ({"Action": "DescribeRegions", "Foo": "1"}, "UnknownParameter"),
        ({"Action": "DescribeRegions", "DryRun": "perhaps"}, "ValidationError"),
        ({"Action": "DescribeInstances", "InstanceId": "i-1"}, "InvalidParameterValue"),
        ({"Action": "DescribeInstances", "Filter.1.Name": "\0"}, "InvalidParameterValue"),
        ({"Action": "TerminateInstances"}, "MissingParameter"),
        ({f"P.{n}": "x" for n in range(11_000)}, "InvalidRequest"),
        ({"Action": "DescribeInstances", ".".join(["Filter"] * 500): "x"}, "UnknownParameter"),
    ],
)
def test_bad_requests_are_told_in_xml(
    api: Daemon, keys: Keys, call: dict[str, str], code: str
) -> None:
    response = send(v4(api.url + "/", keys, call))
    assert (response.status_code, code_of(response)) == (400, code)


def test_a_dry_run_is_412(api: Daemon, keys: Keys) -> None:
    response = send(v4(api.url + "/", keys, {"Action": "DescribeRegions", "DryRun": "true"}))
    assert (response.status_code, code_of(response)) == (412, "DryRunOperation")


def test_a_reader_may_look_but_not_touch(api: Daemon, cloud_env: CloudEnv) -> None:
    client = api.client(keys_of(cloud_env, READER))
    assert client.describe_regions()["Regions"]
    with pytest.raises(ClientError) as caught:
        client.terminate_instances(InstanceIds=["i-00000001"])
    assert caught.value.response["Error"]["Code"] == "UnauthorizedOperation"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_the_envelope_of_a_success(api: Daemon, keys: Keys) -> None:
    response = send(
        v2_get(api.url + "/", keys, {"Action": "DescribeRegions", "Version": "2010-08-31"})
    )
    assert response.headers["Content-Type"].startswith("text/xml")
    root = ElementTree.fromstring(response.content)
    space = "{http://ec2.amazonaws.com/doc/2010-08-31/}"
    assert root.tag == space + "DescribeRegionsResponse"
    assert root[0].tag == space + "requestId"
    assert root[0].text == response.headers["x-amzn-RequestId"]
    assert str(root[0].text).startswith("req-")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/healthcheck/", "/metricsx", "/a%0Ab", "//x", "/%ff"])
def test_everything_unsigned_is_an_auth_failure(api: Daemon, method: str, path: str) -> None:
    response = requests.request(method, api.url + path, timeout=60)
    assert (response.status_code, code_of(response)) == (400, "AuthFailure")


def test_a_method_that_http_does_not_know_is_refused_in_xml(api: Daemon) -> None:
    response = requests.request("FOO", api.url + "/", timeout=60)
    assert (response.status_code, code_of(response)) == (400, "InvalidParameterValue")


def test_health_and_metrics_need_no_signature(api: Daemon) -> None:
    assert requests.get(api.url + "/healthcheck", timeout=60).status_code == 200
    detail = requests.get(api.url + "/healthcheck?detailed", timeout=60).json()
    assert set(detail["checks"]) >= {"database", "identity"}
    assert "trimaran" in requests.get(api.url + "/metrics", timeout=60).text


def test_a_large_body_or_header_is_refused_in_xml(api: Daemon, keys: Keys) -> None:
    body = requests.post(api.url, data=b"x" * 3_000_000, timeout=60)
    assert (body.status_code, code_of(body)) == (413, "RequestEntityTooLarge")
    header = requests.get(api.url, headers={"X-Big": "x" * 1_000_000}, timeout=60)
    assert 400 <= header.status_code < 500
    assert code_of(header) == "RequestEntityTooLarge"
    query = send(v4_get(api.url + "/", keys, {**CALL, "Y": "x" * 20_000}))
    assert (query.status_code, code_of(query)) == (414, "InvalidRequest")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /?Action=%zz&x=%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: AWS4-HMAC-SHA256 \xff=\xfe,Signature=\xfd\r\n"
        b"Connection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"3\r\na=b\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_raw_nonsense_gets_an_answer_and_never_a_500(api: Daemon, raw: bytes) -> None:
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(raw)
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert 400 <= response.status < 500
        assert b"<Response><Errors>" in response.read()


def test_no_secret_reaches_the_log(api: Daemon, keys: Keys) -> None:
    call = {"Action": "RunInstances", "UserData": "dXNlcmRhdGE=", "MinCount": "x"}
    assert send(v4_get(api.url + "/", keys, call)).status_code == 400
    log = api.lines()
    assert keys[1] not in log
    assert "dXNlcmRhdGE" not in log
    assert "Signature=" not in log
