"""Spec sections 1.8, 1.9, 2.1 and 2.5: clusters."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.db.queries import magnum as queries
from trimaran.magnum.api.schemas.cluster import Cluster, ClusterSummary

URL = "/v1/clusters"
AT_1_9 = {"OpenStack-API-Version": "container-infra 1.9"}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.template()
        yield made


def post(api: World, who: str = "t-member", **fields: Any) -> Any:
    return api.call("POST", URL, who, json={"cluster_template_id": "ct", **fields})


def patch(api: World, ident: str, *steps: dict[str, Any], **kwargs: Any) -> Any:
    return api.call(
        "PATCH", f"{URL}/{ident}", kwargs.pop("who", "t-member"), json=list(steps), **kwargs
    )


def update(api: World, ident: str, **columns: Any) -> None:
    api.parts.db.write(lambda session: queries.update_cluster(session, ident, columns))


def test_create(api: World) -> None:
    answer = post(api, name="c1", node_count=2, master_count=1)
    assert answer.status_code == 202
    assert list(answer.json()) == ["uuid"]
    assert "Location" not in answer.headers
    ident = answer.json()["uuid"]
    body = api.call("GET", f"{URL}/{ident}").json()
    assert [name for name in Cluster.model_fields if name in body] == list(body)
    assert set(Cluster.model_fields) - set(body) == {"stack_id", "faults"}
    Cluster.model_validate(body)
    expected = {
        "uuid": ident,
        "name": "c1",
        "status": "CREATE_IN_PROGRESS",
        "node_count": 2,
        "master_count": 1,
        "flavor_id": "m1",
        "master_flavor_id": "m1",
        "create_timeout": 60,
        "keypair": None,
        "labels": {},
        "merge_labels": False,
        "floating_ip_enabled": True,
        "master_lb_enabled": False,
        "health_status": None,
        "health_status_reason": {},
        "project_id": "p1",
        "user_id": "u1",
        "node_addresses": [],
        "master_addresses": [],
        "cluster_id": None,
        "updated_at": None,
    }
    assert {key: body[key] for key in expected} == expected
    assert body["links"][0]["href"] == f"http://magnum.test:9511{URL}/{ident}"


def test_create_reaches_a_conductor(api: World) -> None:
    ident = post(api, node_count=2, create_timeout=5).json()["uuid"]
    ((name, arguments, keywords),) = api.conductor.casts
    context, cluster, master_count, node_count, timeout = arguments
    assert (name, cluster.uuid, master_count, node_count, timeout) == (
        "cluster_create",
        ident,
        1,
        2,
        5,
    )
    assert context.user_id == "u1"
    assert keywords["operation"]


def test_create_makes_both_default_nodegroups(api: World) -> None:
    ident = post(api, node_count=2, labels={"min_node_count": "1", "max_node_count": 4}).json()[
        "uuid"
    ]
    groups = api.call("GET", f"{URL}/{ident}/nodegroups").json()["nodegroups"]
    assert [
        (
            item["name"],
            item["role"],
            item["node_count"],
            item["min_node_count"],
            item["max_node_count"],
            item["status"],
            item["is_default"],
        )
        for item in groups
    ] == [
        ("default-master", "master", 1, 0, None, "CREATE_IN_PROGRESS", True),
        ("default-worker", "worker", 2, 1, 4, "CREATE_IN_PROGRESS", True),
    ]


def test_summary(api: World) -> None:
    post(api, name="c1")
    (shown,) = api.call("GET", URL).json()["clusters"]
    assert set(shown) == set(ClusterSummary.model_fields) - {"stack_id"}
    assert "created_at" not in shown


def test_name_is_made_up(api: World) -> None:
    ident = post(api).json()["uuid"]
    assert api.call("GET", f"{URL}/{ident}").json()["name"].endswith("-cluster")


def test_template_by_uuid_name_or_number(api: World) -> None:
    template = api.call("GET", "/v1/clustertemplates/ct").json()["uuid"]
    for ident in (template, template.upper(), "ct", "1"):
        made = post(api, cluster_template_id=ident)
        assert made.status_code == 202
        body = api.call("GET", f"{URL}/{made.json()['uuid']}").json()
        assert body["cluster_template_id"] == template


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"cluster_template_id": "nope"}, 404, "ClusterTemplate nope could not be found."),
        (
            {"cluster_template_id": None},
            400,
            "Invalid input for field/attribute cluster_template_id. Value: 'None'. "
            "Mandatory field missing.",
        ),
        (
            {"master_count": 2},
            400,
            "master nodegroup size of 2 is invalid, size cannot be an even number.",
        ),
        (
            {"master_count": 3},
            400,
            "master_count must be 1 when master_lb_enabled is False",
        ),
        (
            {"master_count": 0},
            400,
            "Invalid input for field/attribute master_count. Value: '0'. "
            "Value should be greater or equal to 1",
        ),
        (
            {"name": "1abc"},
            400,
            "Invalid input for field/attribute name. Value: '1abc'. "
            "Value should match the pattern ^[a-zA-Z][a-zA-Z0-9_.-]*$",
        ),
        (
            {"name": "a" * 243},
            400,
            f"Invalid input for field/attribute name. Value: '{'a' * 243}'. "
            "Value should have a maximum character requirement of 242",
        ),
        ({"keypair": "zz"}, 404, "Unable to find keypair zz."),
        ({"flavor_id": "zz"}, 400, "Unable to find flavor zz."),
        (
            {"flavor_id": "m0"},
            400,
            "Flavor with zero root volume size is not supported when boot_volume_size is zero.",
        ),
        ({"fixed_network": "zz"}, 400, "Unable to find fixed network zz."),
        (
            {"stack_id": "x"},
            400,
            "Invalid input for field/attribute stack_id. Value: 'x'. Cannot set read only field.",
        ),
        ({"foo": 1}, 400, "Unknown attribute for argument cluster: foo"),
        (
            {"node_count": "many"},
            400,
            "Invalid input for field/attribute node_count. Value: 'many'. "
            "Wrong type. Expected 'int', got 'str'",
        ),
        (
            {"node_count": 2**31},
            400,
            "Invalid input for field/attribute node_count. Value: '2147483648'. "
            "Value should be lower or equal to 2147483647",
        ),
    ],
)
def test_create_is_refused(api: World, fields: dict[str, Any], status: int, text: str) -> None:
    answer = post(api, **fields)
    assert (answer.status_code, detail(answer)) == (status, text)
    assert api.call("GET", URL).json() == {"clusters": []}
    assert api.conductor.casts == []


def test_unknown_template_before_1_10(api: World) -> None:
    body = {"cluster_template_id": "nope"}
    answer = api.call("POST", URL, json=body, headers=AT_1_9)
    assert answer.status_code == 400
    assert detail(answer) == "ClusterTemplate nope could not be found."


def test_no_nodes(api: World) -> None:
    body = {"cluster_template_id": "ct", "node_count": 0}
    answer = api.call("POST", URL, json=body, headers=AT_1_9)
    assert answer.status_code == 400
    assert detail(answer) == (
        "Resizing a nodegroup to zero is not supported in the provided microversion."
    )
    assert post(api, node_count=0).status_code == 202


def test_masters_behind_a_load_balancer(api: World) -> None:
    assert post(api, master_count=3, master_lb_enabled=True).status_code == 202


def test_what_the_sdk_sends(api: World) -> None:
    body = {"cluster_template_id": "ct", "name": "sdk", "node_count": 1, "keypair": None}
    assert api.call("POST", URL, json=body, headers={}).status_code == 202


def test_create_timeout_of_null(api: World) -> None:
    ident = post(api, create_timeout=None).json()["uuid"]
    assert api.call("GET", f"{URL}/{ident}").json()["create_timeout"] is None


def test_keypair_of_the_template(api: World) -> None:
    api.template(name="keyed", keypair_id="kp")
    ident = post(api, cluster_template_id="keyed").json()["uuid"]
    assert api.call("GET", f"{URL}/{ident}").json()["keypair"] == "kp"


def test_labels(api: World) -> None:
    api.template(name="labelled", labels={"a": "1", "b": "2"})

    def labels(**fields: Any) -> dict[str, Any]:
        ident = post(api, cluster_template_id="labelled", **fields).json()["uuid"]
        body = api.call("GET", f"{URL}/{ident}").json()
        return {key: value for key, value in body.items() if key.startswith("labels")}

    assert (
        labels()
        == labels(labels={})
        == {
            "labels": {"a": "1", "b": "2"},
            "labels_overridden": {},
            "labels_added": {},
            "labels_skipped": {},
        }
    )
    assert labels(labels={"z": 1, "a": "9"}) == {
        "labels": {"z": "1", "a": "9"},
        "labels_overridden": {"a": "1"},
        "labels_added": {"z": "1"},
        "labels_skipped": {"b": "2"},
    }
    assert labels(labels={"z": "1"}, merge_labels=True) == {
        "labels": {"a": "1", "b": "2", "z": "1"},
        "labels_overridden": {},
        "labels_added": {"z": "1"},
        "labels_skipped": {},
    }


def test_hidden_template(api: World) -> None:
    api.template("t-admin", name="shown", public=True)
    steps = [{"op": "replace", "path": "/hidden", "value": True}]
    api.call("PATCH", "/v1/clustertemplates/ct", "t-admin", json=steps)
    answer = post(api)
    assert (answer.status_code, detail(answer)) == (403, "Not authorized.")
    api.call("PATCH", "/v1/clustertemplates/shown", "t-admin", json=steps)
    assert post(api, cluster_template_id="shown").status_code == 404
    assert post(api, "t-admin", cluster_template_id="shown").status_code == 202


def test_quota(tmp_path: Path) -> None:
    with world(tmp_path, "[quotas]\nmax_clusters_per_project = 2\n") as api:
        api.template()
        assert [post(api).status_code for _ in range(3)] == [202, 202, 403]
        answer = post(api)
        assert detail(answer) == (
            "Resource limit exceeded: You have reached the maximum clusters per project, 2. "
            "You may delete a cluster to make room for a new one."
        )
        assert len(api.conductor.casts) == 2


def test_readers_may_only_look(api: World) -> None:
    ident = post(api, name="c1").json()["uuid"]
    for path in (URL, f"{URL}/detail", f"{URL}/{ident}", f"{URL}/{ident}/nodegroups"):
        assert api.call("GET", path, "t-reader").status_code == 200
    texts = {
        "create": post(api, "t-reader"),
        "delete": api.call("DELETE", f"{URL}/{ident}", "t-reader"),
        "update": patch(api, ident, who="t-reader"),
    }
    for action, answer in texts.items():
        assert answer.status_code == 403
        assert detail(answer) == f"Policy doesn't allow cluster:{action} to be performed."


def test_other_projects_clusters_do_not_exist(api: World) -> None:
    ident = post(api, name="c1").json()["uuid"]
    for method, path in (
        ("GET", ident),
        ("DELETE", ident),
        ("GET", "c1"),
        ("GET", f"{ident}/nodegroups"),
        ("GET", f"{ident}/nodegroups/default-worker"),
    ):
        answer = api.call(method, f"{URL}/{path}", "t-other")
        assert answer.status_code == 404
    assert patch(api, ident, who="t-other").status_code == 404
    assert api.call("GET", URL, "t-other").json() == {"clusters": []}


def test_administrators_reach_every_project(api: World) -> None:
    ident = post(api, name="c1").json()["uuid"]
    assert len(api.call("GET", URL, "t-admin").json()["clusters"]) == 1
    assert len(api.call("GET", f"{URL}/detail", "t-admin").json()["clusters"]) == 1
    for path in (ident, f"{ident}/nodegroups", f"{ident}/nodegroups/default-master"):
        assert api.call("GET", f"{URL}/{path}", "t-admin").status_code == 200
    assert api.call("DELETE", f"{URL}/{ident}", "t-admin").status_code == 204


def test_same_name_twice(api: World) -> None:
    post(api, name="c1")
    post(api, name="c1")
    for method in ("GET", "DELETE"):
        answer = api.call(method, f"{URL}/c1")
        assert answer.status_code == 409
        assert detail(answer) == (
            "Multiple clusters exist with same name. Please use the cluster uuid instead."
        )


def test_delete_twice(api: World) -> None:
    ident = post(api, name="c1").json()["uuid"]
    api.conductor.casts.clear()
    for _ in range(2):
        answer = api.call("DELETE", f"{URL}/c1")
        assert (answer.status_code, answer.content) == (204, b"")
    assert api.call("GET", f"{URL}/{ident}").json()["status"] == "DELETE_IN_PROGRESS"
    assert api.conductor.names() == ["cluster_delete"] * 2
    first, second = (keywords["operation"] for _, _, keywords in api.conductor.casts)
    assert first == second


def test_unknown_cluster(api: World) -> None:
    ident = str(uuid.uuid4())
    for method in ("GET", "DELETE"):
        answer = api.call(method, f"{URL}/{ident}")
        assert (answer.status_code, detail(answer)) == (404, f"Cluster {ident} could not be found.")


def test_faults_of_a_failed_cluster(api: World) -> None:
    ident = post(api).json()["uuid"]
    update(api, ident, status="CREATE_FAILED")
    api.parts.db.write(
        lambda session: queries.update_nodegroups_of(
            session, ident, {"status": "CREATE_FAILED", "status_reason": "no host"}
        )
    )
    body = api.call("GET", f"{URL}/{ident}").json()
    assert body["faults"] == {"default-master": "no host", "default-worker": "no host"}
    assert "faults" not in api.call("GET", f"{URL}/detail").json()["clusters"][0]


def test_patch_of_the_number_of_nodes(api: World) -> None:
    ident = post(api).json()["uuid"]
    api.conductor.casts.clear()
    answer = patch(api, ident, {"op": "replace", "path": "/node_count", "value": 3})
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})
    ((name, arguments, _),) = api.conductor.casts
    assert name == "cluster_update"
    assert arguments[2:] == (3, None, {}, False)


def test_patch_that_removes_the_number_of_nodes(api: World) -> None:
    ident = post(api, node_count=5).json()["uuid"]
    api.conductor.casts.clear()
    assert patch(api, ident, {"op": "remove", "path": "/node_count"}).status_code == 202
    assert api.conductor.casts[0][1][2] == 1


def test_patch_of_health_only(api: World) -> None:
    ident = post(api, node_count=2).json()["uuid"]
    api.conductor.casts.clear()
    answer = patch(
        api,
        ident,
        {"op": "replace", "path": "/health_status", "value": "UNHEALTHY"},
        {"op": "replace", "path": "/health_status_reason", "value": "{'api':'ok'}"},
    )
    assert answer.status_code == 202
    # The count is the default worker group's own: nothing changes.
    assert api.conductor.casts[0][1][2:] == (2, "UNHEALTHY", {"api": "ok"}, False)


def test_patch_without_steps(api: World) -> None:
    ident = post(api).json()["uuid"]
    api.conductor.casts.clear()
    assert patch(api, ident).status_code == 202
    assert api.conductor.casts == []


def test_patch_that_changes_nothing_is_accepted(api: World) -> None:
    ident = post(api, name="c1").json()["uuid"]
    assert patch(api, ident, {"op": "replace", "path": "/name", "value": "c1"}).status_code == 202


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (
            [{"op": "replace", "path": "/name", "value": "x"}],
            "cannot change cluster property(ies) name.",
        ),
        (
            [{"op": "add", "path": "/labels/a", "value": "x"}],
            "cannot change cluster property(ies) labels.",
        ),
        (
            [{"op": "replace", "path": "/uuid", "value": "x"}],
            "'/uuid' is an internal attribute and can not be updated",
        ),
        (
            [{"op": "replace", "path": "/stack_id", "value": "x"}],
            "'/stack_id' is an internal attribute and can not be updated",
        ),
        (
            [{"op": "remove", "path": "/cluster_template_id"}],
            "'/cluster_template_id' is a mandatory attribute and can not be removed",
        ),
        (
            [{"op": "test", "path": "/name", "value": "x"}],
            "Invalid input for field/attribute op. Value: 'test'. "
            "Value should be one of: add, replace, remove",
        ),
        (
            [{"op": "add", "path": "/node_count", "value": 2}],
            "The attribute /node_count has existed, please use 'replace' operation instead.",
        ),
        (
            [{"op": "replace", "path": "/node_count"}],
            "'add' and 'replace' operations needs value",
        ),
        (
            [{"op": "replace", "path": "/node_count", "value": -1}],
            "Invalid input for field/attribute node_count. Value: '-1'. "
            "Value should be greater or equal to 0",
        ),
    ],
)
def test_patch_is_refused(api: World, steps: list[dict[str, Any]], text: str) -> None:
    ident = post(api, name="c1").json()["uuid"]
    api.conductor.casts.clear()
    answer = patch(api, ident, *steps)
    assert (answer.status_code, detail(answer)) == (400, text)
    assert api.conductor.casts == []


def test_unknown_cluster_wins_over_what_cannot_change(api: World) -> None:
    step = {"op": "replace", "path": "/name", "value": "x"}
    assert patch(api, "fooo", step).status_code == 404


def test_rollback(api: World) -> None:
    ident = post(api).json()["uuid"]
    api.conductor.casts.clear()
    steps = [{"op": "replace", "path": "/node_count", "value": 2}]
    path = f"{URL}/{ident}/?rollback=True"
    headers = {"OpenStack-API-Version": "container-infra 1.2"}
    answer = api.call("PATCH", path, json=steps, headers=headers)
    assert (answer.status_code, detail(answer)) == (400, 'Unknown argument: "rollback"')
    headers = {"OpenStack-API-Version": "container-infra 1.3"}
    assert api.call("PATCH", path, json=steps, headers=headers).status_code == 202
    assert api.conductor.casts[0][1][-1] is True


def test_no_nodes_by_patch(api: World) -> None:
    ident = post(api).json()["uuid"]
    step = {"op": "replace", "path": "/node_count", "value": 0}
    answer = patch(api, ident, step, headers=AT_1_9)
    assert detail(answer) == (
        "Resizing a nodegroup to zero is not supported in the provided microversion."
    )
    assert patch(api, ident, step).status_code == 202
