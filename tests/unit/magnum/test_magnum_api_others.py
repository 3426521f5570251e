"""Spec sections 1.12 and 1.13: certificates, credentials, quotas, statistics, federations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.errors import BadRequest

OCTETS = {"Content-Type": "application/octet-stream"}
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.template()
        yield made


@pytest.fixture
def ident(api: World) -> str:
    made = api.cluster(name="c", cluster_template_id="ct")
    api.conductor.casts.clear()
    return made


def test_ca(api: World, ident: str) -> None:
    api.conductor.answers["get_ca_certificate"] = PEM
    answer = api.call("GET", "/v1/certificates/c?ca_cert_type=etcd")
    assert answer.json() == {
        "cluster_uuid": ident,
        "links": [
            {"href": f"http://magnum.test:9511/v1/certificates/{ident}", "rel": "self"},
            {"href": f"http://magnum.test:9511/certificates/{ident}", "rel": "bookmark"},
        ],
        "pem": PEM.strip(),
    }
    assert api.conductor.casts[0][1][2] == "etcd"


def test_certificates_are_the_creators(api: World, ident: str) -> None:
    api.conductor.answers["get_ca_certificate"] = PEM
    for who, status in (
        ("t-member", 200),
        ("t-colleague", 403),
        ("t-other", 404),
        ("t-admin", 404),
    ):
        assert api.call("GET", f"/v1/certificates/{ident}", who).status_code == status


def test_signing(api: World, ident: str) -> None:
    api.conductor.answers["sign_certificate"] = PEM
    body = {"cluster_uuid": "c", "csr": "request\n"}
    answer = api.call("POST", "/v1/certificates", json=body)
    assert answer.status_code == 201
    assert "Location" not in answer.headers
    shown = answer.json()
    assert (shown["cluster_uuid"], shown["csr"], shown["pem"]) == (ident, "request\n", PEM.strip())
    assert "ca_cert_type" not in shown
    asked = api.conductor.casts[0][1][2]
    assert (asked.csr, asked.user_id, asked.cluster_uuid) == ("request\n", "u1", ident)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"cluster_uuid": "nope", "csr": "x"}, "Cluster nope could not be found."),
        (
            {"csr": "x"},
            "Invalid input for field/attribute cluster_uuid. Value: 'None'. "
            "Mandatory field missing.",
        ),
        (
            {"cluster_uuid": "c"},
            "Invalid input for field/attribute csr. Value: 'None'. Mandatory field missing.",
        ),
        (
            {"cluster_uuid": "c", "csr": ""},
            "Invalid input for field/attribute csr. Value: ''. "
            "Value should have a minimum character requirement of 1",
        ),
    ],
)
def test_f30_signing_is_refused(api: World, ident: str, body: dict[str, Any], text: str) -> None:
    answer = api.call("POST", "/v1/certificates", json=body)
    assert (answer.status_code, detail(answer)) == (400, text)


def test_rotation_of_the_ca(api: World, ident: str) -> None:
    answer = api.call("PATCH", f"/v1/certificates/{ident}", headers=OCTETS)
    assert (answer.status_code, answer.json()) == (202, {"uuid": ident})
    said = "'rotate_ca_certificate' is not supported by this driver."
    api.conductor.answers["rotate_ca_certificate"] = BadRequest(said)
    answer = api.call("PATCH", f"/v1/certificates/{ident}", json={})
    assert (answer.status_code, detail(answer)) == (400, said)


def test_rotation_without_tls(api: World) -> None:
    api.template(name="plain", tls_disabled=True)
    ident = api.cluster(cluster_template_id="plain")
    answer = api.call("PATCH", f"/v1/certificates/{ident}")
    assert (answer.status_code, detail(answer)) == (
        400,
        "Rotating the CA certificate on a non-TLS cluster is not supported",
    )


def test_rotation_of_the_credential(api: World, ident: str) -> None:
    headers = {"OpenStack-API-Version": "container-infra 1.11"}
    path = f"/v1/credentials/{ident}"
    assert api.call("PATCH", path, headers=headers).status_code == 406
    assert api.call("PATCH", path).json() == {"uuid": ident}
    assert api.conductor.names() == ["credential_rotate"]
    assert api.call("PATCH", path, "t-reader").status_code == 403


def test_certificates_are_not_listed(api: World) -> None:
    assert api.call("GET", "/v1/certificates").status_code == 405


def test_quotas(api: World) -> None:
    url = "/v1/quotas"
    body = {"project_id": "p1", "resource": "Cluster", "hard_limit": 3}
    answer = api.call("POST", url, "t-admin", json=body)
    assert answer.status_code == 201
    assert {key: answer.json()[key] for key in body} == body
    answer = api.call("POST", url, "t-admin", json=body)
    assert (answer.status_code, detail(answer)) == (
        409,
        "Quota for project p1 already exists for resource Cluster.",
    )
    answer = api.call("PATCH", f"{url}/p1/Cluster", "t-admin", json={**body, "hard_limit": 4})
    assert (answer.status_code, answer.json()["hard_limit"]) == (202, 4)
    assert api.call("GET", f"{url}/p1/Cluster").json()["hard_limit"] == 4
    assert api.call("DELETE", f"{url}/p1/Cluster", "t-admin").status_code == 204
    answer = api.call("DELETE", f"{url}/p1/Cluster", "t-admin")
    assert (answer.status_code, detail(answer)) == (
        404,
        "Quota could not be found: project_id p1 resource Cluster.",
    )
    assert api.call("GET", f"{url}/p1/Cluster").json() == {
        "hard_limit": 20,
        "project_id": "p1",
        "resource": "Cluster",
    }


def test_f52_limit_that_is_not_given_stays(api: World) -> None:
    body = {"project_id": "p1", "hard_limit": 7}
    api.call("POST", "/v1/quotas", "t-admin", json=body)
    answer = api.call("PATCH", "/v1/quotas/p1/Cluster", "t-admin", json={"project_id": "p1"})
    assert answer.json()["hard_limit"] == 7


def test_quotas_are_refused(api: World) -> None:
    url = "/v1/quotas"
    answer = api.call("POST", url, "t-admin", json={"project_id": "px"})
    assert (answer.status_code, detail(answer)) == (404, "The project_id px could not be found.")
    answer = api.call("POST", url, "t-admin", json={"hard_limit": 1})
    assert (answer.status_code, detail(answer)) == (400, "Must provide a valid project ID.")
    answer = api.call("POST", url, "t-admin", json={"project_id": "p1", "hard_limit": -1})
    assert answer.status_code == 400
    assert api.call("POST", url, json={"project_id": "p1"}).status_code == 403
    assert api.call("GET", url).status_code == 403
    answer = api.call("GET", f"{url}/p2/Cluster")
    assert (answer.status_code, detail(answer)) == (403, "Not authorized.")
    answer = api.call("GET", f"{url}/p1")
    assert (answer.status_code, detail(answer)) == (400, 'Missing argument: "resource"')


def test_list_of_quotas(api: World) -> None:
    for project in ("p1", "p2", "pa"):
        api.call("POST", "/v1/quotas", "t-admin", json={"project_id": project})

    def projects(query: str = "") -> list[str]:
        body = api.call("GET", f"/v1/quotas{query}", "t-admin").json()
        return [row["project_id"] for row in body["quotas"]]

    assert projects() == ["pa"]
    assert projects("?all_tenants=True") == ["p1", "p2", "pa"]
    assert projects("?all_tenants=True&marker=1") == ["p2", "pa"]
    body = api.call("GET", "/v1/quotas?all_tenants=True&limit=2", "t-admin").json()
    assert body["next"] == (
        "http://magnum.test:9511/v1/quotas?all_tenants=True&sort_key=id&sort_dir=asc&limit=2"
        "&marker=2"
    )
    answer = api.call("GET", "/v1/quotas?all_tenants=zz", "t-admin")
    assert answer.status_code == 400


def test_statistics(api: World, ident: str) -> None:
    assert api.call("GET", "/v1/stats").json() == {"clusters": 1, "nodes": 2}
    assert api.call("GET", "/v1/stats?project_id=p1&type=CLUSTER").json()["nodes"] == 2
    assert api.call("GET", "/v1/stats", "t-other").json() == {"clusters": 0, "nodes": 0}
    assert api.call("GET", "/v1/stats", "t-admin").json() == {"clusters": 1, "nodes": 2}
    answer = api.call("GET", "/v1/stats?project_id=p1", "t-other")
    assert (answer.status_code, detail(answer)) == (403, "Not authorized.")
    answer = api.call("GET", "/v1/stats?type=foo")
    assert (answer.status_code, detail(answer)) == (
        400,
        "Invalid stats type. Allowed values are 'cluster'",
    )


def test_federations_never_come_to_be(api: World, ident: str) -> None:
    url = "/v1/federations"
    body = {"name": "f", "hostcluster_id": "c", "properties": {"dns-zone": "example.com."}}
    answer = api.call("POST", url, json=body)
    assert (answer.status_code, list(answer.json())) == (202, ["uuid"])
    assert api.call("GET", url).json() == {"federations": []}
    assert api.call("GET", f"{url}/detail").json() == {"federations": []}
    for method, kwargs in (("GET", {}), ("DELETE", {}), ("PATCH", {"json": []})):
        answer = api.call(method, f"{url}/f", **kwargs)
        assert (answer.status_code, detail(answer)) == (404, "Federation f could not be found.")
    for absent, text in (
        ("hostcluster_id", "No hostcluster specified. Please specify a hostcluster_id."),
        ("properties", "Please specify a `properties` dict for the federation."),
    ):
        less = {key: value for key, value in body.items() if key != absent}
        assert detail(api.call("POST", url, json=less)) == text
    answer = api.call("POST", url, json={**body, "properties": {}})
    assert detail(answer) == "No DNS zone specified. Please specify a `dns-zone`."
    assert api.call("POST", url, json={**body, "hostcluster_id": "x"}).status_code == 404
