"""Login, profile, logout and configuration, from the wire's side (spec/skyline.md 1 and 2)."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
import requests_mock
from fastapi import FastAPI, Response
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from tests.support.console import PASSWORD, Cloud, claims, cookie, settings
from trimaran.console import app as console
from trimaran.console import public
from trimaran.db import migrate
from trimaran.db.queries import console as queries
from trimaran.web.worker import size_threads

LOGIN = "/api/v1/login"
PROFILE = "/api/v1/profile"
GOOD = {"username": "demo", "password": PASSWORD}
REQUEST_ID = "req-01234567-89ab-cdef-0123-456789abcdef"

Build = Callable[..., TestClient]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database, to be copied."""
    file = tmp_path_factory.mktemp("console") / "template.sqlite"
    migrate.upgrade(f"sqlite:///{file}", "console")
    return file


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with requests_mock.Mocker() as mock:
        yield Cloud(mock)


@pytest.fixture
def build(cloud: Cloud, template: Path, tmp_path: Path) -> Iterator[Build]:
    """Builds a console; all of one test share a database."""
    file = tmp_path / "console.sqlite"
    file.write_bytes(template.read_bytes())
    apps: list[FastAPI] = []

    def builder(**groups: dict[str, Any]) -> TestClient:
        app = console.build(settings(f"sqlite:///{file}", **groups))
        apps.append(app)
        # No lifespan: the background work has tests of its own.
        return TestClient(app, follow_redirects=False)

    yield builder
    for app in apps:
        app.state.parts.db.dispose()


@pytest.fixture
def client(build: Build) -> TestClient:
    return build()


@pytest.fixture
def demo(client: TestClient) -> TestClient:
    """A client that is logged in."""
    assert client.post(LOGIN, json=GOOD).status_code == 200
    return client


def session(value: str) -> dict[str, str]:
    """The header of a session cookie; a browser's jar would hide which one is sent."""
    return {"Cookie": f"session={value}"}


def cookies_of(answer: Any) -> list[str]:
    return list(answer.headers.get_list("set-cookie"))


# -- login ---------------------------------------------------------------


def test_login_answers_the_profile_and_two_cookies(client: TestClient) -> None:
    answer = client.post(LOGIN, json=GOOD)
    assert answer.status_code == 200
    body = answer.json()
    assert list(body) == [
        "keystone_token",
        "region",
        "exp",
        "uuid",
        "project",
        "user",
        "roles",
        "keystone_token_exp",
        "base_domains",
        "endpoints",
        "projects",
        "default_project_id",
        "version",
        "regions",
    ]
    assert body["project"] == {
        "id": "p2",
        "name": "demo2",
        "domain": {"id": "corp", "name": "Default"},
    }
    assert body["user"]["name"] == "demo"
    assert body["roles"] == [{"id": "r1", "name": "member"}, {"id": "r2", "name": "reader"}]
    assert body["base_domains"] == ["heat_user_domain"]
    assert body["default_project_id"] == "p2"
    assert body["regions"] == ["RegionOne"]
    assert body["version"] == "9.0.0"
    held, expiry = cookies_of(answer)
    assert re.fullmatch(r"session=[\w.-]+; HttpOnly; Path=/; SameSite=lax", held)
    assert expiry == f"time_expired={body['exp']}; Path=/; SameSite=lax"
    said = claims(client.cookies["session"])
    assert said == {name: body[name] for name in ("keystone_token", "region", "exp", "uuid")}
    # Compact JSON, and nothing that upstream does not send.
    assert b": " not in answer.content
    assert "x-openstack-request-id" not in answer.headers


