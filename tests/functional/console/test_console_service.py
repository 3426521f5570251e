"""The console as it is deployed: replicas with workers, MariaDB, a real Keystone.

What is broken here, and what is checked after each: a worker killed, the
parent's SIGTERM, Keystone away at the start, Keystone slow, MariaDB away and
back, the row of a logout read by every other process.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
import psutil
import pytest
import requests
import sqlalchemy

from tests.support.cloud import ADMIN, DEMO, CloudEnv
from tests.support.console_service import PATIENCE, SECRET, Console, SlowKeystone, eventually
from tests.support.ports import free_port
from tests.support.servers import MYSQL_URL
from tests.support.tcp_proxy import Proxy
from trimaran.db import migrate

UNAVAILABLE = {"message": "The service is temporarily unavailable."}

Start = Callable[..., Console]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A migrated MariaDB database that the module's consoles share."""
    name = f"trimaran_test_{uuid.uuid4().hex[:12]}"
    engine = sqlalchemy.create_engine(MYSQL_URL, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
    url = sqlalchemy.make_url(MYSQL_URL).set(database=name).render_as_string(hide_password=False)
    migrate.upgrade(url, "console")
    yield url
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"DROP DATABASE {name}"))
    engine.dispose()


@pytest.fixture(scope="module")
def options(database: str, cloud_env: CloudEnv) -> dict[str, Any]:
    """skyline.yaml for the sandbox."""
    return {
        "default": {"database_url": database, "secret_key": SECRET, "log_file": "/dev/stdout"},
        "openstack": {
            "keystone_url": cloud_env.auth_url,
            "system_user_password": "password",
            "default_region": cloud_env.region,
        },
        "trimaran": {"threads": 8},
    }


@pytest.fixture
def start(options: dict[str, Any], tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Start]:
    """Starts replicas and ends them; groups are merged into skyline.yaml."""
    running: list[Console] = []

    def starter(*, workers: int = 2, **groups: dict[str, Any]) -> Console:
        settings = dict(options)
        for group, values in groups.items():
            settings[group] = {**settings.get(group, {}), **values}
        port = free_port()
        console = Console(tmp_path / str(port), port, settings, workers)
        running.append(console)
        console.wait_until_ready()
        return console

    yield starter
    for console in running:
        console.kill()


@pytest.fixture(scope="module")
def replicas(
    options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Console]]:
    """Two replicas of four workers each, for the tests that break nothing."""
    place = tmp_path_factory.mktemp("replicas")
    consoles = []
    for name in ("one", "two"):
        consoles.append(Console(place / name, free_port(), options, 4))
    for console in consoles:
        console.wait_until_ready()
    yield consoles
    for console in consoles:
        console.kill()


@pytest.fixture
def console(replicas: list[Console]) -> Console:
    """One of the replicas."""
    return replicas[0]


@pytest.fixture
def user(cloud_env: CloudEnv) -> Iterator[Callable[..., dict[str, Any]]]:
    """Makes users that are gone after the test."""
    made: list[str] = []

    def maker(**values: Any) -> dict[str, Any]:
        body = {"name": f"console-{uuid.uuid4().hex[:8]}", "password": "password", **values}
        answer = cloud_env.call(ADMIN, "identity", "POST", "/users", json={"user": body})
        made.append(answer["user"]["id"])
        return dict(answer["user"])

    yield maker
    for identifier in made:
        cloud_env.call(ADMIN, "identity", "DELETE", f"/users/{identifier}")


