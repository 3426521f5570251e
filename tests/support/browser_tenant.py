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
    def gone(service: str, path: str, key: str, query: str = "") -> None:
        def none_left() -> bool:
            left = cloud.call(person, service, "GET", path + query)[key]
            for item in left:
                # Refused as long as something else still lets go of it.
                cloud.call(person, service, "DELETE", f"{path}/{item['id']}", raise_exc=False)
            return not left

        eventually(none_left, f"the {key} are gone", pause=0.5)

    gone("compute", "/servers", "servers")
    gone("block-storage", "/volumes", "volumes")
    project = cloud.session(person).get_project_id()
    gone("network", "/v2.0/networks", "networks", f"?project_id={project}")
