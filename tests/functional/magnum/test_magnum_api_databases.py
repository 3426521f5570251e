"""The Magnum API on MariaDB, PostgreSQL and SQLite; the cloud is a stand-in."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.db.queries import magnum as queries

QUOTA = "[quotas]\nmax_clusters_per_project = 2\n"


@pytest.fixture
def database(magnum_url: str) -> str:
    return magnum_url


@pytest.fixture
def api(tmp_path: Path, database: str) -> Iterator[World]:
    with world(tmp_path, database=database) as made:
        made.template()
        yield made


def test_ten_parallel_creates_against_a_quota_of_two(tmp_path: Path, database: str) -> None:
    with world(tmp_path, QUOTA, database) as api:
        api.template()
        codes: list[int] = []
        barrier = threading.Barrier(10)

        def create() -> None:
            barrier.wait()
            body = {"cluster_template_id": "ct"}
            codes.append(api.call("POST", "/v1/clusters", json=body).status_code)

        threads = [threading.Thread(target=create) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(codes) == [202] * 2 + [403] * 8
        assert len(api.call("GET", "/v1/clusters").json()["clusters"]) == 2
        assert len(api.conductor.casts) == 2


def test_a_deleted_cluster_still_counts(tmp_path: Path, database: str) -> None:
    with world(tmp_path, QUOTA, database) as api:
        api.template()
        ident = api.cluster(cluster_template_id="ct")
        api.cluster(cluster_template_id="ct")
        assert api.call("DELETE", f"/v1/clusters/{ident}").status_code == 204
        body = {"cluster_template_id": "ct"}
        assert api.call("POST", "/v1/clusters", json=body).status_code == 403


def test_parallel_deletes_are_one_operation(api: World) -> None:
    ident = api.cluster(cluster_template_id="ct")
    api.conductor.casts.clear()
    codes: list[int] = []
    barrier = threading.Barrier(5)

    def delete() -> None:
        barrier.wait()
        codes.append(api.call("DELETE", f"/v1/clusters/{ident}").status_code)

    threads = [threading.Thread(target=delete) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [204] * 5
    assert len({keywords["operation"] for _, _, keywords in api.conductor.casts}) == 1


def walk(api: World, path: str, plural: str = "clusters") -> list[str]:
    """The names of a list, page by page."""
    names: list[str] = []
    while path:
        body = api.call("GET", path).json()
        names += [row["name"] for row in body[plural]]
        following = urlsplit(body.get("next", ""))
        path = f"{following.path}?{following.query}" if following.path else ""
    return names


def test_roles_are_told_apart_by_case(api: World) -> None:
    ident = api.cluster(cluster_template_id="ct", master_count=1, node_count=2)
    empty = api.cluster(cluster_template_id="ct", node_count=0)
    group = {"cluster_id": ident, "project_id": "p1", "node_count": 10}
    for number, role in enumerate(("Master", "mastermaster", None)):
        values = {**group, "uuid": str(uuid.uuid4()), "name": f"n{number}", "role": role}
        api.parts.db.write(lambda session, row=values: queries.insert_nodegroup(session, row))
    for path in ("/v1/clusters", "/v1/clusters/detail"):
        rows = {row["uuid"]: row for row in api.call("GET", path).json()["clusters"]}
        counts = [(rows[each]["master_count"], rows[each]["node_count"]) for each in (ident, empty)]
        assert counts == [(1, 32), (1, 0)]


def test_pages_with_nulls(api: World) -> None:
    for number in range(6):
        fields = {"keypair": "kp", "create_timeout": number} if number % 2 else {}
        api.cluster(name=f"c{number}", cluster_template_id="ct", **fields)
    for key in ("id", "name", "keypair", "create_timeout", "updated_at"):
        for direction in ("asc", "desc"):
            path = f"/v1/clusters?sort_key={key}&sort_dir={direction}"
            whole = [row["name"] for row in api.call("GET", path).json()["clusters"]]
            assert sorted(whole) == [f"c{number}" for number in range(6)]
            assert walk(api, f"{path}&limit=2") == whole


def test_pages_of_node_groups(api: World) -> None:
    ident = api.cluster(name="mine", cluster_template_id="ct")
    api.cluster(name="another", cluster_template_id="ct")
    group = {"cluster_id": ident, "project_id": "p1"}
    for number in range(3):
        values = {**group, "uuid": str(uuid.uuid4()), "name": f"n{number}", "role": "gpu"}
        values |= {"max_node_count": number} if number % 2 else {}
        api.parts.db.write(lambda session, row=values: queries.insert_nodegroup(session, row))
    every = {"default-master", "default-worker", "n0", "n1", "n2"}
    for cluster in (ident, ident.upper(), "mine"):
        path = f"/v1/clusters/{cluster}/nodegroups"
        for order in ("id&sort_dir=asc", "name&sort_dir=desc", "max_node_count&sort_dir=desc"):
            whole = walk(api, f"{path}?sort_key={order}", "nodegroups")
            assert set(whole) == every
            assert walk(api, f"{path}?sort_key={order}&limit=2", "nodegroups") == whole
        assert walk(api, f"{path}?role=gpu&limit=1", "nodegroups") == ["n0", "n1", "n2"]
        assert walk(api, f"{path}?role=none", "nodegroups") == []
        stranger = api.call("GET", path, "t-other")
        assert stranger.status_code == 404
        assert detail(stranger) == f"Cluster {cluster} could not be found."
        assert api.call("GET", path, "t-admin").status_code == 200


def test_a_cluster_in_full(api: World) -> None:
    ident = api.cluster(name="full", cluster_template_id="ct", node_count=3, labels={"a": "b"})
    by_uuid = api.call("GET", f"/v1/clusters/{ident}").json()
    assert (by_uuid["master_count"], by_uuid["node_count"]) == (1, 3)
    assert by_uuid["labels_added"] == {"a": "b"}
    assert api.call("GET", "/v1/clusters/full").json() == by_uuid
    assert api.call("GET", f"/v1/clusters/{ident}", "t-admin").json() == by_uuid
    assert api.call("GET", f"/v1/clusters/{ident}", "t-other").status_code == 404
    api.cluster(name="full", cluster_template_id="ct")
    assert api.call("GET", "/v1/clusters/full").status_code == 409


def test_text_of_any_kind(api: World) -> None:
    name = "Ünïcode ☸ 😀 ' \" \\ %s {0}"
    made = api.template(name=name, labels={"ключ": "значение", "a.b/c": "\u2028"})
    shown = api.call("GET", f"/v1/clustertemplates/{made['uuid']}").json()
    assert (shown["name"], shown["labels"]) == (name, made["labels"])
    body = '{"coe": "kubernetes", "image_id": "ub", "name": "a\\u0000b"}'
    headers = {"Content-Type": "application/json"}
    answer = api.call("POST", "/v1/clustertemplates", content=body, headers=headers)
    assert answer.status_code == 400
    for path in ("/v1/clusters/a%00b", "/v1/clusters/x/nodegroups?role=%00"):
        assert api.call("GET", path).status_code in (400, 404)


def test_times(api: World) -> None:
    made = api.template(name="timed")
    assert made["created_at"].endswith("+00:00")
    steps = [{"op": "replace", "path": "/name", "value": "other"}]
    changed = api.call("PATCH", f"/v1/clustertemplates/{made['uuid']}", json=steps).json()
    assert changed["created_at"] == made["created_at"]
    assert changed["updated_at"].endswith("+00:00")
    assert api.call("GET", "/v1/clustertemplates/other").json() == changed


def test_f33_a_pool_of_one_connection(tmp_path: Path, database: str) -> None:
    settings = "[trimaran]\ndatabase_pool_size = 1\nthreads = 8\n"
    with world(tmp_path, settings, database) as api:
        api.template()
        codes: list[int] = []

        def use() -> None:
            api.cluster(cluster_template_id="ct")
            codes.append(api.call("GET", "/v1/clusters/detail").status_code)

        threads = [threading.Thread(target=use) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert codes == [200] * 6