def session_of(answer: requests.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.cookies["session"]


class Line:
    """A connection that stays with one worker of a replica."""

    def __init__(self, console: Console) -> None:
        place = urlsplit(console.base)
        self._connection = http.client.HTTPConnection(
            str(place.hostname), place.port, timeout=PATIENCE
        )
        self.ask("GET", "config")
        self.port = self._connection.sock.getsockname()[1]

    def ask(self, method: str, path: str, cookie: str = "") -> tuple[int, str]:
        headers = {"Cookie": f"session={cookie}"} if cookie else {}
        self._connection.request(method, f"/api/v1/{path}", headers=headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode()

    def close(self) -> None:
        self._connection.close()


def one_line_to_each_worker(console: Console) -> list[Line]:
    workers = psutil.Process(console.process.pid).children()
    found: dict[int, Line] = {}

    def all_found() -> bool:
        lines = {line.port: line for line in (Line(console) for _ in range(8))}
        for worker in workers:
            for each in worker.net_connections("tcp"):
                line = lines.get(each.raddr.port) if each.raddr else None
                if line is not None and worker.pid not in found:
                    found[worker.pid] = lines.pop(line.port)
        for line in lines.values():
            line.close()
        return len(found) == len(workers)

    eventually(all_found, "each worker has taken a connection")
    return list(found.values())


def sessions_of_their_own(cloud_env: CloudEnv, count: int) -> list[str]:
    """Cookies, each with a Keystone token of its own: a logout ends one and no sibling."""
    url = f"{cloud_env.auth_url}/auth/tokens"
    demo = cloud_env.session(DEMO)
    scope = {"project": {"id": demo.get_project_id()}}

    def made(_: int) -> str:
        identity = {"methods": ["token"], "token": {"id": demo.get_token()}}
        body = {"auth": {"identity": identity, "scope": scope}}
        answer = requests.post(url, json=body, timeout=PATIENCE)
        claims = {
            "keystone_token": answer.headers["X-Subject-Token"],
            "region": cloud_env.region,
            "exp": int(time.time()) + 3600,
            "uuid": uuid.uuid4().hex,
        }
        return jwt.encode(claims, SECRET, algorithm="HS256")

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(made, range(count)))


def test_a_session_that_was_logged_out_is_refused_by_every_process(
    replicas: list[Console], cloud_env: CloudEnv
) -> None:
    held = sessions_of_their_own(cloud_env, 200)
    assert len(set(held)) == 200
    # Afterwards, or a connection would wait until the server takes it for idle.
    lines = [line for replica in replicas for line in one_line_to_each_worker(replica)]
    assert len(lines) == 8
    accepted: list[str] = []
    # What each worker is asked: a connection is for one thread.
    shares = [range(number, len(held), len(lines)) for number in range(len(lines))]

    def use(number: int) -> None:
        # This worker knows and remembers the token from now on.
        for each in shares[number]:
            assert lines[number].ask("GET", "settings", held[each])[0] == 200

    def leave(number: int) -> None:
        # At the other replica than the one that remembers it.
        for each in shares[(number + 4) % 8]:
            assert lines[number].ask("POST", "logout", held[each])[0] == 200

    def return_(number: int) -> None:
        for cookie in held:
            status, text = lines[number].ask("GET", "settings", cookie)
            if status != 401 or "Token revoked" not in text:
                accepted.append(text)

    with ThreadPoolExecutor(8) as pool:
        for step in (use, leave, return_):
            list(pool.map(step, range(8)))
    for line in lines:
        line.close()
    assert accepted == []


def test_the_keystone_token_of_a_logout_is_refused_too(start: Start, cloud_env: CloudEnv) -> None:
    replicas = [start(), start()]
    answer = replicas[0].login()
    token = answer.json()["keystone_token"]
    for replica in replicas:
        for _ in range(4):
            assert replica.profile(**{"X-Auth-Token": token}).status_code == 200
    assert replicas[0].logout(session_of(answer)).status_code == 200
    for replica in replicas:
        for _ in range(4):
            assert replica.profile(**{"X-Auth-Token": token}).status_code == 401
    admin = cloud_env.session(ADMIN)

    def gone() -> bool:
        answer = admin.get(
            f"{cloud_env.auth_url}/auth/tokens",
            headers={"X-Subject-Token": token},
            raise_exc=False,
        )
        return bool(answer.status_code == 404)

    # Keystone itself may know it for a moment longer.
    eventually(gone, "Keystone knows the token no more")


def test_sessions_are_shared_by_replicas_and_survive_restarts(
    start: Start, console: Console
) -> None:
    first = start(workers=1)
    cookie = session_of(first.login())
    body = first.profile(cookie).json()
    assert body["user"]["name"] == "demo"
    assert first.stop() == 0
    again = console.profile(cookie).json()
    assert (again["uuid"], again["exp"]) == (body["uuid"], body["exp"])
    stranger = start(workers=1, default={"secret_key": "f" * 32})
    refused = stranger.profile(cookie)
    assert refused.status_code == 401
    assert "Signature verification failed" in refused.json()["message"]


def test_forged_sessions_are_refused(console: Console) -> None:
    good = session_of(console.login())
    claims = jwt.decode(good, SECRET, algorithms=["HS256"])
    head, _, signature = good.split(".")

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    forged = {
        "alg none": f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.",
        "alg none signed": f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.{signature}",
        "other claims": f"{head}.{part({**claims, 'exp': claims['exp'] + 9})}.{signature}",
        "other key": jwt.encode(claims, "x" * 32, algorithm="HS256"),
        "published key": jwt.encode(
            claims, "aCtmgbcUqYUy_HNVg5BDXCaeJgJQzHJXwqbXr0Nmb2o", algorithm="HS256"
        ),
        "expired": jwt.encode({**claims, "exp": 1}, SECRET, algorithm="HS256"),
        "other algorithm": jwt.encode(claims, SECRET * 2, algorithm="HS512"),
        "unknown token": jwt.encode({**claims, "keystone_token": "x"}, SECRET, algorithm="HS256"),
        "garbage": "garbage",
    }
    answers = {name: console.profile(value) for name, value in forged.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
        forged, 401
    )
    assert all(answer.json()["message"].startswith("Unauthorized: ") for answer in answers.values())
    assert console.profile(good).status_code == 200


def test_who_may_not_log_in_is_told_why(start: Start, user: Callable[..., dict[str, Any]]) -> None:
    console = start(workers=1)
    wrong = console.login(password="wrong")
    assert wrong.status_code == 401
    assert "(HTTP 401) (Request-ID: req-" in wrong.json()["detail"]
    assert not wrong.cookies
    assert console.login(username="nobody").status_code == 401
    homeless = console.login(user()["name"])
    assert homeless.status_code == 401
    assert homeless.json() == {"detail": "You are not authorized for any projects or domains."}
    disabled = console.login(user(enabled=False)["name"])
    assert disabled.status_code == 401
    assert "HTTP 401" in disabled.json()["detail"]


def test_the_default_project_is_taken_when_it_can_be_used(
    console: Console, user: Callable[..., dict[str, Any]], cloud_env: CloudEnv
) -> None:
    projects = cloud_env.call(ADMIN, "identity", "GET", "/projects")["projects"]
    ids = {item["name"]: item["id"] for item in projects}
    roles = cloud_env.call(ADMIN, "identity", "GET", "/roles?name=member")["roles"]

    def grant(who: dict[str, Any], project: str) -> None:
        path = f"/projects/{ids[project]}/users/{who['id']}/roles/{roles[0]['id']}"
        cloud_env.call(ADMIN, "identity", "PUT", path)

    usable = user(default_project_id=ids["alt_demo"])
    grant(usable, "demo")
    grant(usable, "alt_demo")
    body = console.login(usable["name"]).json()
    assert body["project"]["name"] == "alt_demo"
    assert {item["name"] for item in body["projects"].values()} == {"demo", "alt_demo"}
    # LP#2049719: a default project without a role there.
    other = user(default_project_id=ids["admin"])
    grant(other, "demo")
    body = console.login(other["name"]).json()
    assert body["project"]["name"] == "demo"
    assert body["default_project_id"] == ids["admin"]


def test_keystone_may_be_away_when_the_console_starts(start: Start, cloud_env: CloudEnv) -> None:
    host, _, real = cloud_env.auth_url.split("/")[2].partition(":")
    with Proxy(host, int(real)) as way:
        way.cut()
        console = start(openstack={"keystone_url": f"http://127.0.0.1:{way.port}/v3/"})
        answer = console.login()
        assert (answer.status_code, answer.json()) == (503, UNAVAILABLE)
        header = console.profile(**{"X-Auth-Token": "x"})
        assert (header.status_code, header.json()) == (503, UNAVAILABLE)
        health = requests.get(f"{console.base}/healthcheck?detailed", timeout=PATIENCE)
        assert health.status_code == 503
        assert health.json()["checks"]["identity"]["status"] == "unavailable"
        assert health.json()["checks"]["database"]["status"] == "ok"
        assert f"http://127.0.0.1:{way.port}/v3 does not answer" in console.log.read_text()
        way.mend()
        eventually(lambda: console.login().status_code == 200, "logins work by themselves")


def test_the_database_may_go_and_come_back(start: Start, database: str) -> None:
    url = sqlalchemy.make_url(database)
    with Proxy(url.host or "127.0.0.1", url.port or 3306) as way:
        there = url.set(host="127.0.0.1", port=way.port)
        console = start(default={"database_url": there.render_as_string(hide_password=False)})
        cookie = session_of(console.login())
        assert console.profile(cookie).status_code == 200
        way.cut()
        for _ in range(3):
            answer = console.profile(cookie)
            assert (answer.status_code, answer.json()) == (503, UNAVAILABLE)
            assert not answer.cookies
        # A login needs no database, and its session is worth nothing without one.
        assert console.login().status_code == 200
        assert requests.get(f"{console.url}/config", timeout=PATIENCE).status_code == 200
        way.mend()
        eventually(
            lambda: [console.profile(cookie).status_code for _ in range(4)] == [200] * 4,
            "the same session works again",
        )


def test_a_slow_keystone_holds_up_those_who_wait_for_it_and_nobody_else(start: Start) -> None:
    keystone = SlowKeystone()
    try:
        console = start(
            workers=1,
            openstack={"keystone_url": keystone.url},
            trimaran={"threads": 8, "read_timeout": PATIENCE},
        )
        with ThreadPoolExecutor(12) as pool:
            logins = [pool.submit(console.login) for _ in range(12)]
            for _ in range(8):
                assert keystone.waiting.acquire(timeout=PATIENCE)
            # All threads of the only process wait for Keystone now.
            for _ in range(20):
                assert requests.get(f"{console.url}/config", timeout=PATIENCE).status_code == 200
            answer = requests.get(f"{console.base}/healthcheck", timeout=PATIENCE)
            assert answer.status_code == 200
            assert not any(login.done() for login in logins), "those answers waited for Keystone"
            keystone.gate.set()
            assert {login.result().status_code for login in logins} == {200}
    finally:
        keystone.close()


def test_sigterm_lets_a_login_end(start: Start) -> None:
    keystone = SlowKeystone()
    try:
        console = start(openstack={"keystone_url": keystone.url})
        answers: list[requests.Response] = []
        client = threading.Thread(target=lambda: answers.append(console.login()))
        client.start()
        assert keystone.waiting.acquire(timeout=PATIENCE)
        console.process.terminate()
        eventually(lambda: "Shutting down" in console.log.read_text(), "it drains")
        keystone.gate.set()
        client.join(PATIENCE)
        assert console.process.wait(PATIENCE) == 0
        assert [answer.status_code for answer in answers] == [200]
    finally:
        keystone.close()


def test_a_killed_worker_takes_no_session_along(start: Start) -> None:
    console = start()
    cookie = session_of(console.login())
    for worker in psutil.Process(console.process.pid).children():
        worker.kill()

    def works() -> bool:
        try:
            return console.profile(cookie).status_code == 200
        except requests.RequestException:
            return False

    eventually(works, "new workers know the session")


def test_ended_revocations_are_purged_and_live_ones_stay(start: Start, database: str) -> None:
    engine = sqlalchemy.create_engine(database)
    now = int(time.time())
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("INSERT INTO revoked_token (uuid, expire) VALUES (:u, :e)"),
            [{"u": "old", "e": now - 100}, {"u": "live", "e": now + 1000}],
        )

    def rows() -> set[str]:
        with engine.connect() as connection:
            return set(connection.scalars(sqlalchemy.text("SELECT uuid FROM revoked_token")))

    start()
    eventually(lambda: "old" not in rows(), "the purge")
    assert "live" in rows()
    engine.dispose()


