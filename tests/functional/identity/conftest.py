"""Identities on the sandbox's Keystone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from tests.support.cloud import ADMIN, CloudEnv
from trimaran.config.common import defaults
from trimaran.identity import Identity, from_password


@pytest.fixture
def make_identity(cloud_env: CloudEnv) -> Callable[..., Identity]:
    """A function that makes an identity of the sandbox; arguments change its defaults."""

    def make(**options: Any) -> Identity:
        own = defaults(**options.pop("own", {}))
        values = {
            "auth_url": cloud_env.auth_url,
            "username": "ec2api",
            "password": "password",
            "project_name": "service",
        }
        return from_password(**{**values, **options}, own=own, region=cloud_env.region)

    return make


@pytest.fixture
def ours(make_identity: Callable[..., Identity]) -> Identity:
    return make_identity()


class People:
    """Makes users and projects through the administrator, and removes them again."""

    def __init__(self, env: CloudEnv) -> None:
        self._env = env
        self._session = env.session(ADMIN)
        self._made: list[str] = []

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        return self._session.request(f"{self._env.auth_url}/{path}", method, **kwargs)

    def user(self, **attributes: Any) -> dict[str, Any]:
        name = f"test-{uuid.uuid4().hex[:8]}"
        body = {"name": name, "password": "password", "domain_id": "default"} | attributes
        row: dict[str, Any] = self._call("POST", "users", json={"user": body}).json()["user"]
        self._made.append(f"users/{row['id']}")
        return row

    def change(self, user_id: str, **attributes: Any) -> None:
        self._call("PATCH", f"users/{user_id}", json={"user": attributes})

    def project(self, **attributes: Any) -> dict[str, Any]:
        body = {"name": f"test-{uuid.uuid4().hex[:8]}", "domain_id": "default"} | attributes
        row: dict[str, Any] = self._call("POST", "projects", json={"project": body}).json()[
            "project"
        ]
        self._made.append(f"projects/{row['id']}")
        return row

    def grant(self, user_id: str, project_id: str, role: str = "member") -> None:
        roles = self._call("GET", f"roles?name={role}").json()["roles"]
        self._call("PUT", f"projects/{project_id}/users/{user_id}/roles/{roles[0]['id']}")

    def revoke(self, token_id: str) -> None:
        self._call("DELETE", "auth/tokens", headers={"X-Subject-Token": token_id})

    def wait_until_refused(self, token_id: str) -> None:
        """Keystone's own cache lets a revoked token act for a second or two."""
        deadline = time.monotonic() + 90
        headers = {"X-Auth-Token": token_id, "X-Subject-Token": self._session.get_token()}
        url = f"{self._env.auth_url}/auth/tokens"
        while requests.get(url, headers=headers, timeout=60).status_code != 401:
            assert time.monotonic() < deadline, "the revoked token still works"
            time.sleep(0.2)

    def until_replaced(self, ours: Identity, token_id: str) -> Iterator[None]:
        """Turns until our service token is another one: each thread of Keystone may take a
        revoked token for a moment longer."""
        deadline = time.monotonic() + 90
        while True:
            yield
            if ours.service_token() != token_id:
                return
            assert time.monotonic() < deadline, "the revoked token is still ours"
            time.sleep(0.2)

    def clean(self) -> None:
        for path in reversed(self._made):
            self._call("DELETE", path)


@pytest.fixture
def people(cloud_env: CloudEnv) -> Iterator[People]:
    made = People(cloud_env)
    yield made
    made.clean()
