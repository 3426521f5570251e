"""The table of conformance checks (specification section 12), row by row, on a real cloud.

API and conductor are whole and share this process; what they refuse is a table
here too, and what takes several requests is a test.  Numbers are the rows'.
Row 77 and the notifications of row 75 are in the tests of the conductor.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.cloud import ADMIN, ALT, DEMO, MANAGER, READER, CloudEnv, Person
from tests.support.magnum_both import PRETENDED, Both, both, detail

LONG = "container-infrastructure-management"
CT, CLUSTERS = "/v1/clustertemplates", "/v1/clusters"
PLAIN = {"coe": "kubernetes", "image_id": "{image}", "external_network_id": "public"}
REFERENCED = "ClusterTemplate {ct_uuid} is referenced by one or multiple clusters."
NOT_A_MASTER_COUNT = "master nodegroup size of 2 is invalid, size cannot be an even number."
OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def magnum(tmp_path_factory: pytest.TempPathFactory, cloud_env: CloudEnv) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("magnum")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGNUM_SANDBOX_DIR", str(folder / "driver"))
        with both(folder, cloud_env, quotas__max_clusters_per_project=1000) as made:
            yield made


@pytest.fixture(scope="module")
def ct(magnum: Both) -> dict[str, Any]:
    """A template that a cluster uses."""
    return magnum.template(labels={"base": "1"})


@pytest.fixture(scope="module")
def done(magnum: Both, ct: dict[str, Any]) -> str:
    """A complete cluster, for what does not change it."""
    return magnum.cluster(ct)


@pytest.fixture(scope="module")
def failed(magnum: Both, ct: dict[str, Any]) -> str:
    """A cluster whose creation failed."""
    return magnum.cluster(ct, "CREATE_FAILED", labels={"sandbox_fail": "create"})


@pytest.fixture
def mine(magnum: Both, ct: dict[str, Any]) -> str:
    """A complete cluster of one test."""
    return magnum.cluster(ct)


class Row(NamedTuple):
    """A request and its refusal; names in braces are filled in."""

    number: str
    method: str
    path: str
    status: int
    text: str
    body: Any = None
    who: Person | None = DEMO
    version: str | None = "container-infra latest"
    headers: dict[str, str] | None = None


def new(number: str, text: str, status: int = 400, **fields: Any) -> Row:
    """A template that is refused."""
    return Row(number, "POST", CT, status, text, {**PLAIN, "flavor_id": "m1.small", **fields})


def invalid(field: str, value: Any, reason: str) -> str:
    return f"Invalid input for field/attribute {field}. Value: '{value}'. {reason}"


def step(op: str, path: str, *value: Any) -> list[dict[str, Any]]:
    return [{"op": op, "path": path, **({"value": value[0]} if value else {})}]


ONE = CLUSTERS + "/{done}"
GROUPS = ONE + "/nodegroups"
RESIZE, UPGRADE = ONE + "/actions/resize", ONE + "/actions/upgrade"
FAILED_GROUPS = CLUSTERS + "/{failed}/nodegroups"
UNSUPPORTED = "Version {} was requested but the requested API {} is not supported for this version."
GET, POST, PATCH, DELETE = "GET", "POST", "PATCH", "DELETE"
NO_PUBLIC = "Not authorized to set public or hidden flag for cluster template."
ZERO = "Resizing a nodegroup to zero is not supported in the provided microversion."
DENIED = "Policy doesn't allow {} to be performed."

REFUSALS = [
    Row("7a", GET, CLUSTERS, 406, "Invalid value for OpenStack-API-Version header",
        version="container-infra 1"),
    Row("7b", GET, CLUSTERS, 406, "Invalid service type for OpenStack-API-Version header",
        version="1.4"),
    Row("8", GET, CLUSTERS, 406, "Invalid service type for OpenStack-API-Version header",
        version="compute 1.5"),
    Row("10a", GET, "/v1/bays", 404, ""),
    Row("10b", "PUT", CLUSTERS, 405, ""),
    Row("12", POST, CT, 400, invalid("image_id", None, "Mandatory field missing."),
        {"coe": "kubernetes"}),
    new("13", invalid("coe", "swarm", "Value should be one of: kubernetes"), coe="swarm"),
    new("14a", "Image zz could not be found.", image_id="zz"),
    new("14b", "Image {noos} doesn't contain os_distro field.", image_id="{noos}"),
    new("15", "Multiple external networks exist with same name '{dup}'. Please use the external "
        "network ID instead.", 409, external_network_id="{dup}"),
    new("16", "Unable to find fixed subnet zz.", fixed_subnet="zz"),
    new("17a", "Network driver type foo is not supported, expecting a flannel/calico/cilium/"
        "unspecified network driver.", network_driver="foo"),
    new("17b", "Network driver type cilium is not allowed, expecting a flannel/calico/"
        "unspecified network driver. ", network_driver="cilium"),
    new("18", "Volume driver type rexray is not supported, expecting a cinder/unspecified "
        "volume driver.", volume_driver="rexray"),
    new("19", "docker volume size 2 GB is not valid, expecting minimum value 3GB for "
        "devicemapper storage driver.", docker_storage_driver="devicemapper",
        docker_volume_size=2),
    new("20", "Flavor with zero root volume size is not supported when boot_volume_size is zero.",
        flavor_id="{m0}"),
    new("21", "Expected a single dns address or comma separated dns list, but received "
        "2001:db8::1.", dns_nameserver="2001:db8::1"),
    new("22", invalid("apiserver_port", 80, "Value should be greater or equal to 1024"),
        apiserver_port=80),
    new("23", NO_PUBLIC, 403, public=True),
    new("24", "Unknown attribute for argument cluster_template: foo", foo=1),
    new("25", invalid("project_id", "p", "Cannot set read only field."), project_id="p"),
    new("27", "Cluster driver (none-such) not supported.", driver="none-such"),
    Row("32", PATCH, CT + "/{ct_uuid}", 400,
        "'/coe' is a mandatory attribute and can not be removed", step("remove", "/coe")),
    Row("34a", PATCH, CT + "/{ct_uuid}", 400, REFERENCED, step("replace", "/flavor_id", "m1.tiny")),
    Row("34d", PATCH, CT + "/{ct_uuid}", 400, REFERENCED,
        [*step("replace", "/name", "n"), *step("replace", "/tags", "t")]),
    Row("35a", DELETE, CT + "/{ct_uuid}", 400, REFERENCED),
    Row("40a", POST, CLUSTERS, 404, "ClusterTemplate nope could not be found.",
        {"cluster_template_id": "nope"}),
    Row("40b", POST, CLUSTERS, 400, "ClusterTemplate nope could not be found.",
        {"cluster_template_id": "nope"}, version="container-infra 1.9"),
    Row("41", POST, CLUSTERS, 400, ZERO, {"cluster_template_id": "{ct_uuid}", "node_count": 0},
        version="container-infra 1.9"),
    Row("42a", POST, CLUSTERS, 400, NOT_A_MASTER_COUNT,
        {"cluster_template_id": "{ct_uuid}", "master_count": 2}),
    Row("42b", POST, CLUSTERS, 400, "master_count must be 1 when master_lb_enabled is False",
        {"cluster_template_id": "{ct_uuid}", "master_count": 3}),
    Row("43a", POST, CLUSTERS, 400, invalid(
        "name", "1abc", "Value should match the pattern ^[a-zA-Z][a-zA-Z0-9_.-]*$"),
        {"cluster_template_id": "{ct_uuid}", "name": "1abc"}),
    Row("43b", POST, CLUSTERS, 400, invalid(
        "name", "a" * 243, "Value should have a maximum character requirement of 242"),
        {"cluster_template_id": "{ct_uuid}", "name": "a" * 243}),
    Row("44", POST, CLUSTERS, 404, "Unable to find keypair zz.",
        {"cluster_template_id": "{ct_uuid}", "keypair": "zz"}),
    *(Row(f"48-{method}", method, ONE, 404, "Cluster {done} could not be found.", body, ALT)
      for method, body in (
          (GET, None), (PATCH, step("replace", "/node_count", 2)), (DELETE, None))),
    Row("48-resize", POST, RESIZE, 404, "Cluster {done} could not be found.",
        {"node_count": 1}, ALT),
    Row("49-POST", POST, CLUSTERS, 403, DENIED.format("cluster:create"),
        {"cluster_template_id": "{ct_uuid}"}, READER),
    Row("49-DELETE", DELETE, ONE, 403, DENIED.format("cluster:delete"), None, READER),
    Row("49-PATCH", PATCH, ONE, 403, DENIED.format("cluster:update"),
        step("replace", "/node_count", 2), READER),
    Row("51a", PATCH, ONE, 400, "cannot change cluster property(ies) name.",
        step("replace", "/name", "other")),
    Row("51b", PATCH, ONE, 400, "cannot change cluster property(ies) labels.",
        step("add", "/labels/a", "b")),
    Row("52", PATCH, ONE, 400, "'/uuid' is an internal attribute and can not be updated",
        step("replace", "/uuid", str(uuid.uuid4()))),
    Row("53a", PATCH, ONE, 400, invalid("op", "test",
        "Value should be one of: add, replace, remove"), step("test", "/node_count", 1)),
    Row("53b", PATCH, ONE, 400,
        "The attribute /node_count has existed, please use 'replace' operation instead.",
        step("add", "/node_count", 2)),
    Row("53c", PATCH, ONE, 400, "'add' and 'replace' operations needs value",
        step("replace", "/node_count")),
    Row("54a", PATCH, ONE + "?rollback=True", 400, 'Unknown argument: "rollback"',
        [], version="container-infra 1.2"),
    Row("56a", POST, RESIZE, 406, UNSUPPORTED.format("1.6", "resize"), {"node_count": 1},
        version="container-infra 1.6"),
    Row("56b", POST, RESIZE, 400, invalid("node_count", None, "Mandatory field missing."), {}),
    Row("56d", POST, RESIZE, 400,
        "Resizing the master nodegroup is not supported by this driver.",
        {"node_count": 3, "nodegroup": "default-master"}),
    Row("58a", POST, UPGRADE, 400,
        "Cluster upgrade is not supported in the provided microversion.",
        {"cluster_template": "{ct_uuid}"}, version="container-infra 1.7"),
    Row("58c", POST, CLUSTERS + "/{failed}/actions/upgrade", 400,
        'Upgrading a cluster when status is "CREATE_FAILED" is not supported.',
        {"cluster_template": "{ct_uuid}", "max_batch_size": 1}),
    Row("60a", GET, GROUPS, 406, UNSUPPORTED.format("1.8", "get_all"),
        version="container-infra 1.8"),
    Row("61a", POST, FAILED_GROUPS, 409, "Cluster API address is not available yet", {"name": "n"}),
    Row("61b", POST, GROUPS, 409,
        "A node group with name default-worker already exists in the cluster {done_name}.",
        {"name": "default-worker"}),
    Row("61c", POST, GROUPS, 400, "Creating master nodegroups is currently not supported.",
        {"name": "n", "role": "master"}),
    Row("61d", POST, GROUPS, 409, "min_node_count for n is invalid (min_node_count (2) should be "
        "less or equal to node_count (1)).", {"name": "n", "min_node_count": 2}),
    Row("63b", POST, GROUPS, 409, "node_taints for n is invalid (node_taints[0].effect must be one "
        "of NoSchedule, PreferNoSchedule, NoExecute).",
        {"name": "n", "node_taints": [{"key": "k", "effect": "X"}]}),
    Row("64a", PATCH, GROUPS + "/default-worker", 400,
        "'/node_count' is an internal attribute and can not be updated",
        step("replace", "/node_count", 2)),
    Row("65a", DELETE, GROUPS + "/default-worker", 400,
        "Deleting a default nodegroup is not supported."),
    Row("66c", GET, "/v1/certificates/{done}", 403, DENIED.format("certificate:get"),
        who=MANAGER),
    Row("67b", POST, "/v1/certificates", 400, "Received invalid csr b'bad'.",
        {"cluster_uuid": "{done}", "csr": "bad"}),
    Row("67c", POST, "/v1/certificates", 400, "Cluster nope could not be found.",
        {"cluster_uuid": "nope", "csr": "bad"}),
    Row("69a", PATCH, "/v1/credentials/{done}", 406, UNSUPPORTED.format("1.11", "patch"),
        version="container-infra 1.11"),
    Row("69b", PATCH, "/v1/credentials/{done}", 400,
        "Credential rotation is not supported by driver."),
    Row("71a", GET, "/v1/stats?type=foo", 400,
        "Invalid stats type. Allowed values are 'cluster'"),
    Row("71b", GET, "/v1/stats?project_id=foreign", 403, "Not authorized."),
    Row("72a", GET, "/v1/mservices", 403, DENIED.format("magnum-service:get_all")),
    Row("73a", GET, CLUSTERS + "?limit=0", 400, "Limit must be positive"),
    Row("73b", GET, CLUSTERS + "?sort_dir=foo", 400,
        "Invalid sort direction: foo. Acceptable values are 'asc' or 'desc'"),
    Row("73c", GET, CLUSTERS + "?sort_key=foo", 400,
        'The sort_key value "foo" is an invalid field for sorting'),
    Row("73d", GET, CLUSTERS + "?marker=x", 400, invalid(
        "marker", "x", "unable to convert to uuid. Error: Expected a uuid but received x.")),
    Row("73e", GET, CLUSTERS + "?x=1", 400, 'Unknown argument: "x"'),
]  # fmt: skip


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return value


@pytest.fixture(scope="module")
def names(magnum: Both, ct: dict[str, Any], done: str, failed: str) -> dict[str, str]:
    shown = magnum.call("GET", f"{CLUSTERS}/{done}").json()
    return {
        **magnum.names,
        "ct_uuid": ct["uuid"],
        "done": done,
        "done_name": shown["name"],
        "failed": failed,
    }


@pytest.mark.parametrize("row", [pytest.param(row, id=f"row {row.number}") for row in REFUSALS])
def test_refusal(magnum: Both, names: dict[str, str], row: Row) -> None:
    kwargs = {} if row.body is None else {"json": filled(row.body, names)}
    path = filled(row.path, names)
    answer = magnum.call(row.method, path, row.who, version=row.version, **kwargs)
    assert answer.status_code == row.status, answer.text
    text = filled(row.text, names)
    assert detail(answer) == text if text else answer.json()["errors"]
    assert answer.json()["errors"][0]["title"] or not text


def test_row_1_and_2_documents(magnum: Both) -> None:
    answer = magnum.call("GET", "/", None, version=None)
    (version,) = answer.json()["versions"]
    assert (version["id"], version["status"]) == ("v1", "CURRENT")
    assert (version["min_version"], version["max_version"]) == ("1.1", "1.14")
    assert version["links"][0]["href"].endswith("/v1/")
    assert "OpenStack-API-Version" not in answer.headers
    answer = magnum.call("GET", "/v1", None, version=None)
    resources = {
        "clustertemplates", "clusters", "quotas", "certificates", "mservices", "stats",
        "federations", "nodegroups", "credentials",
    }  # fmt: skip
    assert set(answer.json()) == {"id", "links", "media_types"} | resources
    assert answer.headers["OpenStack-API-Version"] == f"{LONG} 1.1"


def test_row_3_no_token(magnum: Both) -> None:
    answer = magnum.call("GET", CLUSTERS, None)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == 401
    assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")


def test_row_4_and_9_no_version(magnum: Both) -> None:
    answers = [magnum.call("GET", path, version=None) for path in (CLUSTERS, "/clusters")]
    for answer in answers:
        assert answer.status_code == 200
        assert answer.headers["OpenStack-API-Version"] == f"{LONG} 1.1"
        assert "OpenStack-API-Version" in answer.headers["vary"]
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize("asked", ["1.15", "2.0"])
def test_row_5_and_6_versions_out_of_range(magnum: Both, asked: str) -> None:
    answer = magnum.call("GET", CLUSTERS, version=f"container-infra {asked}")
    assert answer.status_code == 406
    (error,) = answer.json()["errors"]
    assert error["code"] == "magnum.microversion-unsupported"
    assert (error["min_version"], error["max_version"]) == ("1.1", "1.14")
    assert answer.headers["OpenStack-API-Minimum-Version"] == f"{LONG} 1.1"
    assert answer.headers["OpenStack-API-Maximum-Version"] == f"{LONG} 1.14"


def test_row_8_latest_of_anything(magnum: Both) -> None:
    assert magnum.call("GET", CLUSTERS, version="compute latest").status_code == 200


def test_row_11_and_28_minimal_template(magnum: Both) -> None:
    body = {
        "name": "minimal",
        "coe": "kubernetes",
        "image_id": magnum.names["image"],
        "flavor_id": "m1.small",
        "external_network_id": "public",
    }
    answer = magnum.call("POST", CT, json=body)
    shown = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"].endswith(f"{CT}/{shown['uuid']}")
    assert shown | body == shown
    assert (shown["network_driver"], shown["cluster_distro"]) == ("flannel", "ubuntu")
    assert (shown["server_type"], shown["labels"]) == ("vm", {})
    assert (shown["driver"], shown["updated_at"]) == ("sandbox_ubuntu", None)
    labelled = magnum.template(labels={"n": 1, "b": True})
    assert labelled["labels"] == {"n": "1", "b": "True"}


def test_row_23_public_by_an_administrator(magnum: Both) -> None:
    assert magnum.template(ADMIN, public=True)["public"] is True


def test_row_26_media_type(magnum: Both) -> None:
    answer = magnum.call("POST", CT, content="x", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, detail(answer)) == (415, "Unknown mimetype: text/plain")


def test_row_29_30_and_36_who_sees_what(magnum: Both) -> None:
    private = magnum.template()["uuid"]
    public, hidden = (
        magnum.template(ADMIN, public=True, hidden=flag)["uuid"] for flag in (False, True)
    )
    seen = {
        who: {row["uuid"] for row in magnum.call("GET", CT, who).json()["clustertemplates"]}
        for who in (ALT, ADMIN)
    }
    assert seen[ALT] & {private, public, hidden} == {public}
    assert seen[ADMIN] >= {private, public, hidden}
    assert magnum.call("GET", f"{CT}/{hidden}").status_code == 404
    answer = magnum.call("DELETE", f"{CT}/{public}")
    assert (answer.status_code, detail(answer)) == (403, DENIED.format("clustertemplate:delete"))


def test_row_31_and_33_patch_of_a_template(magnum: Both) -> None:
    path = f"{CT}/{magnum.template()['uuid']}"
    answer = magnum.call("PATCH", path, json=step("replace", "/name", "renamed"))
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["coe"]) == ("renamed", "kubernetes")
    assert answer.json()["updated_at"]
    answer = magnum.call("PATCH", path, json=step("add", "/labels/new", "v"))
    assert answer.json()["labels"] == {"new": "v"}
    answer = magnum.call("PATCH", path, json=step("replace", "/labels", "{'q':'r'}"))
    assert answer.json()["labels"] == {"q": "r"}


def test_row_34_patch_of_a_template_in_use(magnum: Both, ct: dict[str, Any], done: str) -> None:
    for path, value in (("/name", "in-use"), ("/tags", "t")):
        answer = magnum.call("PATCH", f"{CT}/{ct['uuid']}", json=step("replace", path, value))
        assert (answer.status_code, answer.json()[path[1:]]) == (200, value)


def test_row_35_delete_of_a_template(magnum: Both) -> None:
    path = f"{CT}/{magnum.template()['uuid']}"
    answer = magnum.call("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    answer = magnum.call("DELETE", path)
    name = path.rpartition("/")[2]
    assert (answer.status_code, detail(answer)) == (
        404, f"ClusterTemplate {name} could not be found.",
    )  # fmt: skip


def test_row_37_create(magnum: Both, ct: dict[str, Any]) -> None:
    name = magnum.template()["name"]
    body = {"name": "c37", "cluster_template_id": name, "labels": {"sandbox_hang": "create"}}
    answer = magnum.call("POST", CLUSTERS, json=body)
    assert (answer.status_code, list(answer.json())) == (202, ["uuid"])
    assert "Location" not in answer.headers
    shown = magnum.call("GET", f"{CLUSTERS}/c37")
    assert (shown.status_code, shown.json()["status"]) == (200, "CREATE_IN_PROGRESS")


def test_row_38_stack_or_cluster_id(magnum: Both, done: str) -> None:
    for version, there, absent in (
        ("1.13", "cluster_id", "stack_id"), ("1.12", "stack_id", "cluster_id"),
    ):  # fmt: skip
        path = f"{CLUSTERS}/{done}"
        shown = magnum.call("GET", path, version=f"container-infra {version}").json()
        assert shown[there] == f"sandbox-{done}"
        assert absent not in shown


def test_row_39_and_74_list(magnum: Both, done: str, failed: str) -> None:
    answer = magnum.call("GET", CLUSTERS).json()
    assert "next" not in answer
    assert set(answer["clusters"][0]) == {
        "uuid", "name", "cluster_template_id", "keypair", "node_count", "master_count",
        "docker_volume_size", "labels", "master_flavor_id", "flavor_id", "create_timeout",
        "links", "cluster_id", "status", "health_status", "merge_labels",
    }  # fmt: skip
    page = magnum.call("GET", f"{CLUSTERS}?limit=1").json()
    (first,) = page["clusters"]
    assert page["next"] == (
        "http://magnum.test:9511/v1/clusters?sort_key=id&sort_dir=asc&limit=1"
        f"&marker={first['uuid']}"
    )
    assert first == answer["clusters"][0]


def test_row_41_and_42_accepted_sizes(magnum: Both, ct: dict[str, Any]) -> None:
    body = {"cluster_template_id": ct["uuid"], "labels": PRETENDED}
    version = "container-infra 1.10"
    answer = magnum.call("POST", CLUSTERS, json={**body, "node_count": 0}, version=version)
    assert answer.status_code == 202
    many = {**body, "master_count": 3, "master_lb_enabled": True}
    answer = magnum.call("POST", CLUSTERS, json=many)
    assert magnum.call("GET", f"{CLUSTERS}/{answer.json()['uuid']}").json()["master_count"] == 3


def test_row_45_labels(magnum: Both, ct: dict[str, Any]) -> None:
    own = magnum.cluster(ct, None, labels={"z": "1", **PRETENDED})
    shown = magnum.call("GET", f"{CLUSTERS}/{own}").json()
    assert shown["labels"] == {"z": "1", **PRETENDED}
    assert shown["labels_skipped"] == {"base": "1"}
    merged = magnum.cluster(ct, None, labels={"z": "1", **PRETENDED}, merge_labels=True)
    shown = magnum.call("GET", f"{CLUSTERS}/{merged}").json()
    assert shown["labels"] == {"base": "1", "z": "1", **PRETENDED}
    assert shown["labels_added"] == {"z": "1", **PRETENDED}


def test_row_46_name_twice(magnum: Both, ct: dict[str, Any]) -> None:
    for _ in range(2):
        magnum.cluster(ct, None, name="twice")
    text = "Multiple clusters exist with same name. Please use the cluster uuid instead."
    for method in ("GET", "DELETE"):
        answer = magnum.call(method, f"{CLUSTERS}/twice")
        assert (answer.status_code, detail(answer)) == (409, text)


def test_row_47_quota(magnum: Both, ct: dict[str, Any], done: str) -> None:
    # As many clusters as there are now: the next one is the third of row 47.
    have = magnum.call("GET", "/v1/stats").json()["clusters"]
    quota = {"project_id": magnum.project, "resource": "Cluster", "hard_limit": have}
    path = f"/v1/quotas/{magnum.project}/Cluster"
    assert magnum.call("POST", "/v1/quotas", ADMIN, json=quota).status_code == 201
    try:
        answer = magnum.call("POST", CLUSTERS, json={"cluster_template_id": ct["uuid"]})
        assert answer.status_code == 403
        assert detail(answer) == (
            "Resource limit exceeded: You have reached the maximum clusters per project, "
            f"{have}. You may delete a cluster to make room for a new one."
        )
    finally:
        assert magnum.call("DELETE", path, ADMIN).status_code == 204


def test_row_50_and_57_sizes_one_after_the_other(magnum: Both, ct: dict[str, Any]) -> None:
    ident = magnum.cluster(ct, labels={"sandbox_polls": "1", "sandbox_hang": "update"})
    path = f"{CLUSTERS}/{ident}"
    answer = magnum.call("PATCH", path, json=step("replace", "/node_count", 3))
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})
    assert magnum.until(ident, "UPDATE_IN_PROGRESS")["node_count"] == 3
    answer = magnum.call("POST", f"{path}/actions/resize", json={"node_count": 4})
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})


def test_row_53_path_without_a_slash(magnum: Both, done: str) -> None:
    answer = magnum.call("PATCH", f"{CLUSTERS}/{done}", json=step("replace", "name", "x"))
    assert answer.status_code == 400
    assert "field/attribute path. Value: 'name'." in detail(answer)


def test_row_54_rollback(magnum: Both, done: str) -> None:
    path, version = f"{CLUSTERS}/{done}?rollback=True", "container-infra 1.3"
    assert magnum.call("PATCH", path, json=[], version=version).status_code == 202


def test_row_55_health(magnum: Both, mine: str) -> None:
    steps = [
        *step("replace", "/health_status", "HEALTHY"),
        *step("replace", "/health_status_reason", "{'api':'ok'}"),
    ]
    assert magnum.call("PATCH", f"{CLUSTERS}/{mine}", json=steps).status_code == 202
    shown = magnum.get_until(
        f"{CLUSTERS}/{mine}", lambda answer: answer.json()["health_status"] == "HEALTHY"
    ).json()
    assert shown["health_status_reason"] == {"api": "ok"}
    assert shown["status"] == "CREATE_COMPLETE"


def test_row_56_outside_of_the_limits(magnum: Both, mine: str) -> None:
    groups = f"{CLUSTERS}/{mine}/nodegroups"
    answer = magnum.call("POST", groups, json={"name": "n", "max_node_count": 3})
    assert answer.status_code == 202
    magnum.until(mine, "UPDATE_COMPLETE")
    body = {"node_count": 9, "nodegroup": "n"}
    answer = magnum.call("POST", f"{CLUSTERS}/{mine}/actions/resize", json=body)
    assert (answer.status_code, detail(answer)) == (
        400,
        "Resizing n outside the allowed range: min_node_count = 0, max_node_count = 3",
    )


def test_row_58_59_60_62_64_and_65_groups_and_upgrades(magnum: Both, mine: str) -> None:
    path = f"{CLUSTERS}/{mine}"
    groups = f"{path}/nodegroups"
    shown = magnum.call("GET", groups, version="container-infra 1.9").json()["nodegroups"]
    assert {row["name"] for row in shown} == {"default-master", "default-worker"}

    answer = magnum.call("POST", groups, json={"name": "n"})
    assert answer.status_code == 202
    assert (answer.json()["name"], answer.json()["role"]) == ("n", "worker")
    assert answer.json()["links"]
    magnum.until(mine, "UPDATE_COMPLETE")
    assert magnum.call("GET", f"{groups}/n").json()["status"] == "CREATE_COMPLETE"

    answer = magnum.call("PATCH", f"{groups}/n", json=step("replace", "/min_node_count", 1))
    assert (answer.status_code, answer.json()["min_node_count"]) == (202, 1)
    magnum.get_until(f"{groups}/n", lambda it: it.json()["status"] == "UPDATE_COMPLETE")
    magnum.until(mine, "UPDATE_COMPLETE")

    other = magnum.template()
    body = {"cluster_template": other["uuid"], "max_batch_size": 1, "nodegroup": "n"}
    answer = magnum.call("POST", f"{path}/actions/upgrade", json=body)
    assert answer.status_code == 409
    assert detail(answer).startswith("Cluster Template is not valid for upgrade: Nodegroup n ")
    del body["nodegroup"]
    answer = magnum.call("POST", f"{path}/actions/upgrade", json=body)
    assert (answer.status_code, answer.json()) == (202, {"uuid": mine})
    upgraded = {"status": "UPDATE_COMPLETE", "cluster_template_id": other["uuid"]}
    magnum.get_until(path, lambda it: upgraded.items() <= it.json().items())

    assert magnum.call("DELETE", f"{groups}/n").status_code == 204
    magnum.get_until(f"{groups}/n", lambda it: it.status_code == 404)
    magnum.until(mine, "UPDATE_COMPLETE")


def test_row_62_states_of_a_new_group(magnum: Both, ct: dict[str, Any]) -> None:
    ident = magnum.cluster(ct, labels={"sandbox_polls": "1", "sandbox_hang": "update"})
    groups = f"{CLUSTERS}/{ident}/nodegroups"
    assert magnum.call("POST", groups, json={"name": "n"}).status_code == 202
    assert magnum.call("GET", f"{groups}/n").json()["status"] == "CREATE_IN_PROGRESS"
    magnum.until(ident, "UPDATE_IN_PROGRESS")


def test_row_63_label_of_kubernetes(magnum: Both, done: str) -> None:
    body = {"name": "n", "node_labels": {"kubernetes.io/foo": "x"}}
    answer = magnum.call("POST", f"{CLUSTERS}/{done}/nodegroups", json=body)
    assert answer.status_code == 409
    assert detail(answer).startswith("node_labels for n is invalid (node label 'kubernetes.io/foo'")


def test_row_66_and_67_certificates(magnum: Both, done: str) -> None:
    shown = magnum.call("GET", f"/v1/certificates/{done}")
    assert shown.status_code == 200
    assert set(shown.json()) == {"cluster_uuid", "links", "pem"}
    etcd = magnum.call("GET", f"/v1/certificates/{done}?ca_cert_type=etcd").json()
    assert etcd["pem"] != shown.json()["pem"]

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.COMMON_NAME, "admin"),
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:masters"),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    csr = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    answer = magnum.call("POST", "/v1/certificates", json={"cluster_uuid": done, "csr": csr})
    assert answer.status_code == 201
    assert set(answer.json()) == {"cluster_uuid", "links", "csr", "pem"}
    signed = x509.load_pem_x509_certificate(answer.json()["pem"].encode())
    signed.verify_directly_issued_by(x509.load_pem_x509_certificate(shown.json()["pem"].encode()))
    assert signed.subject == subject
    assert signed.public_key() == key.public_key()


def test_row_68_rotation_without_a_driver_for_it(magnum: Both, done: str) -> None:
    path = f"/v1/certificates/{done}"
    before = magnum.call("GET", path).json()
    answer = magnum.call("PATCH", path, headers=OCTETS)
    assert (answer.status_code, detail(answer)) == (
        400,
        "'rotate_ca_certificate' is not supported by this driver.",
    )
    assert magnum.call("GET", path).json() == before
    assert magnum.call("GET", f"{CLUSTERS}/{done}").json()["status"] == "CREATE_COMPLETE"


def test_rotation_with_a_driver_for_it(magnum: Both) -> None:
    ident = magnum.cluster(magnum.template(image="fcos"))
    path = f"/v1/certificates/{ident}"
    before = magnum.call("GET", path).json()["pem"]
    answer = magnum.call("PATCH", path, headers=OCTETS)
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})
    magnum.until(ident, "UPDATE_COMPLETE")
    assert magnum.call("GET", path).json()["pem"] != before
    answer = magnum.call("PATCH", f"/v1/credentials/{ident}")
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})


def test_row_70_quotas(magnum: Both, cloud_env: CloudEnv) -> None:
    project = str(cloud_env.session(ALT).get_project_id())
    path = f"/v1/quotas/{project}/Cluster"
    body = {"project_id": project, "resource": "Cluster", "hard_limit": 3}
    assert magnum.call("POST", "/v1/quotas", ADMIN, json=body).status_code == 201
    answer = magnum.call("POST", "/v1/quotas", ADMIN, json=body)
    assert (answer.status_code, detail(answer)) == (
        409,
        f"Quota for project {project} already exists for resource Cluster.",
    )
    answer = magnum.call("PATCH", path, ADMIN, json={**body, "hard_limit": 4})
    assert (answer.status_code, answer.json()["hard_limit"]) == (202, 4)
    default = magnum.call("GET", f"/v1/quotas/{magnum.project}/Cluster")
    assert (default.status_code, default.json()["hard_limit"]) == (200, 1000)
    assert "id" not in default.json()
    assert magnum.call("DELETE", path, ADMIN).status_code == 204
    assert magnum.call("DELETE", path, ADMIN).status_code == 404


def test_row_72_services(magnum: Both) -> None:
    answer = magnum.get_until("/v1/mservices", lambda it: bool(it.json()["mservices"]), ADMIN)
    (service,) = answer.json()["mservices"]
    assert (service["binary"], service["state"]) == ("magnum-conductor", "up")
    beat = datetime.fromisoformat(service["updated_at"] or service["created_at"])
    assert datetime.now(UTC) - beat < timedelta(seconds=180)


def test_row_75_delete(magnum: Both, ct: dict[str, Any]) -> None:
    ident = magnum.cluster(ct, labels={"sandbox_polls": "1", "sandbox_hang": "delete"})
    path = f"{CLUSTERS}/{ident}"
    for _ in range(2):
        answer = magnum.call("DELETE", path, headers=OCTETS)
        assert (answer.status_code, answer.content) == (204, b"")
        assert magnum.call("GET", path).json()["status"] == "DELETE_IN_PROGRESS"
    release = Path(os.environ["MAGNUM_SANDBOX_DIR"]) / "state" / "release"
    release.touch()
    magnum.until(ident, "gone")
    release.unlink()
    assert magnum.call("GET", f"/v1/certificates/{ident}").status_code == 404
    assert magnum.call("GET", f"{path}/nodegroups").status_code == 404


def test_row_76_faults(magnum: Both, failed: str) -> None:
    shown = magnum.call("GET", f"{CLUSTERS}/{failed}").json()
    assert shown["faults"] == dict.fromkeys(
        ("default-master", "default-worker"), "sandbox: create refused"
    )
    rows = magnum.call("GET", f"{CLUSTERS}/detail").json()["clusters"]
    assert not any("faults" in row for row in rows)