def test_hostile_input_gets_an_answer_and_the_service_lives(console: Console) -> None:
    cookie = session_of(console.login())
    json_type = {"Content-Type": "application/json"}

    def post(data: bytes, **headers: str) -> requests.Response:
        return requests.post(
            f"{console.url}/login", data=data, headers={**json_type, **headers}, timeout=PATIENCE
        )

    big = b'{"username": "demo", "password": "' + b"x" * 1_100_000 + b'"}'
    assert post(big).status_code == 413
    assert post(b"{", **{"X-Big": "x" * 1_000_000}).status_code == 431
    assert console.profile("x" * 1_000_000).status_code == 431
    assert post(b'{"username": ').status_code == 422
    assert post(b'{"username": "\xff", "password": "x"}').status_code == 400
    assert post(b'{"username": "\\u0000", "password": "\\ud800"}').status_code == 401
    assert post(b'{"username": "' + b"u" * 5000 + b'", "password": "x"}').status_code == 401
    for path in ("login", "logout", "profile", "config", "nope", "%00", "\u00e9"):
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            answer = requests.request(method, f"{console.url}/{path}", timeout=PATIENCE)
            assert answer.status_code in {200, 401, 404, 405}, (method, path)
        # No method that HTTP knows: refused by the parser.
        assert (
            requests.request("BREW", f"{console.url}/{path}", timeout=PATIENCE).status_code == 400
        )
    assert console.profile(cookie).status_code == 200
    assert "Traceback" not in console.log.read_text()
    assert cookie not in console.log.read_text()
