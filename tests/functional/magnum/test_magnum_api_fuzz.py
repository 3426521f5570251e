"""Input of every kind never ends in a server error: section 11's 500s, and those nobody listed.

The API is whole and its cloud answers without sockets.  One half is generated
from the OpenAPI document that the API serves; the other half knows what this
API takes apart by itself: JSON patches, labels, headers, queries, raw bodies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.fuzz import FEW
from tests.support.magnum_api import LATEST, World, world
from trimaran.db.queries import magnum as queries

TEMPLATE, CLUSTER, GROUP = (
    "/v1/clustertemplates/unused",
    "/v1/clusters/fuzzed",
    "/v1/clusters/fuzzed/nodegroups/default-worker",
)
LISTS = (
    "/v1/clusters",
    "/v1/clusters/detail",
    "/v1/clustertemplates",
    "/v1/clusters/fuzzed/nodegroups",
    "/v1/quotas",
    "/v1/stats",
    "/v1/mservices",
    "/v1/federations",
)
PATCHED = (TEMPLATE, CLUSTER, GROUP, "/v1/federations/x", "/v1/quotas/p1/Cluster")
POSTED = (
    "/v1/clustertemplates",
    "/v1/clusters",
    "/v1/clusters/fuzzed/nodegroups",
    "/v1/clusters/fuzzed/actions/resize",
    "/v1/clusters/fuzzed/actions/upgrade",
    "/v1/certificates",
    "/v1/quotas",
    "/v1/federations",
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    quota = "[quotas]\nmax_clusters_per_project = 1000000\n"
    with world(tmp_path_factory.mktemp("fuzz"), quota) as made:
        made.template()
        made.template(name="unused")
        ident = made.cluster(cluster_template_id="ct", name="fuzzed")
        done = {"status": "CREATE_COMPLETE", "api_address": "https://k8s.test"}
        made.parts.db.write(lambda session: queries.update_cluster(session, ident, done))
        made.conductor.answers |= {"get_ca_certificate": "pem", "sign_certificate": "pem"}
        yield made


def told(answer: Any) -> None:
    """The answer is a success, or says which input was wrong."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        body = answer.json()
        assert "error" in body or body["errors"], answer.text


@settings(FEW, max_examples=250)
@given(st.data())
def test_what_the_document_describes(api: World, data: st.DataObject) -> None:
    found = schemathesis.openapi.from_dict(api.app.openapi()).get_all_operations()
    operations = [operation.ok() for operation in found]
    assert len(operations) > 30
    case = data.draw(data.draw(st.sampled_from(operations)).as_strategy())
    sent = case.as_transport_kwargs(base_url="http://magnum.test:9511")
    chosen = {name: sent[name] for name in ("params", "json", "cookies") if sent.get(name)}
    if sent.get("data") is not None:
        chosen["content"] = sent["data"]
    headers = {**dict(sent["headers"]), "X-Auth-Token": "t-admin", **LATEST}
    told(api.client.request(sent["method"], sent["url"], headers=headers, **chosen))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, -1, 2**31, 2**63, 2**64, 1e308, -0.0, "", "0", "1", "true"])
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    [
        "name", "coe", "image_id", "flavor_id", "master_flavor_id", "keypair", "keypair_id",
        "cluster_template_id", "cluster_template", "node_count", "master_count", "labels",
        "docker_volume_size", "create_timeout", "health_status", "health_status_reason",
        "min_node_count", "max_node_count", "node_labels", "node_taints", "nodes_to_remove",
        "nodegroup", "max_batch_size", "cluster_uuid", "csr", "ca_cert_type", "hard_limit",
        "project_id", "resource", "public", "hidden", "tags", "driver", "uuid", "role",
        "server_type", "dns_nameserver", "apiserver_port", "merge_labels", "properties",
        "hostcluster_id", "member_ids", "discovery_url", "fixed_network", "status", "faults",
    ]
)  # fmt: skip
POINTERS = st.one_of(
    FIELDS.map(lambda name: f"/{name}"),
    st.tuples(FIELDS, st.text()).map("/".join).map(lambda path: f"/{path}"),
    st.sampled_from(["", "/", "//", "/labels/~2", "/labels/-", "/node_taints/0", "/labels/a.b~1c"]),
    st.text(),
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "replace", "remove"]), "path": POINTERS},
        optional={"value": JSON, "from": st.just("/name")},
    ),
    max_size=4,
)
#: good enough to get past the first checks, so that the rest is reached
WHOLE = {
    "/v1/clustertemplates": {"coe": "kubernetes", "image_id": "ub", "flavor_id": "m1"},
    "/v1/clusters": {"cluster_template_id": "ct"},
    "/v1/clusters/fuzzed/nodegroups": {"name": "n"},
    "/v1/clusters/fuzzed/actions/resize": {"node_count": 1},
    "/v1/clusters/fuzzed/actions/upgrade": {"cluster_template": "unused"},
    "/v1/certificates": {"cluster_uuid": "fuzzed", "csr": "x"},
    "/v1/quotas": {"project_id": "p1"},
    "/v1/federations": {"hostcluster_id": "fuzzed"},
}