def test_disabled_projects_are_listed_and_domains_have_names(client: TestClient) -> None:
    projects = client.post(LOGIN, json=GOOD).json()["projects"]
    assert projects == {
        "p1": {
            "name": "demo",
            "enabled": True,
            "domain_id": "default",
            "domain_name": "Default",
            "description": "one",
        },
        "p2": {
            "name": "demo2",
            "enabled": True,
            "domain_id": "corp",
            "domain_name": "Corp",
            "description": "",
        },
        "p3": {
            "name": "off",
            "enabled": False,
            "domain_id": "default",
            "domain_name": "Default",
            "description": "",
        },
    }


@pytest.mark.parametrize(
    ("default", "chosen"), [("p2", "p2"), ("p3", "p1"), ("elsewhere", "p1"), (None, "p1")]
)
def test_the_default_project_is_taken_if_it_can_be(
    client: TestClient, cloud: Cloud, default: str | None, chosen: str
) -> None:
    cloud.default_project = default
    body = client.post(LOGIN, json=GOOD).json()
    assert body["project"]["id"] == chosen
    assert body["default_project_id"] == default


def test_a_login_costs_few_requests(client: TestClient, cloud: Cloud) -> None:
    client.post(LOGIN, json=GOOD)
    cloud.seen.clear()
    client.post(LOGIN, json=GOOD)
    # Upstream, warm: 15 to Keystone, 1 to Neutron (spec section 10).
    assert sorted(cloud.seen) == [
        ("GET", "auth/projects"),
        ("GET", "users/u1"),
        ("POST", "auth/tokens"),
    ]


def test_the_region_in_the_body_is_ignored_and_unknown_members_too(client: TestClient) -> None:
    answer = client.post(LOGIN, json={**GOOD, "region": "Nowhere", "more": [1]})
    assert (answer.status_code, answer.json()["region"]) == (200, "RegionOne")


@pytest.mark.parametrize(
    ("domain", "sent"), [("corp", "corp"), (None, "Default"), ("", "Default"), (..., "Default")]
)
def test_the_domain_is_a_name_with_a_default(
    client: TestClient, cloud: Cloud, domain: Any, sent: str
) -> None:
    bodies: list[Any] = []
    cloud.before = lambda: None
    original = cloud._authenticate

    def spy(request: Any, context: Any) -> Any:
        bodies.append(request.json())
        return original(request, context)

    cloud._authenticate = spy  # type: ignore[method-assign]
    client.post(LOGIN, json=GOOD if domain is ... else {**GOOD, "domain": domain})
    assert bodies[0]["auth"]["identity"]["password"]["user"]["domain"] == {"name": sent}
    assert "scope" not in bodies[0]["auth"]


def test_a_wrong_password_is_401_in_the_client_librarys_words(client: TestClient) -> None:
    answer = client.post(LOGIN, json={**GOOD, "password": "wrong"})
    assert answer.status_code == 401
    assert answer.json() == {
        "detail": "The request you have made requires authentication. (HTTP 401) "
        "(Request-ID: req-keystone)"
    }
    assert cookies_of(answer) == []


@pytest.mark.parametrize(
    "text",
    [
        "The account is locked for user: 1234",
        "The account is disabled for user: 1234",
        "The password is expired and needs to be changed for user: 1234.",
    ],
)
def test_the_texts_that_the_front_end_looks_for_pass_through(
    client: TestClient, cloud: Cloud, text: str
) -> None:
    cloud.refusal = (401, text)
    answer = client.post(LOGIN, json=GOOD)
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith(text)


@pytest.mark.parametrize("projects", [[], [{"id": "p3", "name": "off", "enabled": False}]])
def test_without_a_project_there_is_no_login(
    client: TestClient, cloud: Cloud, projects: list[dict[str, Any]]
) -> None:
    cloud.projects = projects
    cloud.default_project = None
    answer = client.post(LOGIN, json=GOOD)
    assert answer.status_code == 401
    assert answer.json() == {"detail": "You are not authorized for any projects or domains."}
    assert cookies_of(answer) == []


