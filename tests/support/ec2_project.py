"""A project of its own on the real cloud, so that what it has in Neutron can be compared."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from keystoneauth1.session import Session

from tests.support.cloud import ADMIN, CloudEnv, Person

#: Neutron's collections that a topology is made of.
COLLECTIONS = ("routers", "networks", "subnets", "ports", "security-groups", "floatingips")


class Project:
    """One fresh project with one member.

    Attributes:
        id: Keystone's id.
        person: the member.
        user_id: the member's id.
        keys: the member's EC2 credentials.
    """

    def __init__(self, cloud: CloudEnv, project_id: str, person: Person, user_id: str) -> None:
        self.cloud, self.id, self.person, self.user_id = cloud, project_id, person, user_id
        self.keys = cloud.ec2_credentials(person)

    @cached_property
    def session(self) -> Session:
        """The member's, so that not every call logs in anew."""
        return self.cloud.session(self.person)

    def call(self, service: str, method: str, path: str, **kwargs: Any) -> Any:
        """A call to a service as the member; arguments as of `CloudEnv.call`."""
        where = {"service_type": service, "interface": "public"}
        response = self.session.request(path, method, endpoint_filter=where, **kwargs)
        return response.json() if response.content else None

    def neutron(self, method: str, path: str, **kwargs: Any) -> Any:
        """A call to Neutron as the member."""
        return self.call("network", method, f"/v2.0/{path}", **kwargs)

    def listed(self, what: str, **query: str) -> list[dict[str, Any]]:
        """The project's objects of a collection of Neutron."""
        words = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.neutron("GET", f"{what}?project_id={self.id}&{words}")
        rows: list[dict[str, Any]] = answer[what.replace("-", "_")]
        return rows

    def own_network(self) -> None:
        """Makes a network ``private`` with a subnet, for launches without a VPC."""
        made = self.neutron("POST", "networks", json={"network": {"name": "private"}})
        body = {"network_id": made["network"]["id"], "cidr": "10.0.0.0/24", "ip_version": 4}
        self.neutron("POST", "subnets", json={"subnet": body})

    def left(self) -> dict[str, set[str]]:
        """Names (or ids) of everything that the project has in Neutron."""
        return {
            what: {row.get("name") or row["id"] for row in self.listed(what)}
            for what in COLLECTIONS
        }

    def clear(self) -> None:
        """Deletes everything that the project has in Neutron."""

        def delete(path: str) -> None:
            self.neutron("DELETE", path, raise_exc=False)

        for row in self.listed("floatingips"):
            delete(f"floatingips/{row['id']}")
        for port in self.listed("ports"):
            if port["device_owner"].startswith("network:router_interface"):
                self.neutron(
                    "PUT",
                    f"routers/{port['device_id']}/remove_router_interface",
                    json={"port_id": port["id"]},
                    raise_exc=False,
                )
            else:
                delete(f"ports/{port['id']}")
        for what in ("routers", "networks", "security-groups"):
            for row in self.listed(what):
                delete(f"{what}/{row['id']}")

    def remove(self) -> None:
        """Deletes it, with its member and all that it has in Neutron."""
        self.clear()
        admin = self.cloud.session(ADMIN)
        admin.delete(f"{self.cloud.auth_url}/users/{self.user_id}")
        admin.delete(f"{self.cloud.auth_url}/projects/{self.id}")


def make_project(cloud: CloudEnv, *roles: str) -> Project:
    """A project with a member, until somebody removes it.

    Args:
        cloud: the sandbox.
        roles: of the member; by default ``member``.
    """
    admin = cloud.session(ADMIN)
    name = f"ec2-{uuid.uuid4().hex[:8]}"

    def make(what: str, **body: Any) -> str:
        answer = admin.post(f"{cloud.auth_url}/{what}s", json={what: {"name": name, **body}})
        return str(answer.json()[what]["id"])

    project_id = make("project", domain_id="default")
    user_id = make("user", domain_id="default", password="password")
    listed = admin.get(f"{cloud.auth_url}/roles").json()["roles"]
    for role in listed:
        if role["name"] in (roles or ("member",)):
            admin.put(f"{cloud.auth_url}/projects/{project_id}/users/{user_id}/roles/{role['id']}")
    return Project(cloud, project_id, Person(name, name), user_id)


@contextlib.contextmanager
def fresh_project(cloud: CloudEnv, *roles: str) -> Iterator[Project]:
    """Makes a project with a member, and removes it with all that it has.

    Args:
        cloud: the sandbox.
        roles: of the member; by default ``member``.
    """
    made = make_project(cloud, *roles)
    try:
        yield made
    finally:
        made.remove()
