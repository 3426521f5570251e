"""The fixture of the conformance table (spec/skyline.md 9): people, a Prometheus, one console."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import requests
import sqlalchemy as sa
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3

from console_gates import Call, Gates, Played
from console_peers import SECRET, Cloud, Peer

PASSWORD = "password"


class People:
    """Users and projects of Keystone's, gone at the end.

    Attributes:
        names: role in the table (demo, norole, totp) to user name.
        projects: demo, demo2 (demo's default) and off (disabled) to ids.
    """

    def __init__(self, cloud: Cloud) -> None:
        auth = v3.Password(
            auth_url=cloud.auth_url, username="admin", password=PASSWORD, project_name="admin",
            user_domain_name="Default", project_domain_name="Default",
        )  # fmt: skip
        self._session = ksession.Session(auth=auth)
        self._url = cloud.auth_url
        self._suffix = uuid.uuid4().hex[:6]
        self._made: list[str] = []
        self.names: dict[str, str] = {}
        self.projects: dict[str, str] = {}

    def make(self) -> None:
        """Makes all of them."""
        for name in ("demo", "demo2"):
            self.projects[name] = self._make("project", name, domain_id="default")
        self.projects["off"] = self._make("project", "off", domain_id="default")
        (role,) = self._get("/roles?name=member")["roles"]
        default = {"default_project_id": self.projects["demo2"]}
        for name, more in {"demo": default, "norole": {}, "totp": {}}.items():
            user = self._make("user", name, domain_id="default", password=PASSWORD, **more)
            for project in self.projects.values() if name != "norole" else ():
                path = f"/projects/{project}/users/{user}/roles/{role['id']}"
                self._session.put(self._url + path)
        body = {"project": {"enabled": False}}
        self._session.patch(f"{self._url}/projects/{self.projects['off']}", json=body)

    def remove(self) -> None:
        """Removes them."""
        for path in reversed(self._made):
            with contextlib.suppress(Exception):
                self._session.delete(self._url + path)

    def token(self, name: str, project: str | None = None) -> str:
        """A token of a user, scoped or not."""
        scope: Any = {"project": {"id": self.projects[project]}} if project else "unscoped"
        answer = requests.post(
            f"{self._url}/auth/tokens", json=password(self.names[name], scope), timeout=60
        )
        return answer.headers["X-Subject-Token"]

    def is_valid(self, token: str) -> bool:
        """What Keystone says of a token."""
        answer = self._session.get(
            f"{self._url}/auth/tokens", headers={"X-Subject-Token": token}, raise_exc=False
        )
        return bool(answer.status_code == 200)

    def _make(self, kind: str, name: str, **values: Any) -> str:
        full = f"conformance-{name}-{self._suffix}"
        body = {kind: {"name": full, **values}}
        made = self._session.post(f"{self._url}/{kind}s", json=body).json()[kind]["id"]
        self._made.append(f"/{kind}s/{made}")
        if kind == "user":
            self.names[name] = full
        return str(made)

    def _get(self, path: str) -> Any:
        return self._session.get(self._url + path).json()


def password(name: str, scope: Any = None) -> dict[str, Any]:
    """A body for Keystone's ``POST /auth/tokens``."""
    user = {"name": name, "domain": {"name": "Default"}, "password": PASSWORD}
    auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": {"user": user}}}
    return {"auth": auth | ({"scope": scope} if scope else {})}


class SecondFactor:
    """Keystone's second factor for one user, since a Keystone has it only when told so.

    Args:
        auth_url: the real Keystone, which gives the token in the end.
        name: the user.
    """

    CODE, RECEIPT = "123456", "a-receipt"

    def __init__(self, auth_url: str, name: str) -> None:
        self._auth_url, self._name = auth_url, name

    def __call__(self, call: Call) -> Played | None:
        """See ``console_gates.Play``."""
        if call.method != "POST" or self._name.encode() not in call.body:
            return None
        identity = json.loads(call.body)["auth"]["identity"]
        receipt = {"Openstack-Auth-Receipt": self.RECEIPT}
        if identity["methods"] == ["password"]:
            given = {"methods": ["password"], "expires_at": "2099-01-01T00:00:00.000000Z"}
            rules = {"receipt": given, "required_auth_methods": [["password", "totp"]]}
            return Played(rules, 401, receipt)
        if identity["totp"]["user"]["passcode"] != self.CODE:
            return Played({"error": {"code": 401, "title": "Unauthorized", "message": "no"}}, 401)
        answer = requests.post(
            f"{self._auth_url}/auth/tokens", json=password(self._name, "unscoped"), timeout=60
        )
        token = {"X-Subject-Token": answer.headers["X-Subject-Token"]}
        return Played(answer.json(), 201, token)


class Prometheus:
    """Answers recorded queries: ``up``, a range of it, and ``broken``.

    Args:
        own: id of the member's project.
    """

    def __init__(self, own: str) -> None:
        def rows(key: str, value: Any) -> list[dict[str, Any]]:
            return [{"metric": {"__name__": "up", "project_id": p}, key: value}
                    for p in (own, "somebody-else")]  # fmt: skip

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                ranged = parts.path.endswith("query_range")
                result = rows("values", [[1, "1"]]) if ranged else rows("value", [1, "1"])
                kind = "matrix" if ranged else "vector"
                data = {"resultType": kind, "result": result}
                body, status = {"status": "success", "data": data}, 200
                if "broken" in parse_qs(parts.query)["query"][0]:
                    body, status = {"status": "error", "errorType": "bad_data"}, 400
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


class Answer:
    """An answer of a console."""

    def __init__(self, status: int, headers: Any, text: bytes) -> None:
        self.status, self.headers, self.text = status, headers, text.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The document, or the text when it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text

    @property
    def cookies(self) -> list[tuple[str, str, str]]:
        """Name, value and attributes of the cookies that are set."""
        found = []
        for line in self.headers.get_all("Set-Cookie") or ():
            pair, _, rest = line.partition("; ")
            name, _, value = pair.partition("=")
            found.append((name, value.strip('"'), rest))
        return found

    def cookie(self, name: str = "session") -> str:
        """The last value of a cookie, "" without one."""
        return next((v for n, v, _ in reversed(self.cookies) if n == name), "")


class World:
    """One console, and everything that a row may ask about.

    Attributes:
        demo: session cookie of the member.
        admin: of the administrator.
    """

    def __init__(
        self, peer: Peer, gates: Gates, people: People, cloud: Cloud, database: str, folder: Path
    ) -> None:
        self.peer, self.gates, self.people, self.cloud = peer, gates, people, cloud
        self.database, self.folder = database, folder
        self.project = people.projects["demo2"]
        self.demo = self.admin = ""

    def call(self, method: str, path: str, **more: Any) -> Answer:
        """Sends one request."""
        return Answer(*self.peer.call(method, path, **more))

    def login(self, name: str = "demo", **more: Any) -> Answer:
        """Logs somebody in."""
        headers = more.pop("headers", None)
        user = self.people.names.get(name, name)
        body = {"username": user, "password": PASSWORD, "domain": "Default", **more}
        return self.call("POST", "/login", body=body, headers=headers)

    def renew_sessions(self) -> None:
        """Logs both in, so that no row depends on what another did to a session."""
        self.demo = self.login().cookie()
        self.admin = self.login("admin").cookie()

    def claims(self, cookie: str) -> dict[str, Any]:
        """What a session cookie says."""
        found: dict[str, Any] = jwt.decode(
            cookie, SECRET, algorithms=["HS256"], options={"verify_exp": False}
        )
        return found

    def changed(self, key: str = SECRET, **claims: Any) -> str:
        """The member's session with other claims; None leaves one out."""
        merged = {**self.claims(self.demo), **claims}
        kept = {name: value for name, value in merged.items() if value is not None}
        return jwt.encode(kept, key, algorithm="HS256")

    def revoked(self, uuid_: str) -> int | None:
        """Until when the database has a session revoked."""
        engine = sa.create_engine(self.database)
        with engine.connect() as connection:
            found = connection.execute(
                sa.text("SELECT expire FROM revoked_token WHERE uuid = :u"), {"u": uuid_}
            ).scalar()
        engine.dispose()
        return None if found is None else int(found)

    @contextlib.contextmanager
    def playing(self, play: Any) -> Iterator[None]:
        """Lets the gates answer for a while."""
        before, self.gates.play = self.gates.play, play
        try:
            yield
        finally:
            self.gates.play = before

    def asked(self, service: str, words: str) -> Call | None:
        """The last call of a service whose path has these words."""
        found = [c for c in self.gates.calls if c.service == service and words in c.path]
        return found[-1] if found else None


def query_of(call: Call | None) -> Mapping[str, list[str]]:
    """The query of a call."""
    return parse_qs(urlsplit(call.path).query) if call else {}