def test_a_second_factor_is_asked_for(client: TestClient) -> None:
    answer = client.post(LOGIN, json={"username": "totp", "password": "x"})
    assert answer.status_code == 401
    assert answer.json() == {"detail": {"totp_required": True, "receipt": "a-receipt"}}


@pytest.mark.parametrize(
    ("body", "kind", "where"),
    [
        ({"username": "demo"}, "missing", ["body", "password"]),
        ({"password": "x"}, "missing", ["body", "username"]),
        ({**GOOD, "username": 5}, "string_type", ["body", "username"]),
        ({**GOOD, "domain": ["x"]}, "string_type", ["body", "domain"]),
        ([], "model_attributes_type", ["body"]),
    ],
)
def test_a_bad_body_is_422_in_pydantics_form(
    client: TestClient, cloud: Cloud, body: Any, kind: str, where: list[str]
) -> None:
    answer = client.post(LOGIN, json=body)
    assert answer.status_code == 422
    (fault,) = answer.json()["detail"]
    assert (fault["type"], fault["loc"]) == (kind, where)
    assert set(fault) >= {"type", "loc", "msg", "input"}
    assert cloud.seen == []


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b'{"username": "demo", "password": "\xff\xfe"}', 400),
        (b'{"username": NaN, "password": "x"}', 422),
        (b'{"username": 1e999}', 422),
        (b'{"username": ["\\ud800"]}', 422),
        (b"[" * 100000, 400),
        (b"\x00\x01\x02", 422),
        (b"null", 422),
    ],
)
def test_no_body_makes_a_500(client: TestClient, cloud: Cloud, raw: bytes, status: int) -> None:
    answer = client.post(LOGIN, content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert "detail" in answer.json()
    assert cloud.seen == []


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("", 200),
        (REQUEST_ID, 200),
        (REQUEST_ID + "-and-more", 200),
        ("foo", 422),
        ("req-1", 422),
        (REQUEST_ID.upper(), 422),
    ],
)
def test_the_request_id_is_checked_where_it_is_declared(
    client: TestClient, value: str, status: int
) -> None:
    headers = {"X-Openstack-Request-Id": value}
    answer = client.post(LOGIN, json=GOOD, headers=headers)
    assert answer.status_code == status
    if status == 422:
        (fault,) = answer.json()["detail"]
        assert fault["type"] == "string_pattern_mismatch"
        assert fault["loc"] == ["header", "X-Openstack-Request-Id"]
    assert client.get("/api/v1/config", headers=headers).status_code == 200


def test_request_id_and_address_go_to_keystone(build: Build, cloud: Cloud) -> None:
    client = build(default={"secure_proxy_addr_header": "X-Real-IP"})
    headers = {"X-Openstack-Request-Id": REQUEST_ID, "X-Real-IP": "9.9.9.9"}
    client.post(LOGIN, json=GOOD, headers=headers)
    sent = cloud.headers[0]
    assert sent["X-OpenStack-Request-ID"] == REQUEST_ID
    assert sent["Forwarded"].startswith("for=9.9.9.9;by=")


def test_the_session_cookie_is_for_https_only_behind_https(client: TestClient) -> None:
    answer = client.post(LOGIN, json=GOOD, headers={"X-Forwarded-Proto": "https"})
    held, expiry = cookies_of(answer)
    assert "; Secure" in held
    assert "Secure" not in expiry
    assert "HttpOnly" not in expiry


# -- outages (F20) -------------------------------------------------------


def test_an_outage_of_keystone_is_503_and_does_not_log_anybody_out(
    demo: TestClient, cloud: Cloud
) -> None:
    cloud.down.add("identity")
    for answer in (
        demo.post(LOGIN, json=GOOD),
        demo.get(PROFILE),
    ):
        assert answer.status_code == 503
        assert answer.json() == {"message": "The service is temporarily unavailable."}
        assert cookies_of(answer) == []
    assert demo.get("/api/v1/config").status_code == 200
    cloud.down.clear()
    time.sleep(1.1)  # identity.auth.BACKOFF: a failed try is not repeated at once
    assert demo.get(PROFILE).status_code == 200


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_of_keystone_is_503(client: TestClient, cloud: Cloud, status: int) -> None:
    cloud.refusal = (status, "An unexpected error: /usr/lib/python3/keystone.py")
    answer = client.post(LOGIN, json=GOOD)
    assert answer.status_code == 503
    assert "keystone.py" not in answer.text


