"""A console for tests, with Keystone and Neutron played on requests_mock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import jwt
import requests
import requests_mock

from tests.support.keystone import URL, catalog, error, token_body
from trimaran.config import console as options
from trimaran.config.console import Settings

SECRET = "0123456789abcdef0123456789abcdef"
RECEIPT = "a-receipt"
PASSWORD = "correct horse"

PROJECTS = [
    {"id": "p1", "name": "demo", "enabled": True, "domain_id": "default", "description": "one"},
    {"id": "p2", "name": "demo2", "enabled": True, "domain_id": "corp", "description": ""},
    {"id": "p3", "name": "off", "enabled": False, "domain_id": "default", "description": ""},
]


def settings(database_url: str, **groups: dict[str, Any]) -> Settings:
    """Settings for the played cloud; groups are merged in."""
    content: dict[str, Any] = {
        "default": {"database_url": database_url, "secret_key": SECRET},
        "openstack": {
            "keystone_url": URL,
            "system_user_name": "svc",
            "system_user_password": "s3cret",
        },
        "trimaran": {"threads": 4},
    }
    for group, values in groups.items():
        content[group] = {**content.get(group, {}), **values}
    return options.parse(content, "skyline.yaml")


def claims(cookie: str) -> dict[str, Any]:
    """What a session cookie says, its signature checked."""
    found: dict[str, Any] = jwt.decode(cookie, SECRET, algorithms=["HS256"])
    return found


def cookie(**changes: Any) -> str:
    """A session cookie; a change to None removes the claim."""
    values: dict[str, Any] = {
        "keystone_token": "t-p1",
        "region": "RegionOne",
        "exp": 4102444800,
        "uuid": "0" * 32,
    }
    values.update(changes)
    present = {name: value for name, value in values.items() if value is not None}
    return jwt.encode(present, SECRET, algorithm="HS256")


class Cloud:
    """Plays Keystone and Neutron for a console.

    Args:
        mock: the adapter.

    Attributes:
        projects: of the user demo.
        default_project: of the user demo; None has none.
        tokens: subject tokens that are valid, with their bodies.
        down: names of the services that do not answer ("identity", "network").
        before: called before each answer of Keystone.
        seen: (method, path below v3) of Keystone's requests, without our own token's.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.projects = [dict(item) for item in PROJECTS]
        self.federated = False
        self.default_project: str | None = "p2"
        self.tokens: dict[str, dict[str, Any]] = {}
        self.regions = ["RegionOne"]
        self.down: set[str] = set()
        self.refusal: tuple[int, str] | None = None
        self.before: Callable[[], None] = lambda: None
        self.seen: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.extensions = ["qos", "vpnaas", "router"]
        self._numbers = itertools.count(1)
        mock.register_uri(requests_mock.ANY, re.compile(rf"^{URL}/"), json=self._keystone)
        mock.get("http://neutron.test/v2.0/extensions", json=self._neutron)

    def token(self, token_id: str, project: str | None = "p1", **changes: Any) -> str:
        """Makes a valid token of demo; returns its id."""
        scope: Any = None
        if project is not None:
            row = next(item for item in PROJECTS if item["id"] == project)
            scope = {**row, "domain": {"id": row["domain_id"], "name": "Default"}}
        services = [entry for region in self.regions for entry in catalog(region=region)]
        values: dict[str, Any] = {"project": scope, "catalog": services, **changes}
        if project is None:
            values["roles"] = None
            values["catalog"] = None
        self.tokens[token_id] = token_body(**values)
        return token_id

    def paths(self, method: str) -> list[str]:
        """The paths of the requests of a method."""
        return [path for seen, path in self.seen if seen == method]

    def _keystone(self, request: Any, context: Any) -> Any:
        if "identity" in self.down:
            raise requests.ConnectionError("refused")
        path = request.path.removeprefix("/v3/")
        if request.method == "POST" and self._is_service(request.json()["auth"]["identity"]):
            context.status_code = 201
            context.headers["X-Subject-Token"] = "service"
            services = [entry for region in self.regions for entry in catalog(region=region)]
            return token_body(catalog=services)
        self.seen.append((request.method, path))
        self.headers.append(dict(request.headers))
        self.before()
        if request.method == "POST":
            return self._authenticate(request, context)
        if path == "auth/tokens":
            return self._subject(request, context)
        if path == "auth/projects":
            return {"projects": self.projects}
        if path == "domains":
            return {
                "domains": [
                    {"id": "default", "name": "Default", "enabled": True},
                    {"id": "corp", "name": "Corp", "enabled": True},
                ]
            }
        if path == "users/u1":
            user: dict[str, Any] = {"id": "u1", "name": "demo"}
            if self.default_project:
                user["default_project_id"] = self.default_project
            return {"user": user}
        if path == "users/u1/projects":
            return {"projects": [] if self.federated else self.projects}
        context.status_code = 404
        return error(404, "Not found")

    def _is_service(self, identity: dict[str, Any]) -> bool:
        return bool(identity.get("password", {}).get("user", {}).get("name") == "svc")

    def _authenticate(self, request: Any, context: Any) -> Any:
        auth = request.json()["auth"]
        context.headers["X-Openstack-Request-Id"] = "req-keystone"
        if self.refusal is not None:
            context.status_code, message = self.refusal
            return error(context.status_code, message)
        if "password" in auth["identity"]:
            user = auth["identity"]["password"]["user"]
            if user["name"] == "totp":
                context.status_code = 401
                context.headers["Openstack-Auth-Receipt"] = RECEIPT
                return {
                    "receipt": {"methods": ["password"]},
                    "required_auth_methods": [["password", "totp"]],
                }
            if user["password"] != PASSWORD:
                context.status_code = 401
                return error(401)
            # Keystone takes the default project when it can be used.
            project = self.default_project if self.default_project in ("p1", "p2") else None
        else:
            project = auth["scope"]["project"]["id"]
            if project not in [item["id"] for item in self.projects]:
                context.status_code = 401
                return error(401)
        token_id = self.token(f"t-{next(self._numbers)}", project)
        context.status_code = 201
        context.headers["X-Subject-Token"] = token_id
        return self.tokens[token_id]

    def _subject(self, request: Any, context: Any) -> Any:
        subject = request.headers["X-Subject-Token"]
        if subject == "service":
            return token_body()
        if subject not in self.tokens:
            context.status_code = 404
            return error(404, "Could not find token.")
        if request.method == "DELETE":
            del self.tokens[subject]
            context.status_code = 204
            return None
        return self.tokens[subject]

    def _neutron(self, request: Any, context: Any) -> Any:
        if "network" in self.down:
            raise requests.ConnectionError("refused")
        return {"extensions": [{"alias": alias} for alias in self.extensions]}
