"""Spec sections 1.1, 1.2, 1.4: what is common to all requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.magnum_api import KEYSTONE, World, detail, world
from trimaran.magnum.api import app
from trimaran.magnum.api.pipeline import TokenRoute

JSON = {"Content-Type": "application/json"}
BLANK = {"code": "", "title": "", "detail": "", "links": []}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def test_root_document(api: World) -> None:
    answer = api.call("GET", "/", None)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "OpenStack-API-Version" not in answer.headers
    body = answer.json()
    assert body["name"] == "OpenStack Magnum API"
    assert body["versions"] == [
        {
            "id": "v1",
            "status": "CURRENT",
            "max_version": "1.14",
            "min_version": "1.1",
            "links": [{"href": "http://magnum.test:9511/v1/", "rel": "self"}],
        }
    ]


@pytest.mark.parametrize("path", ["/v1", "/v1/"])
def test_version_document(api: World, path: str) -> None:
    answer = api.call("GET", path, None, headers={})
    assert answer.status_code == 200
    assert answer.headers["OpenStack-API-Version"].endswith(" 1.1")
    body = answer.json()
    assert body["id"] == "v1"
    assert body["media_types"] == [
        {"base": "application/json", "type": "application/vnd.openstack.magnum.v1+json"}
    ]
    assert set(body) - {"id", "media_types", "links"} == {
        "clustertemplates",
        "clusters",
        "quotas",
        "certificates",
        "mservices",
        "stats",
        "federations",
        "nodegroups",
        "credentials",
    }
    assert body["nodegroups"][0]["href"] == (
        "http://magnum.test:9511/v1/clusters/{cluster_id}/nodegroups/"
    )


def test_exactly_these_paths_are_public(api: World) -> None:
    public = {
        route.path
        for router in app.ROUTERS
        for route in router.routes
        if not isinstance(route, TokenRoute)
    }
    assert public == {"/v1"}
    for path in app.PUBLIC:
        assert api.call("GET", path, None).status_code == 200
    for path in (
        "/v1/x",
        "/healthcheck/x",
        "/v1/clusters",
        "/metricsx",
        "/openapi.json5",
        "/v1//x",
    ):
        assert api.call("GET", path, None).status_code == 401


@pytest.mark.parametrize("token", [None, "t-nobody", "", "no blanks please"])
def test_no_valid_token(api: World, token: str | None) -> None:
    answer = api.call("GET", "/v1/clusters", token)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{KEYSTONE}"'
    assert answer.json() == {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }


def test_keystone_away(api: World) -> None:
    api.cloud.get(f"{KEYSTONE}/auth/tokens", exc=requests.ConnectionError)
    answer = api.call("GET", "/v1/clusters")
    assert answer.status_code == 503
    (error,) = answer.json()["errors"]
    assert error["code"] == "server"
    assert "keystone" not in error["detail"].lower()


def test_f71_keystone_is_asked_once_for_many_requests(api: World) -> None:
    for _ in range(5):
        assert api.call("GET", "/v1/clusters").status_code == 200
    assert api.asked == ["keystone"]


def test_request_id_is_in_header_and_f50_in_errors(api: World) -> None:
    answer = api.call("GET", "/v1/clusters/nope")
    (error,) = answer.json()["errors"]
    assert error["request_id"] == answer.headers["x-openstack-request-id"]
    assert error["request_id"].startswith("req-")


@pytest.mark.parametrize(
    "path", ["/clusters", "/clusters/", "/v1/clusters/", "/v1/clusters", "/v1/clusters//"]
)
def test_url_forms(api: World, path: str) -> None:
    assert api.call("GET", path).json() == {"clusters": []}


def test_prefix_of_a_trusted_proxy(tmp_path: Path) -> None:
    with world(tmp_path, "[oslo_middleware]\nenable_proxy_headers_parsing = true\n") as api:
        headers = {
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "cloud.test",
            "X-Forwarded-Prefix": "/container-infra",
        }
        body = api.call("GET", "/", None, headers=headers).json()
        assert body["versions"][0]["links"][0]["href"] == "https://cloud.test/container-infra/v1/"
        assert api.call("GET", "/clusters/", headers=headers).status_code == 200


def test_proxy_headers_of_strangers_do_not_count(api: World) -> None:
    body = api.call("GET", "/", None, headers={"X-Forwarded-Host": "evil.test"}).json()
    assert "evil" not in str(body)


@pytest.mark.parametrize("path", ["/v1/bays", "/v1/clusters.json", "/v1/clusters/x/y", "/x%0Ay"])
def test_unknown_path(api: World, path: str) -> None:
    answer = api.call("GET", path)
    assert answer.status_code == 404
    (error,) = answer.json()["errors"]
    assert error == {**BLANK, "status": 404, "request_id": error["request_id"]}


@pytest.mark.parametrize("method", ["PUT", "TRACE"])
def test_method_not_allowed(api: World, method: str) -> None:
    answer = api.call(method, "/v1/clusters")
    assert answer.status_code == 405
    (error,) = answer.json()["errors"]
    assert error == {**BLANK, "status": 405, "request_id": error["request_id"]}


def test_head_is_not_allowed(api: World) -> None:
    assert api.call("HEAD", "/v1/clusters").status_code == 405


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_collection_misses_an_argument(api: World, method: str) -> None:
    answer = api.call(method, "/v1/clusters")
    assert answer.status_code == 400
    assert detail(answer) == 'Missing argument: "cluster_ident"'


def test_post_to_an_item(api: World) -> None:
    answer = api.call("POST", "/v1/clustertemplates/abc", json={})
    assert answer.status_code == 400
    assert detail(answer).startswith(
        "Invalid input for field/attribute cluster_template. Value: 'abc'. unable to convert"
    )


def test_options_is_answered_without_a_token(api: World) -> None:
    assert api.call("OPTIONS", "/v1/clusters", None).status_code == 200


def test_cors(tmp_path: Path) -> None:
    with world(tmp_path, "[cors]\nallowed_origin = https://horizon.test\n") as api:
        preflight = {
            "Origin": "https://horizon.test",
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "X-Auth-Token",
        }
        answer = api.call("OPTIONS", "/v1/clusters", None, headers=preflight)
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "https://horizon.test"
        answer = api.call("GET", "/v1/clusters", headers={"Origin": "https://horizon.test"})
        assert answer.headers["Access-Control-Allow-Origin"] == "https://horizon.test"


@pytest.mark.parametrize(
    ("content", "media_type", "status", "text"),
    [
        (b"{", "application/json", 400, "Request is not in valid JSON format"),
        (b"\xff\xfe{", "application/json", 400, "Request is not in valid JSON format"),
        (b"[" * 100_000, "application/json", 400, "Request is not in valid JSON format"),
        (b"9" * 9_999, "application/json", 400, "Request is not in valid JSON format"),
        (b"", "application/json", 400, 'Missing argument: "cluster_template"'),
        (b"null", "application/json", 400, 'Missing argument: "cluster_template"'),
        (b"{}", "text/plain", 415, "Unknown mimetype: text/plain"),
        (b"{}", "application/octet-stream", 415, "Unknown mimetype: application/octet-stream"),
        (b"{}", "Application/JSON; charset=utf-8", 400, None),
    ],
)
def test_bodies(api: World, content: bytes, media_type: str, status: int, text: str | None) -> None:
    headers = {"Content-Type": media_type}
    answer = api.call("POST", "/v1/clustertemplates", content=content, headers=headers)
    assert answer.status_code == status
    if text is not None:
        assert detail(answer) == text


@pytest.mark.parametrize("body", ["[]", '"text"', "7", "true", "[{}]"])
def test_f28_body_that_is_no_object(api: World, body: str) -> None:
    for path in ("/v1/clustertemplates", "/v1/clusters"):
        answer = api.call("POST", path, content=body, headers=JSON)
        assert answer.status_code == 400
        assert "Value not a valid dict" in detail(answer)


def test_body_over_the_limit(api: World) -> None:
    answer = api.call("POST", "/v1/clusters", content=b"x" * 1_100_000, headers=JSON)
    assert answer.status_code == 413
    assert answer.json()["errors"][0]["status"] == 413


def test_empty_body_may_have_any_type(api: World) -> None:
    api.template()
    headers = {"Content-Type": "application/octet-stream"}
    assert api.call("DELETE", "/v1/clustertemplates/ct", headers=headers).status_code == 204


def test_f49_title_ends_before_the_first_dot(api: World) -> None:
    body = {"image_id": "ub", "coe": "kubernetes", "dns_nameserver": "8.8.8.8,1.1"}
    answer = api.call("POST", "/v1/clustertemplates", json=body)
    (error,) = answer.json()["errors"]
    assert error["title"].endswith("but received 8")
    assert error["detail"].endswith("but received 8.8.8.8,1.1.")
    assert error["code"] == "client"


def test_unexpected_error_tells_nothing(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(type(api.parts.db), "read", broken)
    answer = api.call("GET", "/v1/clusters")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    (error,) = answer.json()["errors"]
    assert error["code"] == "server"
    assert error["status"] == 500


def test_text_that_no_database_stores(api: World) -> None:
    for name in ('"\\u0000"', '"\\ud800"'):
        body = f'{{"image_id": "ub", "name": {name}}}'
        answer = api.call("POST", "/v1/clustertemplates", content=body, headers=JSON)
        assert answer.status_code == 400
    assert api.call("GET", "/v1/clusters/%00").status_code == 400


def test_openapi_document(api: World) -> None:
    document = api.call("GET", "/openapi.json", None).json()
    post = document["paths"]["/v1/clusters"]["post"]
    assert set(post["responses"]) == {"202", "default"}
    schema = document["components"]["schemas"]["ClusterCreate"]["properties"]
    assert schema["name"]["anyOf"][0]["maxLength"] == 242
    assert "{path}" not in str(document["paths"].keys())
