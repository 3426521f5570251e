"""Keystone's answers for tests without Keystone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import requests_mock

from trimaran.config.common import defaults
from trimaran.identity import Identity, Token, from_password

URL = "http://keystone.test:5000/v3"
REGION = "RegionOne"

ENDPOINTS: Mapping[str, str] = {
    "identity": "http://keystone.test:5000",
    "compute": "http://nova.test/v2.1",
    "network": "http://neutron.test",
    "image": "http://glance.test",
    "volumev3": "http://cinder.test/v3/project",
    "key-manager": "http://barbican.test",
}


def moment(seconds: float) -> str:
    """The time that many seconds from now, as Keystone writes it."""
    when = datetime.now(UTC) + timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def catalog(endpoints: Mapping[str, str] = ENDPOINTS, region: str = REGION) -> list[dict[str, Any]]:
    """A catalog with all three interfaces of each service."""
    return [
        {
            "type": kind,
            "name": kind,
            "endpoints": [
                {"interface": interface, "region_id": region, "region": region, "url": url}
                for interface in ("public", "internal", "admin")
            ],
        }
        for kind, url in endpoints.items()
    ]


def token_body(*, seconds: float = 3600, **changes: Any) -> dict[str, Any]:
    """The body of a project-scoped token; a change to None removes the member."""
    body: dict[str, Any] = {
        "methods": ["password"],
        "user": {"id": "u1", "name": "demo", "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p1", "name": "demo", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"id": "r1", "name": "member"}, {"id": "r2", "name": "reader"}],
        "issued_at": moment(0),
        "expires_at": moment(seconds),
        "catalog": catalog(),
    }
    body.update(changes)
    return {"token": {name: value for name, value in body.items() if value is not None}}


def token(token_id: str = "user-token", **changes: Any) -> Token:
    """A token value."""
    return Token.from_body(token_id, token_body(**changes))


def error(
    status: int, message: str = "The request you have made requires authentication."
) -> dict[str, Any]:
    """Keystone's error document."""
    return {"error": {"code": status, "title": "Refused", "message": message}}


def identity(**options: Any) -> Identity:
    """An identity whose Keystone is ``URL``."""
    own = options.pop("own", None) or defaults()
    values = {"auth_url": URL, "username": "svc", "password": "s3cret", "project_name": "service"}
    return from_password(**{**values, **options}, own=own, region=REGION)


class Keystone:
    """Plays Keystone on a requests_mock adapter.

    Args:
        mock: the adapter.

    Attributes:
        service_tokens: ids handed to our service user, in order.
        valid: token ids that are accepted in ``X-Auth-Token``.
        subjects: bodies of the tokens that can be validated.
        password: the service user's password.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.mock = mock
        self.service_tokens: list[str] = []
        self.valid: set[str] = set()
        self.subjects: dict[str, dict[str, Any]] = {}
        self.password = "s3cret"
        self.validations = 0
        mock.post(f"{URL}/auth/tokens", json=self._authenticate)
        mock.get(re.compile(rf"{URL}/auth/tokens(\?nocatalog)?$"), json=self._validate)

    def _authenticate(self, request: Any, context: Any) -> dict[str, Any]:
        user = request.json()["auth"]["identity"]["password"]["user"]
        if user["password"] != self.password:
            context.status_code = 401
            return error(401)
        token_id = f"service-{len(self.service_tokens) + 1}"
        self.service_tokens.append(token_id)
        self.valid.add(token_id)
        context.status_code = 201
        context.headers["X-Subject-Token"] = token_id
        return token_body()

    def _validate(self, request: Any, context: Any) -> dict[str, Any]:
        subject = request.headers["X-Subject-Token"]
        if request.headers["X-Auth-Token"] not in self.valid:
            context.status_code = 401
            return error(401)
        if subject in self.valid:
            return token_body()
        self.validations += 1
        if subject in self.subjects:
            return self.subjects[subject]
        context.status_code = 404
        return error(404, "Could not find token.")
