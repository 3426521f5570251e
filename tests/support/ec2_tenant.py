"""A project of its own with servers in it: what it has in Nova and Neutron can be compared."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.cloud import ADMIN, CloudEnv
from tests.support.ec2_project import Project, fresh_project

PATIENCE = 120.0


class Tenant:
    """A project and its servers.

    Attributes:
        project: Neutron's part of it.
        keys: the member's EC2 credentials.
    """

    def __init__(self, env: CloudEnv, project: Project) -> None:
        self.env, self.project, self.keys = env, project, project.keys

    def nova(self, method: str, path: str, **kwargs: Any) -> Any:
        """A call to Nova as the member."""
        return self.env.call(self.project.person, "compute", method, path, **kwargs)

    def rows(self, what: str, **query: str) -> list[dict[str, Any]]:
        """Neutron's objects of the project."""
        return self.project.listed(what, **query)

    def port(self, interface_id: str) -> dict[str, Any]:
        """Neutron's port of an interface."""
        [row] = self.rows("ports", name=interface_id)
        return row

    def address(self, public: str) -> dict[str, Any]:
        """Neutron's floating IP."""
        [row] = self.rows("floatingips", floating_ip_address=public)
        return row

    def servers(self) -> dict[str, dict[str, Any]]:
        """Nova's servers by name."""
        return {row["name"]: row for row in self.nova("GET", "/servers/detail")["servers"]}

    def left(self) -> dict[str, set[str]]:
        """Everything that Neutron and Nova have of the project; for before and after."""
        return {**self.project.left(), "servers": set(self.servers())}

    def quota(self, **limits: int) -> None:
        """Sets quotas of Neutron."""
        path = f"/v2.0/quotas/{self.project.id}"
        self.env.call(ADMIN, "network", "PUT", path, json={"quota": limits})

    def clear(self) -> None:
        """Deletes all servers."""
        for row in self.servers().values():
            self.nova("DELETE", f"/servers/{row['id']}", raise_exc=False)
        until(lambda: not self.servers())


@contextlib.contextmanager
def tenant(env: CloudEnv) -> Iterator[Tenant]:
    """A new project with a member; both are deleted afterwards with what is in it."""
    with fresh_project(env) as project:
        made = Tenant(env, project)
        try:
            yield made
        finally:
            made.clear()


def until(question: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first answer that is not nothing."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    return answer
