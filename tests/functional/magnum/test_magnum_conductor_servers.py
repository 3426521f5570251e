"""The sandbox driver's real servers: they boot in the cluster's project and vanish with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import ADMIN, DEMO, CloudEnv
from tests.support.magnum_conductor import NO_BROKER, Deployment
from tests.support.processes import Fleet
from trimaran.magnum.context import RequestContext

#: seconds for Nova
WAIT = 300.0


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


class World:
    """A deployment whose user is the demo member."""

    def __init__(self, cloud: CloudEnv, magnum: Deployment) -> None:
        self.cloud, self.magnum = cloud, magnum
        session = cloud.session(DEMO)
        self.project = str(session.get_project_id())
        magnum.context = RequestContext(
            auth_token=session.get_token(),
            project_id=self.project,
            user_id=session.get_user_id(),
            user_name=DEMO.name,
        )

    def template(self, **values: Any) -> Any:
        # The oldest is the cloud's own; others come and go with other tests.
        oldest = "/v2/images?limit=1&sort=created_at:asc"
        image = self.cloud.call(DEMO, "image", "GET", oldest)["images"][0]["id"]
        return self.magnum.template(
            image_id=image, flavor_id="m1.tiny", master_flavor_id="m1.tiny", **values
        )

    def servers(self, cluster: str) -> list[dict[str, Any]]:
        rows = self.cloud.call(DEMO, "compute", "GET", "/servers/detail")["servers"]
        return [row for row in rows if row["metadata"].get("magnum_cluster") == cluster]

    def remove_servers(self, cluster: str) -> None:
        for row in self.servers(cluster):
            self.cloud.call(ADMIN, "compute", "DELETE", f"/servers/{row['id']}", raise_exc=False)


@pytest.fixture
def world(tmp_path: Path, magnum_mariadb_url: str, cloud_env: CloudEnv) -> Iterator[World]:
    # By the end of a dead one's lease Nova has done what it was asked for last.
    magnum = Deployment(tmp_path, magnum_mariadb_url, auth_url=cloud_env.auth_url, lease=10)
    made = World(cloud_env, magnum)
    yield made
    for event in magnum.log("events.log"):
        made.remove_servers(event["cluster"])
    magnum.db.dispose()


def test_servers_boot_in_the_project_grow_and_vanish(world: World, fleet: Fleet) -> None:
    magnum = world.magnum
    magnum.start(fleet, "one-no-broker", NO_BROKER)
    cluster = magnum.create({}, template=world.template(), masters=1, workers=1)
    row = magnum.until_status(cluster, "CREATE_COMPLETE", WAIT)

    servers = world.servers(cluster)
    assert sorted(s["status"] for s in servers) == ["ACTIVE", "ACTIVE"]
    assert {s["tenant_id"] for s in servers} == {world.project}
    groups = magnum.groups(cluster)
    addresses = {a["addr"] for s in servers for found in s["addresses"].values() for a in found[:1]}
    noted = groups["default-master"].node_addresses + groups["default-worker"].node_addresses
    assert set(noted) == addresses
    assert row.api_address == f"https://{groups['default-master'].node_addresses[0]}:6443"

    worker = groups["default-worker"].uuid
    magnum.ask("cluster_resize", cluster, node_count=2, nodes_to_remove=[], nodegroup=worker)
    magnum.until_status(cluster, "UPDATE_COMPLETE", WAIT)
    assert len(world.servers(cluster)) == 3
    gone = next(s for s in world.servers(cluster) if s["metadata"]["magnum_nodegroup"] == worker)
    magnum.ask(
        "cluster_resize", cluster, node_count=1, nodes_to_remove=[gone["id"]], nodegroup=worker
    )
    magnum.until(
        lambda: (
            len(world.servers(cluster)) == 2 and magnum.cluster(cluster).status == "UPDATE_COMPLETE"
        ),
        WAIT,
    )

    magnum.delete(cluster)
    magnum.until_status(cluster, None, WAIT)
    assert world.servers(cluster) == []


def test_a_killed_conductor_leaves_no_server_twice(world: World, fleet: Fleet) -> None:
    magnum = world.magnum
    magnum.start(fleet, "one-no-broker", NO_BROKER)
    magnum.start(fleet, "two-no-broker", NO_BROKER)
    cluster = magnum.create({}, template=world.template(), masters=1, workers=3)
    # Killed between two of the four servers, wherever that is.
    magnum.until(lambda: world.servers(cluster), WAIT)
    victim = magnum.events(cluster, "create")[0]["pid"]
    if not magnum.events(cluster, "create-done"):
        next(child for child in fleet.children if child.pid == victim).kill()

    magnum.until_status(cluster, "CREATE_COMPLETE", WAIT)
    servers = world.servers(cluster)
    assert len({s["name"] for s in servers}) == len(servers) == 4
    magnum.delete(cluster)
    magnum.until_status(cluster, None, WAIT)


def test_what_nova_refuses_is_the_reason(world: World, fleet: Fleet) -> None:
    magnum = world.magnum
    magnum.start(fleet, "one-no-broker", NO_BROKER)
    template = world.template()
    cluster = magnum.create({}, template=template, keypair="no-such-key")
    row = magnum.until_status(cluster, "CREATE_FAILED", WAIT)
    assert "key" in row.status_reason.lower()
    assert {g.status for g in magnum.groups(cluster).values()} == {"CREATE_FAILED"}
    magnum.delete(cluster)
    magnum.until_status(cluster, None, WAIT)


def test_an_operation_whose_token_cannot_be_used_fails_visibly(world: World, fleet: Fleet) -> None:
    magnum = world.magnum
    magnum.start(fleet, "one-no-broker", NO_BROKER)
    magnum.context = replace(magnum.context, auth_token="no-token-of-this-cloud")
    cluster = magnum.create({}, template=world.template())
    row = magnum.until_status(cluster, "CREATE_FAILED", WAIT)
    assert row.status_reason
    assert world.servers(cluster) == []
