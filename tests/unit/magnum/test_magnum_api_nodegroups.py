"""Spec sections 1.10 and 1.11: actions, and node groups that are made, changed and removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, Unavailable
from trimaran.magnum.api.schemas.nodegroup import NodeGroup

URL = "/v1/clusters"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.template(labels={"a": "1"})
        yield made


@pytest.fixture
def ident(api: World) -> str:
    """A cluster that is complete."""
    made = api.cluster(cluster_template_id="ct")
    update(api, made, status="CREATE_COMPLETE", api_address="https://203.0.113.10:6443")
    api.parts.db.write(
        lambda session: queries.update_nodegroups_of(session, made, {"status": "CREATE_COMPLETE"})
    )
    api.conductor.casts.clear()
    return made


def update(api: World, ident: str, **columns: Any) -> None:
    api.parts.db.write(lambda session: queries.update_cluster(session, ident, columns))


def post(api: World, ident: str, **fields: Any) -> Any:
    body = {"name": "more", **fields}
    return api.call("POST", f"{URL}/{ident}/nodegroups/", json=body)


def action(api: World, ident: str, name: str, at: str = "latest", **body: Any) -> Any:
    headers = {"OpenStack-API-Version": f"container-infra {at}"}
    return api.call("POST", f"{URL}/{ident}/actions/{name}", json=body, headers=headers)


def test_create(api: World, ident: str) -> None:
    answer = post(
        api,
        ident,
        node_count=2,
        max_node_count=3,
        labels={"z": 1},
        node_labels={"team": "x", "node.kubernetes.io/instance-type": "big"},
        node_taints=[{"key": "k", "effect": "NoSchedule"}],
    )
    assert answer.status_code == 202
    assert "Location" not in answer.headers
    body = answer.json()
    NodeGroup.model_validate(body)
    expected = {
        "name": "more",
        "cluster_id": ident,
        "role": "worker",
        "status": "CREATE_IN_PROGRESS",
        "image_id": "ub",
        "flavor_id": "m1",
        "node_count": 2,
        "min_node_count": 0,
        "max_node_count": 3,
        "is_default": False,
        "labels": {"z": "1"},
        "labels_added": {"z": "1"},
        "labels_skipped": {"a": "1"},
        "node_taints": [{"key": "k", "effect": "NoSchedule"}],
    }
    assert {key: body[key] for key in expected} == expected
    assert api.conductor.names() == ["nodegroup_create"]
    assert api.call("GET", f"{URL}/{ident}/nodegroups/more").json() == body


def test_create_with_labels_of_the_cluster(api: World, ident: str) -> None:
    assert post(api, ident).json()["labels"] == {"a": "1"}
    merged = post(api, ident, name="other", labels={"b": "2"}, merge_labels=True).json()
    assert merged["labels"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        (
            {"name": None},
            400,
            "Invalid input for field/attribute name. Value: 'None'. Mandatory field missing.",
        ),
        (
            {"name": "default-worker"},
            409,
            "A node group with name default-worker already exists in the cluster c.",
        ),
        (
            {"min_node_count": 3, "max_node_count": 2},
            409,
            "max_node_count for more is invalid (min_node_count (3) should be less or equal to "
            "max_node_count (2)).",
        ),
        (
            {"node_count": 2, "max_node_count": 1},
            409,
            "max_node_count for more is invalid (node_count (2) should be less or equal to "
            "max_node_count (1)).",
        ),
        (
            {"min_node_count": 2},
            409,
            "min_node_count for more is invalid (min_node_count (2) should be less or equal to "
            "node_count (1)).",
        ),
        ({"role": "master"}, 400, "Creating master nodegroups is currently not supported."),
        (
            {"role": "master", "node_labels": {"a": "b"}},
            409,
            "node_labels for more is invalid (node_labels may not be set on master nodegroups).",
        ),
        (
            {"node_taints": [{"key": "k", "effect": "X"}]},
            409,
            "node_taints for more is invalid (node_taints[0].effect must be one of NoSchedule, "
            "PreferNoSchedule, NoExecute).",
        ),
        (
            {"node_taints": [{"effect": "NoExecute"}]},
            409,
            "node_taints for more is invalid (node_taints[0].key is required).",
        ),
        (
            {"node_taints": [{"key": "k", "effect": "NoExecute", "foo": "1"}]},
            409,
            "node_taints for more is invalid (node_taints[0] contains unrecognised field(s) foo; "
            "allowed fields are key, value, effect).",
        ),
        ({"flavor_id": "zz"}, 400, "Unable to find flavor zz."),
        ({"foo": 1}, 400, "Unknown attribute for argument nodegroup: foo"),
    ],
)
def test_create_is_refused(
    api: World, ident: str, fields: dict[str, Any], status: int, text: str
) -> None:
    answer = post(api, ident, **fields)
    assert (answer.status_code, detail(answer)) == (status, text)
    assert api.conductor.casts == []


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("kubernetes.io/foo", False),
        ("x.k8s.io/foo", False),
        ("node-role.kubernetes.io/worker", False),
        ("kubelet.kubernetes.io/foo", True),
        ("topology.kubernetes.io/zone", True),
        ("mykubernetes.io/foo", True),
        ("plain", True),
    ],
)
def test_labels_that_a_kubelet_may_set(api: World, ident: str, key: str, allowed: bool) -> None:
    answer = post(api, ident, node_labels={key: "v"})
    assert answer.status_code == (202 if allowed else 409)


def test_cluster_without_an_address(api: World, ident: str) -> None:
    update(api, ident, api_address=None)
    answer = post(api, ident)
    assert (answer.status_code, detail(answer)) == (
        409,
        "Cluster API address is not available yet",
    )


def test_f17_nothing_changes_while_the_cluster_goes_away(api: World, ident: str) -> None:
    more = post(api, ident).json()["uuid"]
    update(api, ident, status="DELETE_IN_PROGRESS")
    api.conductor.casts.clear()
    path = f"{URL}/{ident}/nodegroups/{more}"
    steps = [{"op": "replace", "path": "/max_node_count", "value": 4}]
    for answer in (
        post(api, ident, name="other"),
        api.call("DELETE", path),
        api.call("PATCH", f"{URL}/{ident}/nodegroups/default-worker", json=steps),
    ):
        assert answer.status_code == 400
        assert detail(answer) == (
            'Updating a cluster when status is "DELETE_IN_PROGRESS" is not supported.'
        )
    assert api.call("GET", f"{URL}/{ident}").json()["status"] == "DELETE_IN_PROGRESS"
    assert api.conductor.casts == []


def test_f41_what_is_the_services_to_say(api: World, ident: str) -> None:
    body = post(api, ident, is_default=True, status="UPDATE_COMPLETE", version="9").json()
    assert (body["is_default"], body["status"], body["version"]) == (
        False,
        "CREATE_IN_PROGRESS",
        None,
    )


def test_f44_no_maximum(api: World, ident: str) -> None:
    assert post(api, ident, max_node_count=0, node_count=9).json()["max_node_count"] is None


def test_patch(api: World, ident: str) -> None:
    path = f"{URL}/{ident}/nodegroups/default-worker"
    steps = [
        {"op": "replace", "path": "/max_node_count", "value": 5},
        {"op": "replace", "path": "/node_labels", "value": "{'a.b/c': 'd'}"},
        {"op": "replace", "path": "/node_taints", "value": [{"key": "k", "effect": "NoExecute"}]},
    ]
    answer = api.call("PATCH", path, json=steps)
    assert answer.status_code == 202
    body = answer.json()
    assert (body["max_node_count"], body["node_labels"]) == (5, {"a.b/c": "d"})
    assert body["node_taints"] == [{"key": "k", "effect": "NoExecute"}]
    ((name, arguments, _),) = api.conductor.casts
    assert name == "nodegroup_update"
    assert arguments[2].max_node_count == 5
    # The conductor writes it, when the driver agrees.
    assert api.call("GET", path).json()["max_node_count"] is None


@pytest.mark.parametrize(
    "path", ["/node_count", "/labels/x", "/node_addresses/0", "/name", "/is_default", "/status"]
)
def test_f42_internal_attributes_and_what_is_inside(api: World, ident: str, path: str) -> None:
    steps = [{"op": "add", "path": path, "value": "1"}]
    answer = api.call("PATCH", f"{URL}/{ident}/nodegroups/default-worker", json=steps)
    assert answer.status_code == 400
    assert detail(answer) == (
        f"'/{path.split('/')[1]}' is an internal attribute and can not be updated"
    )


def test_f14_patch_tells_the_groups_own_status(api: World, ident: str) -> None:
    post(api, ident)
    steps = [{"op": "replace", "path": "/min_node_count", "value": 1}]
    answer = api.call("PATCH", f"{URL}/{ident}/nodegroups/more", json=steps)
    assert (answer.status_code, detail(answer)) == (
        400,
        'nodegroup_update when nodegroup status is "CREATE_IN_PROGRESS" is not supported.',
    )


def test_delete(api: World, ident: str) -> None:
    answer = api.call("DELETE", f"{URL}/{ident}/nodegroups/default-worker")
    assert (answer.status_code, detail(answer)) == (
        400,
        "Deleting a default nodegroup is not supported.",
    )
    post(api, ident)
    api.conductor.casts.clear()
    assert api.call("DELETE", f"{URL}/{ident}/nodegroups/more").status_code == 204
    assert api.conductor.names() == ["nodegroup_delete"]


def test_f35_administrators_change_their_own_only(api: World, ident: str) -> None:
    base = f"{URL}/{ident}"
    assert api.call("POST", f"{base}/nodegroups", "t-admin", json={"name": "x"}).status_code == 404
    body = {"node_count": 2}
    assert api.call("POST", f"{base}/actions/resize", "t-admin", json=body).status_code == 404
    assert api.call("DELETE", f"{base}/nodegroups/default-worker", "t-admin").status_code == 404


def test_resize(api: World, ident: str) -> None:
    answer = action(api, ident, "resize", node_count=3, nodes_to_remove=None, nodegroup=None)
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})
    ((name, arguments, keywords),) = api.conductor.casts
    assert (name, arguments[2], arguments[3]) == ("cluster_resize", 3, [])
    assert arguments[4].name == "default-worker"
    assert keywords["operation"]


def test_resize_is_refused(api: World, ident: str) -> None:
    assert action(api, ident, "resize", at="1.6", node_count=1).status_code == 406
    answer = action(api, ident, "resize", at="1.9", node_count=0)
    assert detail(answer) == (
        "Resizing a nodegroup to zero is not supported in the provided microversion."
    )
    answer = action(api, ident, "resize")
    assert detail(answer) == (
        "Invalid input for field/attribute node_count. Value: 'None'. Mandatory field missing."
    )
    post(api, ident, max_node_count=3)
    answer = action(api, ident, "resize", node_count=9, nodegroup="more")
    assert (answer.status_code, detail(answer)) == (
        400,
        "Resizing more outside the allowed range: min_node_count = 0, max_node_count = 3",
    )
    answer = action(api, ident, "resize", node_count=3, nodegroup="default-master")
    assert (answer.status_code, detail(answer)) == (
        400,
        "Resizing the master nodegroup is not supported by this driver.",
    )
    assert action(api, ident, "resize", node_count=1, nodegroup="nope").status_code == 404
    assert action(api, ident, "shrink", node_count=1).status_code == 405
    assert api.call("GET", f"{URL}/{ident}/actions/resize").status_code == 405


def test_upgrade(api: World, ident: str) -> None:
    api.template(name="new")
    answer = action(api, ident, "upgrade", cluster_template="new", max_batch_size=1)
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})
    ((name, arguments, _),) = api.conductor.casts
    assert (name, arguments[2].name, arguments[3]) == ("cluster_upgrade", "new", 1)


def test_f29_batch_size_has_a_default(api: World, ident: str) -> None:
    for more in ({}, {"max_batch_size": None}):
        assert action(api, ident, "upgrade", cluster_template="ct", **more).status_code == 202
        assert api.conductor.casts[-1][1][3] == 1


def test_f30_upgrade_without_a_template(api: World, ident: str) -> None:
    answer = action(api, ident, "upgrade", max_batch_size=1)
    assert (answer.status_code, detail(answer)) == (
        400,
        "Invalid input for field/attribute cluster_template. Value: 'None'. "
        "Mandatory field missing.",
    )


def test_upgrade_is_refused(api: World, ident: str) -> None:
    answer = action(api, ident, "upgrade", at="1.7", cluster_template="ct")
    assert (answer.status_code, detail(answer)) == (
        400,
        "Cluster upgrade is not supported in the provided microversion.",
    )
    assert action(api, ident, "upgrade", at="1.6", cluster_template="ct").status_code == 406
    assert action(api, ident, "upgrade", cluster_template="nope").status_code == 404
    api.template(name="new")
    post(api, ident)
    answer = action(api, ident, "upgrade", cluster_template="new", nodegroup="more")
    assert (answer.status_code, detail(answer)) == (
        409,
        "Cluster Template is not valid for upgrade: Nodegroup more can be upgraded only to match "
        "cluster's template (ct).",
    )
    said = 'Upgrading a cluster when status is "CREATE_FAILED" is not supported.'
    api.conductor.answers["cluster_upgrade"] = BadRequest(said, code="NotSupported")
    answer = action(api, ident, "upgrade", cluster_template="new")
    assert (answer.status_code, detail(answer)) == (400, said)
    assert answer.json()["errors"][0]["code"] == "client"
    api.conductor.answers["cluster_upgrade"] = Unavailable(service="conductor")
    assert action(api, ident, "upgrade", cluster_template="new").status_code == 503