def as_json(value: Any) -> bytes:
    # Lone surrogates travel as escapes, as a careless client sends them.
    return json.dumps(value).encode()


def send(api: World, method: str, path: str, content: bytes, **headers: str) -> Any:
    headers = {"Content-Type": "application/json", **LATEST, **headers}
    return api.call(method, path, content=content, headers=headers)


@FEW
@given(st.sampled_from(PATCHED), STEPS)
@example(CLUSTER, [{"op": "replace", "path": "/node_count", "value": "9" * 5000}])
@example(TEMPLATE, [{"op": "replace", "path": "/labels", "value": "{" * 5000}])
@example(TEMPLATE, [{"op": "replace", "path": "/labels", "value": "{'a': 9" + "9" * 5000 + "}"}])
@example(TEMPLATE, [{"op": "add", "path": "/labels/\ud800", "value": "x"}])
@example(TEMPLATE, [{"op": "add", "path": "/labels/" + "k" * 70000, "value": "x"}])
@example(GROUP, [{"op": "replace", "path": "/node_taints", "value": "[[[1]]]"}])
def test_patches(api: World, path: str, steps: list[dict[str, Any]]) -> None:
    told(send(api, "PATCH", path, as_json(steps)))


@settings(FEW, max_examples=500)
@given(
    st.sampled_from(POSTED), st.dictionaries(FIELDS | st.text(), JSON, max_size=3), st.booleans()
)
def test_bodies(api: World, path: str, fields: dict[str, Any], whole: bool) -> None:
    body = {**(WHOLE[path] if whole else {}), **fields}
    told(send(api, "POST", path, as_json(body)))


@FEW
@given(
    st.sampled_from(["/v1/clustertemplates", "/v1/clusters", "/v1/clusters/fuzzed/nodegroups"]),
    st.sampled_from(["labels", "node_labels", "node_taints"]),
    st.dictionaries(
        st.text()
        | st.sampled_from(["boot_volume_size", "min_node_count", "max_node_count", "a.b/c"]),
        JSON,
        max_size=3,
    )
    | JSON,
)
@example("/v1/clusters", "labels", {"min_node_count": "9" * 5000})
@example("/v1/clusters", "labels", {"boot_volume_size": 1e308})
@example("/v1/clusters", "labels", {"boot_volume_size": True})
@example("/v1/clusters/fuzzed/nodegroups", "node_labels", {"\0": "x"})
def test_labels(api: World, path: str, field: str, value: Any) -> None:
    told(send(api, "POST", path, as_json({**WHOLE[path], field: value})))


