"""The sandbox cloud as tests see it: who is there, and how to ask it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import requests
import yaml
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3


@dataclass(frozen=True)
class Person:
    """A user of the sandbox with the project that it works in."""

    name: str
    project: str
    password: str = "password"
    domain: str = "Default"


ADMIN = Person("admin", "admin")
DEMO = Person("demo", "demo")
ALT = Person("alt_demo", "alt_demo")
READER = Person("demo_reader", "demo")
MANAGER = Person("demo_manager", "demo")


class CloudEnv:
    """One running sandbox.

    Args:
        state: its state directory.
    """

    def __init__(self, state: Path) -> None:
        self.state = state

    @cached_property
    def clouds(self) -> dict[str, Any]:
        return dict(yaml.safe_load((self.state / "clouds.yaml").read_text())["clouds"])

    @property
    def auth_url(self) -> str:
        return str(self.clouds["sandbox-admin"]["auth"]["auth_url"])

    @property
    def region(self) -> str:
        return str(self.clouds["sandbox-admin"]["region_name"])

    def is_up(self) -> bool:
        """Whether Keystone and Nova of this sandbox answer."""
        if not (self.state / "clouds.yaml").exists():
            return False
        try:
            if requests.get(self.auth_url, timeout=5).status_code != 200:
                return False
            nova = self.session(ADMIN).get_endpoint(service_type="compute", interface="public")
            return bool(requests.get(str(nova), timeout=20).status_code < 500)
        except Exception:
            return False

    def session(self, who: Person = DEMO, **scope: Any) -> ksession.Session:
        """A plain keystoneauth session of this person, independent of our own code."""
        scope = scope or {"project_name": who.project, "project_domain_name": who.domain}
        auth = v3.Password(
            auth_url=self.auth_url,
            username=who.name,
            password=who.password,
            user_domain_name=who.domain,
            **scope,
        )
        return ksession.Session(auth=auth, timeout=60)

    def call(self, who: Person, service: str, method: str, path: str, **kwargs: Any) -> Any:
        """One call to an OpenStack API as this person; the JSON body or None.

        Args:
            who: the caller.
            service: service type of the catalog.
            method: HTTP method.
            path: path below the catalog's endpoint.
            kwargs: what ``Session.request`` takes (``json=``, ``raise_exc=``…).
        """
        response = self.session(who).request(
            path,
            method,
            endpoint_filter={"service_type": service, "interface": "public"},
            **kwargs,
        )
        return response.json() if response.content else None

    def ec2_credentials(self, who: Person = DEMO) -> tuple[str, str]:
        """The (access, secret) keys of this person in its project, made when missing."""
        session = self.session(who)
        base = f"{self.auth_url}/users/{session.get_user_id()}/credentials/OS-EC2"
        project = session.get_project_id()
        for row in session.get(base).json()["credentials"]:
            if row["tenant_id"] == project:
                return row["access"], row["secret"]
        row = session.post(base, json={"tenant_id": project}).json()["credential"]
        return row["access"], row["secret"]
