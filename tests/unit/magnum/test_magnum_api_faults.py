"""Spec section 11: faults of the original that must not come back, one test a fault."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_api import LATEST, World, detail, world
from trimaran.db.queries import magnum as queries
from trimaran.errors import Unavailable

CT = "/v1/clustertemplates"
URL = "/v1/clusters"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.template()
        yield made


def post(api: World, who: str = "t-member", **fields: Any) -> Any:
    return api.call("POST", URL, who, json={"cluster_template_id": "ct", **fields})


def patch(api: World, path: str, *steps: dict[str, Any], who: str = "t-member") -> Any:
    return api.call("PATCH", path, who, json=list(steps))


@pytest.mark.parametrize("name", ["min_node_count", "max_node_count"])
@pytest.mark.parametrize("value", ["abc", "1.5", "-1", "1 2"])
def test_f4_label_that_is_no_number_of_nodes(api: World, name: str, value: str) -> None:
    answer = post(api, labels={name: value})
    assert answer.status_code == 400
    assert name in detail(answer)
    assert api.call("GET", URL).json() == {"clusters": []}


def test_f4_cluster_and_nodegroups_come_together(
    api: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> str:
        raise Unavailable(service="database")

    monkeypatch.setattr(type(api.parts.operations), "record", broken)
    assert post(api).status_code == 503
    assert api.call("GET", URL).json() == {"clusters": []}
    assert api.conductor.casts == []


def test_f10_parallel_creates_respect_the_quota(tmp_path: Path) -> None:
    with world(tmp_path, "[quotas]\nmax_clusters_per_project = 2\n") as api:
        api.template()
        codes: list[int] = []
        barrier = threading.Barrier(6)

        def create() -> None:
            barrier.wait()
            codes.append(post(api).status_code)

        threads = [threading.Thread(target=create) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(codes) == [202, 202, 403, 403, 403, 403]
        assert len(api.call("GET", URL).json()["clusters"]) == 2
        assert len(api.conductor.casts) == 2


def test_f25_coreos_is_a_distro_like_any_other(api: World) -> None:
    api.images.append({"id": "img-coreos", "name": "co", "os_distro": "coreos"})
    answer = api.call("POST", CT, json={"coe": "kubernetes", "image_id": "co"})
    assert answer.status_code == 400
    assert detail(answer).startswith("Cluster type (vm, coreos, kubernetes)")


@pytest.mark.parametrize("field", ["public", "hidden", "tls_disabled", "master_lb_enabled"])
@pytest.mark.parametrize("value", ["zz", "", [], {}, 2, "truely"])
def test_f26_what_is_no_boolean(api: World, field: str, value: Any) -> None:
    answer = api.call("POST", CT, json={"coe": "kubernetes", "image_id": "ub", field: value})
    assert answer.status_code == 400
    assert detail(answer).startswith(
        f"Invalid input for field/attribute {field}. Value: '{value}'. Unrecognized value"
    )


def test_f26_what_is_no_boolean_in_the_query(api: World) -> None:
    ident = post(api).json()["uuid"]
    answer = api.call("PATCH", f"{URL}/{ident}?rollback=zz", json=[])
    assert answer.status_code == 400
    assert detail(answer).startswith("Invalid input for field/attribute rollback. Value: 'zz'.")


@pytest.mark.parametrize("value", [None, [], {}, [1]])
def test_f27_label_values_are_scalars(api: World, value: Any) -> None:
    for path, body in (
        (CT, {"coe": "kubernetes", "image_id": "ub"}),
        (URL, {"cluster_template_id": "ct"}),
    ):
        answer = api.call("POST", path, json={**body, "labels": {"a": value}})
        assert answer.status_code == 400
        assert detail(answer).startswith("Invalid input for field/attribute labels.")


def test_f27_boot_volume_size_that_is_no_number(api: World) -> None:
    labels = {"boot_volume_size": "big"}
    body = {"coe": "kubernetes", "image_id": "ub", "flavor_id": "m1", "labels": labels}
    for answer in (api.call("POST", CT, json=body), post(api, labels=labels)):
        assert (answer.status_code, detail(answer)) == (400, "boot_volume_size must be an integer")


def test_f28_patch_without_a_body(api: World) -> None:
    for path in (f"{URL}/x", f"{CT}/ct"):
        answer = api.call("PATCH", path, headers={**LATEST, "Content-Type": "application/json"})
        assert (answer.status_code, detail(answer)) == (400, 'Missing argument: "patch"')
        answer = api.call("PATCH", path, json={"op": "remove"})
        assert answer.status_code == 400


def test_f32_a_template_without_flavors_works(api: World) -> None:
    body = {"name": "bare", "coe": "kubernetes", "image_id": "ub"}
    assert api.call("POST", CT, json=body).status_code == 201
    step = {"op": "add", "path": "/tags", "value": "a"}
    assert patch(api, f"{CT}/bare", step).status_code == 200
    ident = post(api, cluster_template_id="bare").json()["uuid"]
    step = {"op": "replace", "path": "/node_count", "value": 2}
    assert patch(api, f"{URL}/{ident}", step).status_code == 202


def test_f34_administrators_publish_a_tenants_template(api: World) -> None:
    step = {"op": "replace", "path": "/public", "value": True}
    answer = patch(api, f"{CT}/ct", step, who="t-admin")
    assert (answer.status_code, answer.json()["public"]) == (200, True)


def test_f36_the_templates_driver_counts_first(api: World) -> None:
    # An explicit driver that does not list the image's distro.
    body = {"name": "odd", "coe": "kubernetes", "image_id": "exotic", "driver": "c_other"}
    assert api.call("POST", CT, json=body).status_code == 201
    assert post(api, cluster_template_id="odd").status_code == 202


def test_f37_the_default_driver_provides_the_image(api: World) -> None:
    # a_fcos is the first by name.
    assert api.call("GET", f"{CT}/ct").json()["driver"] == "sandbox_ubuntu"
    assert api.template(name="fc", image_id="fc")["driver"] == "a_fcos"


def test_f37_no_driver_provides_the_image(api: World) -> None:
    answer = api.call("POST", CT, json={"coe": "kubernetes", "image_id": "exotic"})
    assert answer.status_code == 400
    assert detail(answer).startswith("Cluster type (vm, plan9, kubernetes) is not supported")


def test_f38_patch_checks_driver_and_follows_the_image(api: World) -> None:
    answer = patch(api, f"{CT}/ct", {"op": "replace", "path": "/driver", "value": "none-such"})
    assert detail(answer) == "Cluster driver (none-such) not supported."
    answer = patch(
        api,
        f"{CT}/ct",
        {"op": "replace", "path": "/image_id", "value": "fc"},
        {"op": "replace", "path": "/driver", "value": "a_fcos"},
    )
    assert answer.json()["cluster_distro"] == "fedora-coreos"


def test_f40_beta_and_disabled_drivers_by_name(tmp_path: Path) -> None:
    with world(tmp_path, "[drivers]\ndisabled_drivers = c_other\n") as api:
        for driver in ("b_beta", "c_other"):
            body = {"coe": "kubernetes", "image_id": "ub", "driver": driver}
            assert api.call("POST", CT, json=body).status_code == 400


@pytest.mark.parametrize("value", ["3", 3, 3.0])
def test_f47_decimal_strings_are_numbers(api: World, value: Any) -> None:
    ident = post(api).json()["uuid"]
    step = {"op": "replace", "path": "/node_count", "value": value}
    assert patch(api, f"{URL}/{ident}", step).status_code == 202
    assert api.conductor.casts[-1][1][2] == 3
    answer = patch(api, f"{URL}/{ident}", {**step, "value": "x"})
    assert answer.status_code == 400
    assert "not supported between" not in detail(answer)


def test_f53_health_is_reported_by_the_clusters_user(api: World) -> None:
    ident = post(api).json()["uuid"]
    health = {"op": "replace", "path": "/health_status", "value": "HEALTHY"}
    nodes = {"op": "replace", "path": "/node_count", "value": 2}
    answer = patch(api, f"{URL}/{ident}", health, who="t-colleague")
    assert answer.status_code == 403
    assert detail(answer) == "Policy doesn't allow cluster:update_health_status to be performed."
    assert patch(api, f"{URL}/{ident}", nodes, who="t-colleague").status_code == 202
    assert patch(api, f"{URL}/{ident}", health).status_code == 202
    assert patch(api, f"{URL}/{ident}", health, who="t-admin").status_code == 202


def test_f63_failed_cluster_with_a_nodegroup_without_status(api: World) -> None:
    ident = post(api).json()["uuid"]
    api.parts.db.write(
        lambda session: (
            queries.update_cluster(session, ident, {"status": "UPDATE_FAILED"}),
            queries.update_nodegroups_of(session, ident, {"status": None}),
        )
    )
    body = api.call("GET", f"{URL}/{ident}").json()
    assert body["faults"] == {}


def test_f65_delete_is_asked_for_once(api: World) -> None:
    ident = post(api).json()["uuid"]
    for _ in range(3):
        assert api.call("DELETE", f"{URL}/{ident}").status_code == 204
    operations = {
        keywords["operation"]
        for name, _, keywords in api.conductor.casts
        if name == "cluster_delete"
    }
    assert len(operations) == 1


def test_f68_a_uuid_in_any_form(api: World) -> None:
    ident = post(api).json()["uuid"]
    for form in (ident.upper(), ident.replace("-", ""), ident.replace("-", "").upper()):
        assert api.call("GET", f"{URL}/{form}").json()["uuid"] == ident
    template = api.call("GET", f"{CT}/ct").json()["uuid"]
    assert api.call("GET", f"{CT}/{template.upper()}").status_code == 200
    marker = template.upper()
    assert api.call("GET", f"{CT}?marker={marker}").json() == {"clustertemplates": []}


def test_f69_the_row_is_there_with_the_answer(api: World) -> None:
    for number in range(10):
        ident = post(api, name=f"c{number}").json()["uuid"]
        assert api.call("GET", f"{URL}/{ident}").json()["status"] == "CREATE_IN_PROGRESS"


def test_f70_duplicate_image_name(api: World) -> None:
    answer = api.call("POST", CT, json={"coe": "kubernetes", "image_id": "twice"})
    assert (answer.status_code, detail(answer)) == (
        409,
        "Multiple images exist with same name 'twice'. Please use the image ID instead.",
    )


def test_huge_numbers_and_texts_are_bad_input(api: World) -> None:
    answers = [
        post(api, create_timeout=2**40),
        post(api, docker_volume_size=10**30),
        post(api, discovery_url="x" * 256),
        post(api, labels={"a": "x" * 70_000}),
        post(api, labels={"x" * 300: "\0"}),
    ]
    assert [answer.status_code for answer in answers] == [400] * 5


def test_a_row_of_an_adopted_database_is_shown_as_it_is(api: World) -> None:
    ident = post(api).json()["uuid"]
    odd = {"status": "ADOPT_WHAT", "cluster_template_id": "gone", "labels": {}}
    api.parts.db.write(lambda session: queries.update_cluster(session, ident, odd))
    assert api.call("GET", f"{URL}/{ident}").json()["status"] == "ADOPT_WHAT"
    assert api.call("GET", f"{URL}/detail").status_code == 200


def _in_status(api: World, status: str) -> str:
    ident = api.cluster(cluster_template_id="ct")
    api.parts.db.write(lambda session: queries.update_cluster(session, ident, {"status": status}))
    return ident


@pytest.mark.parametrize(
    ("status", "update", "resize"),
    [
        ("CREATE_COMPLETE", 202, 202),
        ("UPDATE_IN_PROGRESS", 400, 202),
        ("CREATE_FAILED", 400, 400),
        ("DELETE_IN_PROGRESS", 400, 400),
    ],
)
def test_f2_refusals_at_once_if_the_operator_wants_them(
    tmp_path: Path, status: str, update: int, resize: int
) -> None:
    with world(tmp_path, "[api]\ncheck_status = true\n") as api:
        api.template()
        ident = _in_status(api, status)
        steps = [{"op": "replace", "path": "/node_count", "value": 3}]
        answers = {
            "Updating": (api.call("PATCH", f"/v1/clusters/{ident}", json=steps), update),
            "Resizing": (
                api.call("POST", f"/v1/clusters/{ident}/actions/resize", json={"node_count": 2}),
                resize,
            ),
        }
        for doing, (answer, expected) in answers.items():
            assert answer.status_code == expected, answer.text
            if expected == 400:
                text = f'{doing} a cluster when status is "{status}" is not supported.'
                assert detail(answer) == text
        # Health may be reported in any status, and nothing changed is nothing refused.
        steps = [
            {"op": "replace", "path": "/health_status", "value": "HEALTHY"},
            {"op": "replace", "path": "/node_count", "value": 1},
        ]
        assert api.call("PATCH", f"/v1/clusters/{ident}", json=steps).status_code == 202
        accepted = 1 + [update, resize].count(202)
        assert [name for name in api.conductor.names() if name != "cluster_create"][-1] == (
            "cluster_update"
        )
        assert len(api.conductor.casts) == 1 + accepted


def test_f2_refusals_later_as_upstream_by_default(api: World) -> None:
    ident = _in_status(api, "CREATE_FAILED")
    steps = [{"op": "replace", "path": "/node_count", "value": 3}]
    assert api.call("PATCH", f"/v1/clusters/{ident}", json=steps).status_code == 202


def test_f54_an_administrator_of_the_system_reaches_every_project(api: World) -> None:
    ident = api.cluster(cluster_template_id="ct")
    for path in ("", "/detail"):
        answer = api.call("GET", f"/v1/clusters{path}", "t-system")
        assert [row["uuid"] for row in answer.json()["clusters"]] == [ident]
    assert api.call("GET", f"/v1/clusters/{ident}", "t-system").status_code == 200
    assert api.call("GET", f"/v1/clusters/{ident}/nodegroups", "t-system").status_code == 200
    assert api.call("GET", "/v1/clustertemplates/ct", "t-system").status_code == 200
    assert api.call("GET", "/v1/stats", "t-system").json()["clusters"] == 1
    assert api.call("GET", "/v1/mservices", "t-system").status_code == 200
    # What is made belongs to a project.
    api.template("t-admin", name="open", public=True)
    answer = api.call("POST", "/v1/clusters", "t-system", json={"cluster_template_id": "open"})
    assert answer.status_code == 403
    assert api.call("DELETE", f"/v1/clusters/{ident}", "t-system").status_code == 204


def test_f54_a_reader_of_the_system_is_no_administrator(api: World) -> None:
    ident = api.cluster(cluster_template_id="ct")
    for path in ("/v1/clusters", "/v1/mservices", "/v1/stats"):
        assert api.call("GET", path, "t-system-reader").status_code == 403
    assert api.call("GET", f"/v1/clusters/{ident}", "t-system-reader").status_code == 404


def test_f54_a_rule_of_the_operator_sees_the_systems_scope(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text('"context_is_admin": "role:admin and system_scope:all"\n')
    settings = f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n"
    with world(tmp_path, settings) as api:
        assert api.call("GET", "/v1/mservices", "t-system").status_code == 200
        assert api.call("GET", "/v1/clusters", "t-system").status_code == 200
        assert api.call("GET", "/v1/mservices", "t-admin").status_code == 403
