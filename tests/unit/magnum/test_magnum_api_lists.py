"""Spec sections 1.5, 1.11 and 1.13: lists, their pages, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from tests.support.magnum_api import World, detail, world
from trimaran.db.models.magnum import MagnumService
from trimaran.db.queries import magnum as queries
from trimaran.magnum.api.controllers.mservices import is_up
from trimaran.magnum.api.schemas.nodegroup import NodeGroup, NodeGroupSummary


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture
def many(api: World) -> World:
    api.template(labels={"a": "1"})
    for number in range(5):
        api.cluster(name=f"c{number}", cluster_template_id="ct", node_count=number)
    return api


@pytest.mark.parametrize("path", ["/v1/clusters", "/v1/clusters/detail", "/v1/clustertemplates"])
@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("limit=0", 400, "Limit must be positive"),
        ("limit=-1", 400, "Limit must be positive"),
        (
            "limit=a",
            400,
            "Invalid input for field/attribute limit. Value: 'a'. unable to convert to int. "
            "Error: invalid literal for int()",
        ),
        (
            "sort_dir=foo",
            400,
            "Invalid sort direction: foo. Acceptable values are 'asc' or 'desc'",
        ),
        ("sort_key=foo", 400, 'The sort_key value "foo" is an invalid field for sorting'),
        (
            "sort_key=node_count",
            400,
            'The sort_key value "node_count" is an invalid field for sorting',
        ),
        (
            "marker=x",
            400,
            "Invalid input for field/attribute marker. Value: 'x'. unable to convert to uuid. "
            "Error: Expected a uuid but received x.",
        ),
        ("foo=1", 400, 'Unknown argument: "foo"'),
        ("project_id=p2", 400, 'Unknown argument: "project_id"'),
    ],
)
def test_arguments_that_are_refused(
    api: World, path: str, query: str, status: int, text: str
) -> None:
    answer = api.call("GET", f"{path}?{query}")
    assert (answer.status_code, detail(answer)) == (status, text)


def test_unknown_marker(api: World) -> None:
    marker = "27e3153e-d5bf-4b7e-b517-fb518e17f34c"
    for path, kind in (("clusters", "Cluster"), ("clustertemplates", "ClusterTemplate")):
        answer = api.call("GET", f"/v1/{path}?marker={marker}")
        assert answer.status_code == 404
        assert detail(answer) == f"{kind} {marker} could not be found."


def test_address_of_the_next_page(many: World) -> None:
    body = many.call("GET", "/v1/clusters?limit=1").json()
    (shown,) = body["clusters"]
    assert body["next"] == (
        "http://magnum.test:9511/v1/clusters?sort_key=id&sort_dir=asc&limit=1"
        f"&marker={shown['uuid']}"
    )
    body = many.call("GET", "/v1/clusters/detail?limit=1").json()
    assert body["next"].startswith("http://magnum.test:9511/v1/clusters/detail?sort_key=id")
    assert "next" not in many.call("GET", "/v1/clusters").json()
    assert "next" in many.call("GET", "/v1/clustertemplates?limit=1").json()


def walk(api: World, path: str, member: str) -> list[Any]:
    """All rows of a list by its pages, as python-magnumclient follows them."""
    rows: list[Any] = []
    while path:
        body = api.call("GET", path).json()
        rows += body[member]
        following = urlsplit(body.get("next", ""))
        path = f"{following.path}?{following.query}" if following.path else ""
    return rows


@pytest.mark.parametrize("key", ["id", "name", "status", "keypair", "created_at"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_pages_hold_each_row_once_and_in_order(many: World, key: str, direction: str) -> None:
    path = f"/v1/clusters?limit=2&sort_key={key}&sort_dir={direction}"
    names = [row["name"] for row in walk(many, path, "clusters")]
    expected = [f"c{number}" for number in range(5)]
    assert names == (expected if direction == "asc" else expected[::-1])


def test_limit_is_clamped(tmp_path: Path) -> None:
    with world(tmp_path, "[api]\nmax_limit = 2\n") as api:
        for number in range(3):
            api.template(name=f"ct{number}")
        for query in ("", "?limit=50"):
            body = api.call("GET", f"/v1/clustertemplates{query}").json()
            assert len(body["clustertemplates"]) == 2
            assert "limit=2" in body["next"]


def statements(api: World, path: str, **kwargs: Any) -> int:
    """The SQL statements that a request makes."""
    seen: list[str] = []

    def note(*args: Any) -> None:
        if args[2].startswith("SELECT"):
            seen.append(args[2])

    sa.event.listen(api.parts.db.engine, "before_cursor_execute", note)
    try:
        assert api.call("GET", path, **kwargs).status_code == 200
    finally:
        sa.event.remove(api.parts.db.engine, "before_cursor_execute", note)
    return len(seen)


@pytest.mark.parametrize("path", ["/v1/clusters", "/v1/clusters/detail", "/v1/clustertemplates"])
@pytest.mark.parametrize("who", ["t-member", "t-admin"])
def test_f13_statements_do_not_grow_with_rows(api: World, path: str, who: str) -> None:
    api.template()
    api.cluster(cluster_template_id="ct")
    few = statements(api, path, who=who)
    for number in range(9):
        api.template(name=f"ct{number}")
        api.cluster(cluster_template_id=f"ct{number}")
    assert statements(api, path, who=who) == few <= 4
    marker = api.call("GET", path).json()[path.split("/")[2]][0]["uuid"]
    assert statements(api, f"{path}?marker={marker}", who=who) <= 4


def test_lists_ask_the_cloud_nothing(many: World) -> None:
    many.asked.clear()
    many.call("GET", "/v1/clusters/detail")
    assert many.asked == []


def test_counts_and_addresses_are_sums_of_the_nodegroups(many: World) -> None:
    ident = many.cluster(name="big", cluster_template_id="ct", node_count=2)

    def grow(session: Any) -> None:
        common = {"cluster_id": ident, "project_id": "p1", "labels": {}}
        queries.insert_nodegroup(
            session,
            {
                **common,
                "uuid": "u-a",
                "name": "more",
                "role": "gpu",
                "node_count": 3,
                "node_addresses": ["10.0.0.9"],
            },
        )
        for group in queries.nodegroups_of(session, ident, {"is_default": True}):
            address = "10.0.0.1" if group.role == "master" else "10.0.0.2"
            queries.update_nodegroup(session, group.uuid, {"node_addresses": [address]})

    many.parts.db.write(grow)
    body = many.call("GET", f"/v1/clusters/{ident}").json()
    assert (body["node_count"], body["master_count"]) == (5, 1)
    assert body["node_addresses"] == ["10.0.0.2", "10.0.0.9"]
    assert body["master_addresses"] == ["10.0.0.1"]


def test_nodegroups(many: World) -> None:
    ident = many.cluster(name="c", cluster_template_id="ct", labels={"a": "2"})
    url = f"/v1/clusters/{ident}/nodegroups"
    shown = many.call("GET", f"{url}/").json()["nodegroups"]
    assert [set(item) for item in shown] == [set(NodeGroupSummary.model_fields)] * 2
    body = many.call("GET", f"{url}/default-worker").json()
    assert list(body) == list(NodeGroup.model_fields)
    NodeGroup.model_validate(body)
    assert body["links"] == [
        {"href": f"http://magnum.test:9511{url}/{body['uuid']}", "rel": "self"},
        {
            "href": f"http://magnum.test:9511/clusters/{ident}/nodegroups/{body['uuid']}",
            "rel": "bookmark",
        },
    ]
    assert (body["cluster_id"], body["project_id"], body["labels_added"]) == (ident, "p1", {})
    for other in (body["uuid"], body["uuid"].upper(), str(body["id"])):
        assert many.call("GET", f"{url}/{other}").json() == body
    missing = many.call("GET", f"{url}/detail")
    assert missing.status_code == 404
    assert detail(missing) == "Nodegroup detail could not be found."


def test_nodegroups_of_one_role(many: World) -> None:
    url = "/v1/clusters/c1/nodegroups"
    (master,) = many.call("GET", f"{url}?role=master").json()["nodegroups"]
    assert master["role"] == "master"
    assert many.call("GET", f"{url}?role=gpu").json() == {"nodegroups": []}


def test_f45_next_page_keeps_the_role(many: World) -> None:
    body = many.call("GET", "/v1/clusters/c1/nodegroups?role=worker&limit=1").json()
    assert "role=worker" in body["next"]
    following = urlsplit(body["next"])
    again = many.call("GET", f"{following.path}?{following.query}").json()
    assert again == {"nodegroups": []}


def test_f43_list_shows_the_real_limits(many: World) -> None:
    ident = many.cluster(
        name="c", cluster_template_id="ct", labels={"min_node_count": 1, "max_node_count": 7}
    )
    _, worker = many.call("GET", f"/v1/clusters/{ident}/nodegroups").json()["nodegroups"]
    assert (worker["min_node_count"], worker["max_node_count"]) == (1, 7)


def test_services_are_for_administrators(api: World) -> None:
    api.parts.db.write(lambda session: queries.beat(session, "host-1", "magnum-conductor"))
    answer = api.call("GET", "/v1/mservices")
    assert (answer.status_code, detail(answer)) == (
        403,
        "Policy doesn't allow magnum-service:get_all to be performed.",
    )
    (shown,) = api.call("GET", "/v1/mservices", "t-admin").json()["mservices"]
    assert (shown["host"], shown["binary"], shown["state"], shown["id"]) == (
        "host-1",
        "magnum-conductor",
        "up",
        1,
    )
    assert (shown["report_count"], shown["disabled"]) == (1, False)
    answer = api.call("GET", "/v1/mservices?limit=1", "t-admin")
    assert detail(answer) == 'Unknown argument: "limit"'
    assert api.call("GET", "/v1/mservices/1", "t-admin").status_code == 405


@pytest.mark.parametrize(
    ("row", "alive"),
    [
        ({"last_seen_up": 0}, True),
        ({"last_seen_up": -180}, True),
        ({"last_seen_up": -181}, False),
        ({"last_seen_up": 181}, False),
        ({"updated_at": -10}, True),
        ({"created_at": -10}, True),
        ({"last_seen_up": -500, "updated_at": 0}, False),
        ({}, False),
        ({"last_seen_up": 0, "forced_down": True}, False),
    ],
)
def test_who_is_up(row: dict[str, Any], alive: bool) -> None:
    now = datetime(2026, 1, 1)
    times = {
        name: now + timedelta(seconds=row[name]) if name in row else None
        for name in ("last_seen_up", "updated_at", "created_at")
    }
    service = SimpleNamespace(**times, forced_down=row.get("forced_down", False))
    assert is_up(service, now, timedelta(seconds=180)) is alive  # type: ignore[arg-type]
    assert MagnumService is not None
