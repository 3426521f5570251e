"""A project of its own with servers and volumes in it, which are gone when it is left.

What it has in Nova, Neutron, Cinder and Glance can be compared before and after.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.support.cloud import ADMIN, CloudEnv
from tests.support.ec2_project import Project, fresh_project

PATIENCE = 300.0
CINDER = "block-storage"


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
        return self.project.call("compute", method, path, **kwargs)

    def cinder(self, method: str, path: str, **kwargs: Any) -> Any:
        """A call to Cinder as the member."""
        return self.project.call(CINDER, method, path, **kwargs)

    def glance(self, method: str, path: str, **kwargs: Any) -> Any:
        """A call to Glance as the member."""
        return self.project.call("image", method, f"/v2/{path}", **kwargs)

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

    def stored(self, what: str) -> list[dict[str, Any]]:
        """Cinder's ``volumes`` or ``snapshots``."""
        rows: list[dict[str, Any]] = self.cinder("GET", f"/{what}/detail")[what]
        return rows

    def images(self) -> list[dict[str, Any]]:
        """Glance's images that the project owns."""
        answer = self.glance("GET", f"images?owner={self.project.id}")
        rows: list[dict[str, Any]] = answer["images"]
        return rows

    def left(self) -> dict[str, set[str]]:
        """Everything that Neutron and Nova have of the project; for before and after."""
        return {**self.project.left(), "servers": set(self.servers())}

    def storage(self) -> set[str]:
        """Names of all volumes, snapshots, images and key pairs."""
        pairs = [row["keypair"] for row in self.nova("GET", "/os-keypairs")["keypairs"]]
        rows = [*self.stored("volumes"), *self.stored("snapshots"), *self.images(), *pairs]
        return {row["name"] or row["id"] for row in rows}

    def quota(self, **limits: int) -> None:
        """Sets quotas of Neutron."""
        path = f"/v2.0/quotas/{self.project.id}"
        self.env.call(ADMIN, "network", "PUT", path, json={"quota": limits})

    def nova_quota(self, **limits: int) -> None:
        """Sets quotas of Nova; -1 is without limit."""
        path = f"/os-quota-sets/{self.project.id}"
        self.env.call(ADMIN, "compute", "PUT", path, json={"quota_set": limits})

    def clear(self) -> None:
        """Deletes all servers, images, snapshots, volumes and key pairs."""
        for row in self.servers().values():
            self.nova("DELETE", f"/servers/{row['id']}", raise_exc=False)
        until(lambda: not self.servers(), 600, pause=1)
        for row in self.images():
            self.glance("DELETE", f"images/{row['id']}", raise_exc=False)
        # Volumes follow their snapshots, and snapshots the volumes that were made from them.
        for what in ("snapshots", "volumes"):
            until(partial(self._gone, what), pause=1)
        for pair in self.nova("GET", "/os-keypairs")["keypairs"]:
            self.nova("DELETE", f"/os-keypairs/{pair['keypair']['name']}", raise_exc=False)

    def _gone(self, what: str) -> bool:
        """Whether Cinder has nothing left; what it has is deleted."""
        rows = self.stored(what)
        for row in rows:
            if row["status"] != "deleting":
                self.cinder("DELETE", f"/{what}/{row['id']}", raise_exc=False)
        return not rows


@contextlib.contextmanager
def tenant(env: CloudEnv) -> Iterator[Tenant]:
    """A new project with a member; both are deleted afterwards with what is in it."""
    with fresh_project(env) as project:
        made = Tenant(env, project)
        try:
            yield made
        finally:
            made.clear()


def until(question: Callable[[], Any], seconds: float = PATIENCE, *, pause: float = 0.3) -> Any:
    """The first answer that is not nothing."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline
        time.sleep(pause)
    return answer
