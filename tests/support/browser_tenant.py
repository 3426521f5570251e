"""A user with two projects of its own, so that what a browser makes is seen by nobody else."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.cloud import ADMIN, CloudEnv, Person
from tests.support.console_service import eventually

PASSWORD = "correct horse 7"


@dataclass(frozen=True)
class Tenant:
    """Who uses the console.

    Attributes:
        person: the user, in its default project.
        other: the user in its other project.
    """

    person: Person
    other: Person


@contextmanager
def tenant(cloud: CloudEnv) -> Iterator[Tenant]:
    """Makes a member of two projects; all that it made goes with it."""

    def identity(method: str, path: str, **kwargs: Any) -> Any:
        return cloud.call(ADMIN, "identity", method, path, **kwargs)

    name = f"browser-{uuid.uuid4().hex[:8]}"
    projects = [
        identity(
            "POST", "/projects", json={"project": {"name": f"{name}-{end}", "domain_id": "default"}}
        )["project"]
        for end in ("one", "two")
    ]
    user = identity(
        "POST",
        "/users",
        json={
            "user": {
                "name": name,
                "password": PASSWORD,
                "domain_id": "default",
                "default_project_id": projects[0]["id"],
            }
        },
    )["user"]
    member = identity("GET", "/roles?name=member")["roles"][0]["id"]
    for project in projects:
        identity("PUT", f"/projects/{project['id']}/users/{user['id']}/roles/{member}")
    people = [Person(name, project["name"], PASSWORD) for project in projects]
    try:
        yield Tenant(*people)
    finally:
        for person in people:
            _clear(cloud, person)
        identity("DELETE", f"/users/{user['id']}")
        for project in projects:
            for group in cloud.call(
                ADMIN, "network", "GET", f"/v2.0/security-groups?project_id={project['id']}"
            )["security_groups"]:
                cloud.call(ADMIN, "network", "DELETE", f"/v2.0/security-groups/{group['id']}")
            identity("DELETE", f"/projects/{project['id']}")


def _clear(cloud: CloudEnv, person: Person) -> None:
    def gone(service: str, path: str, key: str) -> None:
        for item in cloud.call(person, service, "GET", path)[key]:
            cloud.call(person, service, "DELETE", f"{path}/{item['id']}", raise_exc=False)
        eventually(lambda: not cloud.call(person, service, "GET", path)[key], f"the {key} are gone")

    gone("compute", "/servers", "servers")
    gone("block-storage", "/volumes", "volumes")
    project = cloud.session(person).get_project_id()
    for network in cloud.call(person, "network", "GET", f"/v2.0/networks?project_id={project}")[
        "networks"
    ]:
        cloud.call(person, "network", "DELETE", f"/v2.0/networks/{network['id']}")
