"""Objects notice what was changed, also in place, and write nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimaran import errors
from trimaran.db import Database, migrate
from trimaran.db.queries import magnum as queries
from trimaran.magnum import objects
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects.defaults import count_label

TEMPLATE = "99999999-2222-3333-4444-555555555555"
UUID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def db(tmp_path: Path) -> Any:
    url = f"sqlite:///{tmp_path}/magnum.sqlite"
    migrate.upgrade(url, "magnum")
    made = Database(url)
    yield made
    made.dispose()


@pytest.fixture
def context(db: Database) -> RequestContext:
    def fill(session: Any) -> None:
        template = queries.insert_template(
            session, {"uuid": TEMPLATE, "name": "t", "project_id": "p1", "image_id": "i"}
        )
        values = {
            "uuid": UUID,
            "name": "c",
            "project_id": "p1",
            "cluster_template_id": TEMPLATE,
            "labels": {"a": "1"},
            "status": "CREATE_COMPLETE",
        }
        groups = objects.default_nodegroups(values, template, 1, 2)
        queries.create_cluster(session, values, groups)

    db.write(fill)
    return RequestContext.admin(db)


def test_save_writes_only_what_changed(db: Database, context: RequestContext) -> None:
    mine = objects.Cluster.get_by_uuid(context, UUID)
    theirs = objects.Cluster.get_by_uuid(context, UUID)
    theirs.status = "DELETE_IN_PROGRESS"
    theirs.save()

    mine.stack_id = "stack"
    assert mine.obj_what_changed() == {"stack_id"}
    mine.save()

    row = db.read(lambda s: queries.find_cluster(s, UUID))
    assert (row.status, row.stack_id) == ("DELETE_IN_PROGRESS", "stack")
    assert mine.obj_what_changed() == set()


def test_a_dict_changed_in_place_is_saved(db: Database, context: RequestContext) -> None:
    cluster = objects.Cluster.get_by_uuid(context, UUID)
    cluster.labels["b"] = 2
    cluster.save()
    assert db.read(lambda s: queries.find_cluster(s, UUID)).labels == {"a": "1", "b": "2"}
    cluster.labels["b"] = "2"
    assert cluster.obj_what_changed() == set()


def test_f67_a_driver_writes_back_what_an_autoscaler_made(
    db: Database, context: RequestContext
) -> None:
    worker = objects.Cluster.get_by_uuid(context, UUID).default_ng_worker
    worker.node_count = 5
    worker.save()
    assert objects.Cluster.get_by_uuid(context, UUID).node_count == 5
    totals = db.read(lambda session: queries.node_totals(session, [UUID]))
    assert totals[UUID].node_count == 5


def test_refresh_and_gone(db: Database, context: RequestContext) -> None:
    cluster = objects.Cluster.get_by_uuid(context, UUID)
    cluster.name = "other"
    cluster.refresh()
    assert cluster.name == "c"
    objects.Cluster.get_by_uuid(context, UUID).destroy()
    cluster.name = "other"
    with pytest.raises(errors.NotFound):
        cluster.save()
    with pytest.raises(errors.NotFound):
        cluster.refresh()


def test_sizes_groups_and_template_are_read_when_asked(context: RequestContext) -> None:
    cluster = objects.Cluster.get_by_uuid(context, UUID)
    assert (cluster.master_count, cluster.node_count) == (1, 2)
    assert cluster.default_ng_worker.name == "default-worker"
    assert cluster.default_ng_master.role == "master"
    worker = cluster.default_ng_worker
    worker.node_addresses = ["10.0.0.1"]
    worker.save()
    assert cluster.node_addresses == ["10.0.0.1"]
    assert cluster.as_dict()["node_addresses"] == ["10.0.0.1"]
    assert cluster.cluster_template.image_id == "i"
    names = [g.name for g in objects.NodeGroup.list(context, UUID, filters={"role": "worker"})]
    assert names == ["default-worker"]


def test_a_project_sees_only_its_own(db: Database, context: RequestContext) -> None:
    other = RequestContext(project_id="p2", db=db)
    assert objects.Cluster.list(other) == []
    with pytest.raises(errors.NotFound):
        objects.Cluster.get_by_uuid(other, UUID)
    found = objects.Cluster.list(context, filters={"status": ["CREATE_COMPLETE"]})
    assert [c.uuid for c in found] == [UUID]


def test_a_field_that_was_never_set_is_absent() -> None:
    cluster = objects.Cluster(None, uuid=UUID)
    assert "name" not in cluster
    assert not hasattr(cluster, "name")
    assert cluster["uuid"] == UUID
    cluster.name = "c"
    with pytest.raises(RuntimeError):
        cluster.save()


def test_default_nodegroups_follow_cluster_and_template() -> None:
    cluster = {
        "uuid": UUID,
        "project_id": "p",
        "labels": {"min_node_count": "2", "max_node_count": "0"},
        "flavor_id": "big",
    }
    template = {"image_id": "i", "flavor_id": "small", "master_flavor_id": "m"}
    master, worker = objects.default_nodegroups(cluster, template, 3, 5)
    assert (master["node_count"], master["flavor_id"], master["min_node_count"]) == (3, "m", 0)
    assert (worker["node_count"], worker["flavor_id"], worker["min_node_count"]) == (5, "big", 2)
    # A maximum of 0 means none (F-44).
    assert worker["max_node_count"] is None
    assert {master["status"], worker["status"]} == {"CREATE_IN_PROGRESS"}


@pytest.mark.parametrize("text", ["abc", "-1", "1.5"])
def test_a_label_that_is_no_number_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(errors.BadRequest, match="labels\\[min_node_count\\]"):
        count_label({"min_node_count": text}, "min_node_count")