def test_an_outage_of_the_database_is_503(build: Build, cloud: Cloud, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    client = build(default={"database_url": f"sqlite:///{gone}/console.sqlite"})
    gone.rmdir()
    cloud.token("t-p1")
    answer = client.get(PROFILE, headers=session(cookie()))
    assert answer.status_code == 503
    assert answer.json() == {"message": "The service is temporarily unavailable."}
    assert client.get("/api/v1/config").status_code == 200


def test_a_login_and_a_profile_do_without_neutron(build: Build, cloud: Cloud) -> None:
    cloud.down.add("network")
    client = build()
    answer = client.post(LOGIN, json=GOOD)
    assert answer.status_code == 200
    assert answer.json()["endpoints"]["neutron"] == "/api/openstack/regionone/neutron"
    assert "neutron_qos" not in answer.json()["endpoints"]
    assert client.get(PROFILE).status_code == 200


# -- profile -------------------------------------------------------------


def test_the_profile_is_that_of_the_login(demo: TestClient) -> None:
    said = claims(demo.cookies["session"])
    body = demo.get(PROFILE).json()
    assert {name: body[name] for name in said} == said
    assert body["endpoints"] == {
        "keystone": "/api/openstack/regionone/keystone",
        "nova": "/api/openstack/regionone/nova",
        "neutron": "/api/openstack/regionone/neutron",
        "glance": "/api/openstack/regionone/glance",
        "barbican": "/api/openstack/regionone/barbican",
        # The played catalog has only volumev3 (F42).
        "cinder": "/api/openstack/regionone/cinder",
        "neutron_qos": "/api/openstack/regionone/neutron",
        "neutron_vpn": "/api/openstack/regionone/neutron",
    }


def test_a_profile_costs_nothing_within_the_cache_s_time(demo: TestClient, cloud: Cloud) -> None:
    first = demo.get(PROFILE)
    cloud.seen.clear()
    # Upstream, warm: 7 to Keystone, one of them a new token (spec section 10).
    assert demo.get(PROFILE).json() == first.json()
    assert cloud.seen == []
    # A project that is switched to is asked for anew.
    cloud.projects.pop()
    switched = demo.post("/api/v1/switch_project/p1")
    assert set(switched.json()["projects"]) == {"p1", "p2"}


def test_without_a_cache_each_profile_is_asked_for(build: Build, cloud: Cloud) -> None:
    client = build(trimaran={"token_cache_seconds": 0})
    client.post(LOGIN, json=GOOD)
    cloud.seen.clear()
    assert client.get(PROFILE).status_code == 200
    assert sorted(cloud.seen) == [
        ("GET", "auth/tokens"),
        ("GET", "users/u1"),
        ("GET", "users/u1/projects"),
    ]


def test_a_federated_user_has_the_projects_of_his_groups(build: Build, cloud: Cloud) -> None:
    client = build(trimaran={"token_cache_seconds": 0})
    client.post(LOGIN, json=GOOD)
    cloud.federated = True
    assert set(client.get(PROFILE).json()["projects"]) == {"p1", "p2", "p3"}


# -- credentials ---------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "Token not found"),
        ("garbage", "Not enough segments"),
        (cookie(exp=1), "Token expired - Signature has expired."),
        (cookie(region=None), "'region'"),
        (cookie(keystone_token="unknown"), "401: Failed to validate token (HTTP 404)"),
        (cookie(keystone_token="not a token"), "401: Failed to validate token (HTTP 404)"),
        (cookie(region="Atlantis"), "401: Endpoint not found"),
    ],
)
def test_what_the_token_stage_refuses(
    client: TestClient, cloud: Cloud, value: str | None, reason: str
) -> None:
    cloud.token("t-p1")
    answer = client.get(PROFILE, headers=session(value) if value else {})
    assert answer.status_code == 401
    assert answer.json() == {"message": f"Unauthorized: {reason}"}


