"""The identity layer on a real Keystone."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.cloud import DEMO, CloudEnv
from trimaran import errors
from trimaran.identity import Identity, Token, count_calls, sending


@pytest.fixture
def demo(ours: Identity) -> Token:
    """A token of the demo member, scoped to demo."""
    scope = {"project": {"name": DEMO.project, "domain": {"name": "Default"}}}
    return ours.password(username="demo", password="password", domain_name="Default", scope=scope)


class TestValidate:
    def test_once_then_remembered(self, ours: Identity, demo: Token) -> None:
        ours.service_token()
        with count_calls() as calls:
            found = ours.validate(demo.id)
            again = ours.validate(demo.id)
        assert [(call.method, call.path) for call in calls.seen] == [("GET", "/v3/auth/tokens")]
        assert again is found
        assert (found.user_id, found.project_id) == (demo.user_id, demo.project_id)
        assert found.roles == demo.roles
        assert found.expires_at == demo.expires_at
        assert found.catalog == demo.catalog

    def test_many_at_once_ask_once(self, ours: Identity, demo: Token) -> None:
        ours.service_token()
        with count_calls(everywhere=True) as calls, ThreadPoolExecutor(16) as pool:
            start = threading.Barrier(16, timeout=60)

            def ask() -> Token:
                start.wait()
                return ours.validate(demo.id)

            found = [each.result(90) for each in [pool.submit(ask) for _ in range(16)]]
        assert len({id(token) for token in found}) == 1
        assert calls.total == 1

    def test_revoked_by_ourselves(self, ours: Identity, demo: Token) -> None:
        ours.validate(demo.id)
        ours.revoke(demo)
        with pytest.raises(errors.Unauthenticated):
            ours.validate(demo.id)
        ours.revoke(demo)

    def test_revoked_behind_our_back(self, ours: Identity, demo: Token, people: Any) -> None:
        ours.validate(demo.id)
        people.revoke(demo.id)
        assert ours.validate(demo.id).id == demo.id
        people.wait_until_refused(demo.id)
        with pytest.raises(errors.Unauthenticated):
            ours.validate(demo.id, fresh=True)
        with pytest.raises(errors.Unauthenticated):
            ours.validate(demo.id)

    @pytest.mark.parametrize("bad", ["nonsense", "gAAAAA" + "x" * 180, "x" * 5000])
    def test_not_a_token(self, ours: Identity, bad: str) -> None:
        with pytest.raises(errors.Unauthenticated):
            ours.validate(bad)

    def test_service_token_revoked_behind_our_back(
        self, ours: Identity, demo: Token, people: Any
    ) -> None:
        mine = ours.service_token()
        people.revoke(mine)
        for _ in people.until_replaced(ours, mine):
            assert ours.validate(demo.id, fresh=True).id == demo.id

    def test_an_invalid_token_does_not_cost_our_own(self, ours: Identity) -> None:
        mine = ours.service_token()
        with pytest.raises(errors.Unauthenticated):
            ours.validate("nonsense")
        assert ours.service_token() == mine

    def test_expired_ones_are_asked_for_by_name(self, ours: Identity, demo: Token) -> None:
        with count_calls() as calls:
            ours.validate(demo.id, allow_expired=True)
            ours.validate(demo.id, allow_expired=True)
        assert [call.path for call in calls.seen] == ["/v3/auth/tokens"] * 2


class TestLogin:
    def test_steps_of_a_console_login(self, ours: Identity) -> None:
        ours.service_token()
        with count_calls() as calls:
            unscoped = ours.password(username="demo", password="password", domain_name="Default")
            projects = ours.projects(unscoped)
            token = ours.rescope(unscoped, projects[0]["id"])
            profile = ours.validate(token.id)
            user = ours.user(profile.user_id)
            known = ours.user_projects(profile.user_id)
        assert unscoped.project_id is None
        assert [row["name"] for row in projects] == ["demo"]
        assert "member" in profile.roles
        assert user["name"] == "demo"
        assert [row["id"] for row in known] == [profile.project_id]
        # No discovery, and one call a step.
        assert calls.total == 6
        assert {call.path for call in calls.seen}.isdisjoint({"/v3", "/v3/", "/"})

    def test_domains(self, ours: Identity) -> None:
        assert "Default" in {row["name"] for row in ours.domains()}

    def test_project(self, ours: Identity, demo: Token) -> None:
        assert ours.project(str(demo.project_id))["name"] == "demo"
        with pytest.raises(errors.NotFound):
            ours.project("0" * 32)

    def test_wrong_password(self, ours: Identity) -> None:
        with pytest.raises(errors.Unauthenticated) as caught:
            ours.password(username="demo", password="wrong", domain_name="Default")
        assert caught.value.remote_status == 401  # type: ignore[attr-defined]
        assert str(caught.value) == "The request you have made requires authentication."

    @pytest.mark.parametrize(
        ("username", "domain"), [("nobody", "Default"), ("demo", "Nowhere"), ("démo☃", "Default")]
    )
    def test_unknown_people(self, ours: Identity, username: str, domain: str) -> None:
        with pytest.raises(errors.Unauthenticated):
            ours.password(username=username, password="password", domain_name=domain)

    def test_disabled_user(self, ours: Identity, people: Any) -> None:
        user = people.user()
        project = people.project()
        people.grant(user["id"], project["id"])
        token = ours.password(username=user["name"], password="password", domain_name="Default")
        scoped = ours.rescope(token, project["id"])
        ours.validate(scoped.id)
        people.change(user["id"], enabled=False)
        with pytest.raises(errors.Unauthenticated):
            ours.password(username=user["name"], password="password", domain_name="Default")
        with pytest.raises(errors.Unauthenticated):
            ours.rescope(token, project["id"])
        with pytest.raises(errors.Unauthenticated):
            ours.validate(scoped.id, fresh=True)

    def test_user_without_projects(self, ours: Identity, people: Any) -> None:
        user = people.user()
        token = ours.password(username=user["name"], password="password", domain_name="Default")
        assert ours.projects(token) == []

    def test_default_project_scopes_the_login(self, ours: Identity, people: Any) -> None:
        project = people.project()
        user = people.user(default_project_id=project["id"])
        people.grant(user["id"], project["id"])
        token = ours.password(username=user["name"], password="password", domain_name="Default")
        assert token.project_id == project["id"]

    def test_disabled_project_is_listed_and_cannot_be_had(
        self, ours: Identity, people: Any
    ) -> None:
        project = people.project(enabled=False)
        user = people.user()
        people.grant(user["id"], project["id"])
        token = ours.password(username=user["name"], password="password", domain_name="Default")
        assert [row["enabled"] for row in ours.user_projects(user["id"])] == [False]
        with pytest.raises(errors.Unauthenticated):
            ours.rescope(token, project["id"])

    @pytest.mark.parametrize("project", ["0" * 32, "nonsense", "../x", ""])
    def test_foreign_projects(self, ours: Identity, demo: Token, project: str) -> None:
        with pytest.raises((errors.Unauthenticated, errors.BadRequest)):
            ours.rescope(demo, project)

    def test_system_scope_is_for_administrators(self, ours: Identity, demo: Token) -> None:
        with pytest.raises(errors.Unauthenticated):
            ours.rescope(demo, system=True)
        admin = ours.password(username="admin", password="password", domain_name="Default")
        assert ours.rescope(admin, system=True).system_scope == "all"

    def test_address_of_the_client_reaches_keystone(self, ours: Identity, demo: Token) -> None:
        with sending(request_id="req-1", remote_address="192.0.2.7"):
            assert ours.validate(demo.id, fresh=True).id == demo.id


class TestFaults:
    def test_wrong_service_password_and_its_repair(
        self, make_identity: Callable[..., Identity], people: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user = people.user()
        project = people.project()
        people.grant(user["id"], project["id"], "service")
        ours = make_identity(username=user["name"], password="later", project_name=project["name"])
        with monkeypatch.context() as patience:
            patience.setattr("trimaran.identity.auth.BACKOFF", 600)
            with pytest.raises(errors.Unavailable) as caught:
                ours.validate("any")
            assert caught.value.service == "identity"
            with count_calls() as calls, pytest.raises(errors.Unavailable):
                ours.validate("any")
            assert calls.total == 0
        people.change(user["id"], password="later")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                assert ours.service_token()
                break
            except errors.Unavailable:
                time.sleep(0.1)
        else:
            pytest.fail("no recovery after the password was set")

    def test_nobody_listens(
        self, make_identity: Callable[..., Identity], free_port: Callable[[], int]
    ) -> None:
        url = f"http://127.0.0.1:{free_port()}/v3"
        ours = make_identity(auth_url=url, own={"connect_timeout": 60})
        started = time.monotonic()
        with pytest.raises(errors.Unavailable) as caught:
            ours.ping()
        assert caught.value.service == "identity"
        assert time.monotonic() - started < 50, "a refusal needs no waiting"

    def test_a_server_that_accepts_and_says_nothing(
        self,
        make_identity: Callable[..., Identity],
        silent: socket.socket,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("trimaran.identity.auth.BACKOFF", 600)
        ours = make_identity(
            auth_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v3",
            own={"connect_timeout": 0.5, "read_timeout": 0.5},
        )
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(ours.service_token) for _ in range(8)]
            for each in waiting:
                with pytest.raises(errors.Unavailable):
                    each.result(90)
        # Eight who wait for one answer do not wait eight times.
        assert _connections(silent) == 1

    def test_keystone_comes_back(
        self,
        make_identity: Callable[..., Identity],
        cloud_env: CloudEnv,
        demo: Token,
        free_port: Callable[[], int],
    ) -> None:
        port = free_port()
        target = cloud_env.auth_url.split("/")[2].split(":")
        # The catalog names Keystone itself; only the configured URL goes through the port.
        ours = make_identity(auth_url=f"http://127.0.0.1:{port}/v3")
        with pytest.raises(errors.Unavailable):
            ours.validate(demo.id)
        with Relay(port, (target[0], int(target[1]))):
            deadline = time.monotonic() + 60
            while True:
                try:
                    assert ours.validate(demo.id).user_id == demo.user_id
                    break
                except errors.Unavailable:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)

    def test_ping(self, ours: Identity) -> None:
        ours.ping()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield server


def _connections(server: socket.socket) -> int:
    """How many were made to a server that has taken none from the kernel."""
    server.setblocking(False)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


class Relay:
    """Passes connections on to another address until the block ends."""

    def __init__(self, port: int, target: tuple[str, int]) -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        self._target = target
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Relay:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._server, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def _start(self, function: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=function, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._open += [near, far]
            self._start(self._pump, near, far)
            self._start(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return