RAW = [
    b"", b"null", b"[]", b"[[]]", b'"x"', b"1", b"NaN", b"Infinity", b"{", b"\xff\xfe", b"\0",
    b'{"name": "\xff"}', b'"\\ud800"', b"[" * 100_000, b'{"a":' * 100_000, b"1" * 100_000,
    b"-" + b"9" * 5000, b'{"labels": {"a": NaN}}', b'{"name": 1e999}', b"\xef\xbb\xbf{}",
    b'{"name": "' + b"x" * 1_048_000 + b'"}', b'[{"op":"add","path":"/' + b"x/" * 400_000 + b'"}]',
    b'{"a":1,"a":2}', b" ", "{\"name\": \"\N{GRINNING FACE}\"}".encode("utf-16"),
]  # fmt: skip


@pytest.mark.parametrize("raw", RAW, ids=lambda raw: repr(raw[:16]))
def test_raw_bodies(api: World, raw: bytes) -> None:
    for method, paths in (("POST", POSTED), ("PATCH", (*PATCHED, "/v1/certificates/fuzzed"))):
        for path in paths:
            told(send(api, method, path, raw))


PRINTABLE = st.text(
    st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\r\n"), max_size=60
)


@FEW
@given(
    st.sampled_from(
        ["X-Auth-Token", "OpenStack-API-Version", "Content-Type", "Accept", "Origin",
         "X-OpenStack-Request-ID", "X-Forwarded-For", "X-Forwarded-Proto", "Host", "Forwarded"]
    ),
    PRINTABLE,
    st.sampled_from(["GET", "POST", "PATCH"]),
)  # fmt: skip
@example("OpenStack-API-Version", "container-infra 1." + "9" * 5000, "GET")
@example("OpenStack-API-Version", "container-infra 1.\u00b2", "GET")
@example("Content-Type", "application/json; charset=klingon", "POST")
def test_headers(api: World, name: str, value: str, method: str) -> None:
    headers = {"X-Auth-Token": "t-member", **LATEST, "Content-Type": "application/json"}
    headers = {key: item.encode() for key, item in headers.items()}
    headers[name] = value.encode("latin-1")
    path = CLUSTER if method == "PATCH" else "/v1/clusters"
    content = b"" if method == "GET" else b"[]"
    told(api.client.request(method, path, headers=headers, content=content))


@FEW
@given(
    st.sampled_from(LISTS),
    st.dictionaries(
        st.sampled_from(
            ["limit", "marker", "sort_key", "sort_dir", "role", "all_tenants", "project_id",
             "type", "rollback"]
        )
        | st.text(max_size=5),
        st.text(max_size=40) | st.sampled_from(["0", "-1", "1" * 30, "id", "labels", "true"]),
        max_size=3,
    ),
)  # fmt: skip
@example("/v1/quotas", {"marker": "9" * 30})
@example("/v1/clusters", {"limit": "9" * 5000})
def test_queries(api: World, path: str, query: dict[str, str]) -> None:
    told(api.call("GET", path, "t-admin", params=query))


@FEW
@given(
    st.sampled_from(
        ["/v1/clusters/{}", "/v1/clustertemplates/{}", "/v1/clusters/fuzzed/nodegroups/{}",
         "/v1/certificates/{}", "/v1/quotas/{}/{}", "/v1/federations/{}", "/v1/{}", "/{}"]
    ),
    st.binary(max_size=12).map(lambda raw: "".join(f"%{byte:02x}" for byte in raw)),
    st.sampled_from(["GET", "DELETE", "PUT"]),
)  # fmt: skip
@example("/v1/clusters/{}", "%2e%2e", "GET")
@example("/{}", "x%0ay", "GET")
@example("/v1/clusters/fuzzed/nodegroups/{}", "9" * 30, "GET")
@example("/v1/clusters/fuzzed/nodegroups/{}", "\u00b2", "GET")
def test_paths(api: World, pattern: str, ident: str, method: str) -> None:
    told(api.call(method, pattern.replace("{}", ident), "t-admin"))
