"""A small REST client for seeding.

The client libraries take longer to import than the seeding itself, and the addresses
are known from the settings: nothing needs to be looked up in the catalog.
"""

from __future__ import annotations

from typing import Any

import requests

from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.settings import PASSWORD, Settings

TIMEOUT = 60.0
_PREFIX = {
    "keystone": "/v3",
    "nova": "/v2.1",
    "neutron": "/v2.0",
    "glance": "/v2",
    "placement": "",
}


class Api:
    """All services as one user, scoped to a project.

    Args:
        user, project: names in the default domain.
    """

    def __init__(self, settings: Settings, user: str, project: str) -> None:
        self.settings = settings
        self.http = requests.Session()
        self.http.trust_env = False
        answer = self.http.post(
            f"{settings.auth_url}/auth/tokens", json=login(user, project), timeout=TIMEOUT
        )
        if answer.status_code != 201:
            raise SandboxError(f"Keystone refuses {user}: HTTP {answer.status_code}.")
        token = answer.json()["token"]
        self.project_id: str = token["project"]["id"]
        self.user_id: str = token["user"]["id"]
        self.http.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
        # block_device_mapping, force-completed states: current behaviour everywhere
        self.http.headers["OpenStack-API-Version"] = "compute 2.90,volume 3.60,placement 1.35"

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def call(self, method: str, service: str, path: str, **options: Any) -> requests.Response:
        """One request.

        Raises:
            SandboxError: any answer that is not a success; names the request.
        """
        prefix = f"/v3/{self.project_id}" if service == "cinder" else _PREFIX[service]
        url = self.settings.url(service, prefix + path)
        try:
            answer = self.http.request(method, url, timeout=TIMEOUT, **options)
        except requests.RequestException as error:
            raise SandboxError(f"{method} {url} failed: {error}.") from error
        if not answer.ok:
            raise SandboxError(
                f"{method} {url} was answered with HTTP {answer.status_code}: {answer.text[:300]}"
            )
        return answer

    def get(self, service: str, path: str) -> Any:
        """GET, decoded."""
        return self.call("GET", service, path).json()

    def post(self, service: str, path: str, body: Any) -> Any:
        """POST, the answer decoded when there is one."""
        answer = self.call("POST", service, path, json=body)
        return answer.json() if answer.content else None

    def put(self, service: str, path: str, body: Any = None) -> Any:
        """PUT, the answer decoded when there is one."""
        answer = self.call("PUT", service, path, json=body)
        return answer.json() if answer.content else None

    def patch(self, service: str, path: str, body: Any) -> Any:
        """PATCH, decoded."""
        return self.call("PATCH", service, path, json=body).json()


def login(user: str, project: str | None) -> dict[str, Any]:
    """The body of a password authentication, unscoped when no project is given."""
    default = {"id": "default"}
    auth: dict[str, Any] = {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": user, "password": PASSWORD, "domain": default}},
        }
    }
    if project is None:
        auth["scope"] = "unscoped"
    else:
        auth["scope"] = {"project": {"name": project, "domain": default}}
    return {"auth": auth}