def test_x_auth_token_is_accepted_without_a_cookie(client: TestClient, cloud: Cloud) -> None:
    token = cloud.token("plain")
    bodies = [client.get(PROFILE, headers={"X-Auth-Token": token}) for _ in range(2)]
    assert [answer.status_code for answer in bodies] == [200, 200]
    first, second = (answer.json() for answer in bodies)
    assert first["region"] == "RegionOne"
    assert first["keystone_token"] == token
    assert first["uuid"] != second["uuid"]
    assert all(cookies_of(answer) == [] for answer in bodies)


def test_a_bad_cookie_is_not_rescued_by_a_good_header(client: TestClient, cloud: Cloud) -> None:
    token = cloud.token("plain")
    answer = client.get(PROFILE, headers={"X-Auth-Token": token, **session("bad")})
    assert answer.status_code == 401


@pytest.mark.parametrize("token", ["", "with space", "t\u00e9", "x" * 40000, "../../v3/users"])
def test_a_bad_header_is_401(client: TestClient, token: str) -> None:
    answer = client.get(PROFILE, headers={"X-Auth-Token": token.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.json()["message"].startswith("Unauthorized: ")


def test_only_project_tokens_are_accepted(client: TestClient, cloud: Cloud) -> None:
    answer = client.get(PROFILE, headers={"X-Auth-Token": cloud.token("unscoped", None)})
    assert answer.json() == {"message": "Unauthorized: 'project'"}


def test_a_region_without_keystone_of_its_own_uses_the_default_one(
    client: TestClient, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.token("t-p1")
    parts: Any = client.app.state.parts  # type: ignore[attr-defined]
    bare = [
        {
            "type": "compute",
            "endpoints": [{"interface": "public", "region_id": "Two", "url": "http://nova2"}],
        }
    ]
    auth = parts.identity.service_auth
    original = auth.access

    def access(session: Any) -> Any:
        found = original(session)
        if not any(entry in found.service_catalog.catalog for entry in bare):
            found.service_catalog.catalog.extend(bare)
        return found

    monkeypatch.setattr(auth, "access", access)
    answer = client.get(PROFILE, headers=session(cookie(region="Two")))
    assert answer.status_code == 200
    assert answer.json()["endpoints"] == {"nova": "/api/openstack/two/nova"}


# -- renewal -------------------------------------------------------------


def test_a_session_is_renewed_near_its_end(client: TestClient, cloud: Cloud) -> None:
    cloud.token("t-p1")
    old = cookie(exp=int(time.time()) + 600)
    answer = client.get(PROFILE, headers=session(old))
    assert answer.status_code == 200
    held, expiry = cookies_of(answer)
    fresh = claims(held.split(";")[0].removeprefix("session="))
    before = claims(old)
    assert fresh["exp"] >= int(time.time()) + 3590
    assert {**fresh, "exp": 0} == {**before, "exp": 0}
    assert expiry.startswith(f"time_expired={fresh['exp']};")
    assert answer.json()["exp"] == fresh["exp"]


def test_errors_are_renewed_too_and_full_sessions_are_not(client: TestClient, cloud: Cloud) -> None:
    cloud.token("t-p1")
    old = cookie(exp=int(time.time()) + 600)
    assert len(cookies_of(client.get("/api/v1/nope", headers=session(old)))) == 2
    assert cookies_of(client.get(PROFILE, headers=session(cookie()))) == []


def test_a_logout_in_the_renewal_window_does_not_bring_the_session_back(
    client: TestClient, cloud: Cloud
) -> None:
    cloud.token("t-p1")
    old = cookie(exp=int(time.time()) + 600)
    answer = client.post("/api/v1/logout", headers=session(old))
    assert [item.split(";")[0] for item in cookies_of(answer)] == ['session=""', 'time_expired=""']


def test_a_handler_that_sets_the_session_is_not_overruled(client: TestClient, cloud: Cloud) -> None:
    def switch(response: Response) -> str:
        response.set_cookie("session", "the-new-one")
        return "ok"

    app: Any = client.app
    app.add_api_route("/api/v1/switch", switch, methods=["POST"])
    cloud.token("t-p1")
    old = cookie(exp=int(time.time()) + 600)
    answer = client.post("/api/v1/switch", headers=session(old))
    assert cookies_of(answer) == ["session=the-new-one; Path=/; SameSite=lax"]


# -- logout --------------------------------------------------------------


def test_logout_ends_the_session_everywhere_and_the_token(
    build: Build, demo: TestClient, cloud: Cloud
) -> None:
    body = demo.get(PROFILE).json()
    held = demo.cookies["session"]
    demo.cookies.clear()
    other = build()
    assert other.get(PROFILE, headers=session(held)).status_code == 200
    answer = demo.post("/api/v1/logout", content=b"ignored", headers=session(held))
    assert answer.status_code == 200
    assert answer.json() == {"message": "Logout OK", "code": 200, "title": "OK"}
    assert all("Max-Age=0; Path=/; SameSite=lax" in item for item in cookies_of(answer))
    assert body["keystone_token"] not in cloud.tokens
    # The other process has the token's validation in its cache: the row decides.
    for client in (demo, other):
        refused = client.get(PROFILE, headers=session(held))
        assert refused.json() == {"message": "Unauthorized: Token revoked"}
        header = client.get(PROFILE, headers={"X-Auth-Token": body["keystone_token"]})
        assert header.status_code == 401
    parts: Any = demo.app.state.parts  # type: ignore[attr-defined]
    from sqlalchemy import text

    rows = parts.db.read(
        lambda unit: dict(
            tuple(row) for row in unit.execute(text("SELECT uuid, expire FROM revoked_token"))
        )
    )
    assert rows[body["uuid"]] == body["exp"]


def test_logout_needs_a_session(client: TestClient) -> None:
    answer = client.post("/api/v1/logout")
    assert (answer.status_code, answer.json()) == (
        401,
        {"message": "Unauthorized: Token not found"},
    )


def test_logout_holds_although_keystone_fails(demo: TestClient, cloud: Cloud) -> None:
    held = demo.cookies["session"]
    demo.get(PROFILE)
    demo.cookies.clear()
    cloud.down.add("identity")
    assert demo.post("/api/v1/logout", headers=session(held)).status_code == 200
    cloud.down.clear()
    assert demo.get(PROFILE, headers=session(held)).json() == {
        "message": "Unauthorized: Token revoked"
    }


def test_the_row_is_written_before_keystone_is_asked(demo: TestClient, cloud: Cloud) -> None:
    parts: Any = demo.app.state.parts  # type: ignore[attr-defined]
    uuid = demo.get(PROFILE).json()["uuid"]
    order: list[tuple[str, bool]] = []

    def look() -> None:
        method, _ = cloud.seen[-1]
        order.append((method, parts.db.read(lambda unit: queries.is_revoked(unit, uuid))))

    cloud.before = look
    demo.post("/api/v1/logout")
    assert ("DELETE", True) in order


def test_a_logout_that_did_nothing_is_not_called_one(
    demo: TestClient, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trimaran.errors import Unavailable

    demo.get(PROFILE)
    parts: Any = demo.app.state.parts  # type: ignore[attr-defined]

    def fail(*_: Any, **__: Any) -> None:
        raise Unavailable(service="database")

    monkeypatch.setattr(parts.db, "write", fail)
    cloud.down.add("identity")
    answer = demo.post("/api/v1/logout")
    assert answer.status_code == 503
    assert cookies_of(answer) == []


# -- routes --------------------------------------------------------------


def _routes(app: Any) -> set[tuple[str, str]]:
    """All (method, path) of the OpenAPI document: it lists what is served."""
    return {
        (method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item
    }


def test_no_route_is_public_by_accident(client: TestClient) -> None:
    routes = _routes(client.app)
    assert ("GET", PROFILE) in routes
    open_ = set()
    for method, path in routes:
        answer = client.request(method, re.sub(r"\{\w+\}", "x", path))
        if not (
            answer.status_code == 401
            and answer.json().get("message") == "Unauthorized: Token not found"
        ):
            open_.add(path)
    assert open_ == {
        LOGIN,
        "/api/v1/login/totp",
        "/api/v1/websso",
        "/api/v1/sso",
        "/api/v1/config",
        "/api/v1/contrib/keystone_endpoints",
        "/api/v1/contrib/regions",
    }
    assert open_ <= public.PATHS


def test_a_new_route_that_begins_like_a_public_one_is_not_public(client: TestClient) -> None:
    app: Any = client.app
    app.add_api_route("/api/v1/configuration", lambda: "secret", methods=["GET"])
    app.add_api_route("/api/v1/login/{name}", lambda name: "secret", methods=["GET"])
    assert client.get("/api/v1/configuration").status_code == 401
    assert client.get("/api/v1/login/as-admin").status_code == 401
    assert any(isinstance(route, APIRoute) for route in app.routes)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nope", 401),
        ("GET", "/api/v10/x", 401),
        ("GET", "/api/v1", 401),
        ("GET", "/api/v1/config/../profile", 401),
        ("GET", "/api/v1/%70rofile", 401),
        ("GET", "/api/v1/contrib/domains", 401),
        ("GET", "/api/v1/loginx", 404),
        ("GET", "/api/v1/configx", 404),
        ("GET", "/nope", 404),
        ("GET", "//api/v1/profile", 404),
        ("GET", "/API/v1/profile", 404),
        ("GET", "/api/v1/login", 405),
        ("HEAD", "/api/v1/config", 405),
        ("OPTIONS", "/api/v1/config", 405),
        ("GET", "/docs", 200),
        ("GET", "/docs/oauth2-redirect", 200),
        ("GET", "/redoc", 200),
        ("GET", "/api/v1/openapi.json", 200),
    ],
)
def test_paths_and_methods_without_credentials(
    client: TestClient, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    if status == 405:
        assert "allow" in answer.headers
    if status == 404:
        assert answer.json() == {"detail": "Not Found"}


def test_an_unknown_path_is_404_with_credentials(demo: TestClient) -> None:
    answer = demo.get("/api/v1/nope")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("path", ["/api/v1/config/", "/api/v1/profile/?x=1"])
def test_a_slash_too_many_is_redirected_behind_any_proxy(demo: TestClient, path: str) -> None:
    answer = demo.get(path)
    assert answer.status_code == 307
    outside = f"https://cloud.example/api/openstack/skyline{path}"
    target = requests.compat.urljoin(outside, answer.headers["location"])
    assert target == outside.replace("/?", "?").removesuffix("/")


def test_config_is_exactly_two_members(client: TestClient, cloud: Cloud) -> None:
    assert client.get("/api/v1/config").json() == {
        "default_domain": "Default",
        "default_region": "RegionOne",
    }
    assert cloud.seen == []


def test_openapi_says_what_upstreams_does(client: TestClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1.")
    assert (document["info"]["title"], document["info"]["version"]) == ("Skyline API", "0.1.0")
    assert document["paths"][LOGIN]["post"]["tags"] == ["Login"]
    found = {
        f"{method.upper()} {path.removeprefix('/api/v1/')}": operation["operationId"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    # Generated clients are called by these: a function, the path, the method.
    functions = {
        "POST login": "login",
        "POST login/totp": "login_totp",
        "GET config": "get_config",
        "GET sso": "get_sso",
        "POST websso": "websso",
        "GET profile": "get_profile",
        "POST logout": "logout",
        "POST switch_project/{project_id}": "switch_project",
        "POST switch_region/{region}": "switch_region",
        "GET extension/servers": "list_servers",
        "GET extension/recycle_servers": "list_recycle_servers",
        "GET extension/volumes": "list_volumes",
        "GET extension/volume_snapshots": "list_volume_snapshots",
        "GET extension/ports": "list_ports",
        "GET extension/compute-services": "compute_services",
        "GET query": "prometheus_query",
        "GET query_range": "prometheus_query_range",
        "GET contrib/keystone_endpoints": "list_keystone_endpoints",
        "GET contrib/domains": "list_domains",
        "GET contrib/regions": "list_regions",
        "GET policies": "list_policies",
        "POST policies/check": "check_policies",
        "GET settings": "list_settings",
        "GET setting/{key}": "show_setting",
        "PUT setting": "update_setting",
        "DELETE setting/{key}": "reset_setting",
    }
    assert found == {
        place: f"{name}_{re.sub(r'[^a-z0-9_]', '_', f'api_v1_{path}')}_{method.lower()}"
        for place, name in functions.items()
        for method, _, path in [place.partition(" ")]
    }


def test_cors_is_off_and_can_be_on(build: Build) -> None:
    preflight = {
        "Origin": "https://ui.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "X-Auth-Token",
    }
    assert build().options(LOGIN, headers=preflight).status_code == 405
    client = build(default={"cors_allow_origins": ["https://ui.example"]})
    answer = client.options(PROFILE, headers=preflight)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://ui.example"
    assert answer.headers["access-control-allow-credentials"] == "true"
    stranger = client.options(PROFILE, headers={**preflight, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in stranger.headers


def test_errors_carry_cors_headers_too(
    build: Build, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = build(default={"cors_allow_origins": ["https://ui.example"]})
    client.post(LOGIN, json=GOOD)

    def refused() -> int:
        answer = client.get(PROFILE, headers={"Origin": "https://ui.example"})
        assert answer.headers["access-control-allow-origin"] == "https://ui.example"
        return int(answer.status_code)

    def broken(*_: Any) -> None:
        raise KeyError("inner")

    cloud.down.add("identity")
    assert refused() == 503
    cloud.down.clear()
    assert refused() == 200
    monkeypatch.setattr("trimaran.console.profile.build", broken)
    assert refused() == 500
    client.cookies.clear()
    assert refused() == 401


def test_an_unexpected_error_is_plain_text(
    demo: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("inner")

    monkeypatch.setattr("trimaran.console.profile.build", broken)
    answer = demo.get(PROFILE)
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert answer.headers["content-type"].startswith("text/plain")


# -- the event loop ------------------------------------------------------


def test_config_answers_while_every_thread_waits_for_keystone(build: Build, cloud: Cloud) -> None:
    gate = threading.Event()
    waiting = threading.Semaphore(0)

    def slow() -> None:
        waiting.release()
        assert gate.wait(60)

    with build() as client, ThreadPoolExecutor(4) as pool:
        assert client.portal is not None
        client.portal.call(size_threads, 1)
        cloud.before = slow
        logins = [pool.submit(client.post, LOGIN, json=GOOD) for _ in range(2)]
        try:
            assert waiting.acquire(timeout=30)
            for path in ("/api/v1/config", "/healthcheck"):
                assert pool.submit(client.get, path).result(timeout=50).status_code == 200
        finally:
            gate.set()
        assert [login.result(60).status_code for login in logins] == [200, 200]
