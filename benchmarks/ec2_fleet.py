"""Many real servers and volumes in a project of their own, kept between two commands.

Making them takes Nova minutes, so a file remembers the project from one command
to the next.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.cloud import ADMIN, CloudEnv, Person
from tests.support.ec2_project import Project, make_project
from tests.support.ec2_tenant import CINDER, Tenant, until

PATIENCE = 900.0


def kept(cloud: CloudEnv, file: Path) -> Tenant:
    """The project that a file remembers."""
    row = json.loads(file.read_text())
    person = Person(row["name"], row["name"])
    return Tenant(cloud, Project(cloud, row["project"], person, row["user"]))


def make(cloud: CloudEnv, file: Path, count: int) -> Tenant:
    """A project with so many running servers and as many free volumes.

    Args:
        cloud: the sandbox.
        file: remembers the project as soon as it is there.
        count: how many.
    """
    project = make_project(cloud)
    file.write_text(
        json.dumps({"project": project.id, "name": project.person.name, "user": project.user_id})
    )
    mine = Tenant(cloud, project)
    mine.nova_quota(instances=-1, cores=-1, ram=-1)
    mine.quota(port=-1)
    unlimited = {"quota_set": {"volumes": -1, "gigabytes": -1}}
    cloud.call(ADMIN, CINDER, "PUT", f"/os-quota-sets/{project.id}", json=unlimited)
    network = project.neutron("POST", "networks", json={"network": {"name": "fleet"}})["network"]
    subnet = {"network_id": network["id"], "cidr": "10.9.0.0/22", "ip_version": 4}
    project.neutron("POST", "subnets", json={"subnet": subnet})
    images = mine.glance("GET", "images?visibility=public")["images"]
    flavors = mine.nova("GET", "/flavors")["flavors"]
    server = {
        "name": "fleet",
        "imageRef": next(row["id"] for row in images if row["disk_format"] == "qcow2"),
        "flavorRef": next(row["id"] for row in flavors if row["name"] == "cirros256"),
        "networks": [{"uuid": network["id"]}],
        "min_count": count,
        "max_count": count,
    }
    mine.nova("POST", "/servers", json={"server": server})
    for _ in range(count):
        mine.cinder("POST", "/volumes", json={"volume": {"size": 1}})

    def ready() -> bool:
        rows: list[dict[str, Any]] = mine.nova("GET", "/servers/detail")["servers"]
        states = [row["status"] for row in rows]
        assert "ERROR" not in states
        return states == ["ACTIVE"] * count

    until(ready, PATIENCE, pause=10)
    until(
        lambda: {row["status"] for row in mine.stored("volumes")} == {"available"},
        PATIENCE,
        pause=5,
    )
    return mine


def remove(mine: Tenant, file: Path) -> None:
    """Deletes all of it."""
    mine.clear()
    mine.project.remove()
    file.unlink()
