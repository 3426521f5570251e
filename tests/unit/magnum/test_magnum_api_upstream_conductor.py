"""``[api] upstream_conductor``: requests go to magnum's own conductors, and nothing is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.magnum_api import World, world
from trimaran.db.models.work import Job
from trimaran.db.queries import magnum as queries
from trimaran.errors import Unavailable
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import Cluster, default_nodegroups
from trimaran.magnum.rpc import ConductorClient, envelope
from trimaran.magnum.rpc.threads import oslo_messaging

CLUSTERS = "/v1/clusters"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, "[api]\nupstream_conductor = true\n") as made:
        made.template()
        yield made


ONE = "00000000-0000-4000-8000-000000000010"


def stored(api: World) -> None:
    """Writes what a conductor would have written."""
    template = api.call("GET", "/v1/clustertemplates/ct").json()["uuid"]
    row = {
        "uuid": ONE, "name": "c", "project_id": "p1", "user_id": "u1", "labels": {},
        "cluster_template_id": template, "api_address": "https://192.0.2.1",
        "flavor_id": "m1", "master_flavor_id": "m1", "status": "CREATE_COMPLETE",
    }  # fmt: skip
    groups = [
        {**group, "status": "CREATE_COMPLETE"}
        for group in default_nodegroups(row, {"image_id": "ub"}, 1, 1)
    ]
    api.parts.db.write(lambda s: queries.create_cluster(s, row, groups))


def jobs(api: World) -> int:
    return api.parts.db.read(lambda s: s.scalar(sa.select(sa.func.count()).select_from(Job))) or 0


def test_create_is_the_conductors_to_write(api: World) -> None:
    ident = api.cluster(cluster_template_id="ct", labels={"a": "b"})
    ((name, (_, cluster, *_), _),) = api.conductor.casts
    assert name == "cluster_create"
    sent = envelope.pack(cluster)
    # Upstream inserts what counts as changed, and finds the number by itself.
    assert {"uuid", "name", "labels", "project_id"} <= set(sent["magnum_object.changes"])
    assert "id" not in sent["magnum_object.data"]
    assert sent["magnum_object.data"]["uuid"] == ident
    assert api.call("GET", f"{CLUSTERS}/{ident}").status_code == 404
    assert jobs(api) == 0


def test_the_quota_counts_all_the_same(api: World) -> None:
    stored(api)
    quota = {"project_id": "p1", "resource": "Cluster", "hard_limit": 1}
    assert api.call("POST", "/v1/quotas", "t-admin", json=quota).status_code == 201
    answer = api.call("POST", CLUSTERS, json={"cluster_template_id": "ct"})
    assert answer.status_code == 403
    assert api.conductor.casts == []


def test_delete_and_changes_write_nothing(api: World) -> None:
    stored(api)
    path = f"{CLUSTERS}/{ONE}"
    step = [{"op": "replace", "path": "/node_count", "value": 2}]
    limit = [{"op": "replace", "path": "/max_node_count", "value": 7}]
    for method, rest, status, body in (
        ("PATCH", "", 202, step),
        ("POST", "/actions/resize", 202, {"node_count": 3}),
        ("POST", "/nodegroups", 202, {"name": "n"}),
        ("PATCH", "/nodegroups/default-worker", 202, limit),
        ("DELETE", "", 204, None),
    ):
        answer = api.call(method, path + rest, json=body)
        assert answer.status_code == status, answer.text
    assert api.conductor.names() == [
        "cluster_update", "cluster_resize", "nodegroup_create", "nodegroup_update",
        "cluster_delete",
    ]  # fmt: skip
    # What upstream's conductor saves of a node group is what counts as changed.
    new, changed = (api.conductor.casts[n][1][2] for n in (2, 3))
    assert {"uuid", "name", "cluster_id"} <= new.obj_what_changed()
    assert "status" not in new  # upstream's conductor refuses one that is in progress
    assert changed.obj_get_changes()["max_node_count"] == 7
    assert api.call("GET", path).json()["status"] == "CREATE_COMPLETE"
    groups = api.call("GET", f"{path}/nodegroups").json()["nodegroups"]
    assert {(group["name"], group["max_node_count"]) for group in groups} == {
        ("default-master", None),
        ("default-worker", None),
    }
    assert jobs(api) == 0


class Bus:
    """Stands in for oslo.messaging's client."""

    def __init__(self, problem: Exception | None) -> None:
        self.problem = problem
        self.sent: list[tuple[RequestContext, str]] = []

    def prepare(self, **_options: Any) -> Bus:
        return self

    def cast(self, context: RequestContext, method: str, **_arguments: Any) -> None:
        if self.problem:
            raise self.problem
        self.sent.append((context, method))


@pytest.mark.parametrize("problem", [None, oslo_messaging.MessageDeliveryFailure("no broker")])
def test_a_message_that_is_lost_is_told(
    monkeypatch: pytest.MonkeyPatch, problem: Exception | None
) -> None:
    bus = Bus(problem)
    monkeypatch.setattr(oslo_messaging, "get_rpc_client", lambda *_a, **_k: bus)
    client = ConductorClient(SimpleNamespace(), SimpleNamespace(), recorded=False)
    cluster = Cluster(uuid=ONE)
    if problem:
        with pytest.raises(Unavailable):
            client.cluster_create(RequestContext(), cluster, 1, 1, 60, operation="o")
        return
    client.cluster_create(RequestContext(), cluster, 1, 1, 60, operation="o")
    ((context, method),) = bus.sent
    assert (context.operation_id, method) == (None, "cluster_create")
