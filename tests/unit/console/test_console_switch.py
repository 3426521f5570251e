"""Switches of project and region (spec/skyline.md 1.4)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from tests.support.console import Cloud, claims, cookie

Person = Callable[..., TestClient]

PROJECT = "/api/v1/switch_project"
REGION = "/api/v1/switch_region"


def test_another_project(person: Person, keystone: Cloud) -> None:
    client = person()
    answer = client.post(f"{PROJECT}/p2", json={"project_id": "ignored"}, params={"a": "b"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["project"]["id"] == "p2"
    assert body["keystone_token"] != "t-member"
    assert body["uuid"] != "0" * 32
    said = claims(client.cookies["session"])
    assert said == {name: body[name] for name in ("keystone_token", "region", "exp", "uuid")}
    # The old session stays what it was.
    assert client.get("/api/v1/profile").json()["project"]["id"] == "p1"


@pytest.mark.parametrize("project", ["nope", "%00", "a%22b"])
def test_a_project_that_is_not_there(person: Person, project: str) -> None:
    answer = person().post(f"{PROJECT}/{project}")
    assert answer.status_code == 401
    assert "(HTTP 401)" in answer.json()["detail"]
    assert answer.headers.get("set-cookie") is None


@pytest.mark.parametrize("path", [f"{PROJECT}/p2", f"{REGION}/RegionTwo"])
def test_one_session_cookie_also_when_the_old_one_is_due(
    person: Person, keystone: Cloud, path: str
) -> None:
    keystone.regions = ["RegionOne", "RegionTwo"]
    client = person()
    due = cookie(keystone_token="t-member", exp=int(time.time()) + 60)
    answer = client.post(path, headers={"Cookie": f"session={due}"})
    held = [each for each in answer.headers.get_list("set-cookie") if each.startswith("session=")]
    assert len(held) == 1
    said = claims(held[0].partition("=")[2].partition(";")[0])
    assert said["uuid"] == answer.json()["uuid"] != "0" * 32


def test_another_region(person: Person, keystone: Cloud) -> None:
    keystone.regions = ["RegionOne", "RegionTwo"]
    client = person()
    body = client.post(f"{REGION}/RegionTwo").json()
    assert body["region"] == "RegionTwo"
    assert body["keystone_token"] == "t-member"
    assert body["endpoints"]["nova"] == "/api/openstack/regiontwo/nova"
    said = claims(client.cookies["session"])
    assert (said["region"], said["uuid"]) == ("RegionTwo", body["uuid"])


@pytest.mark.parametrize("region", ["nope", "regionone", "%2e%2e"])
def test_a_region_that_is_not_there(person: Person, region: str) -> None:
    answer = person().post(f"{REGION}/{region}")
    assert (answer.status_code, answer.json()) == (401, {"detail": "Region not accessible"})


@pytest.mark.parametrize("path", [f"{PROJECT}/p2", f"{REGION}/RegionOne"])
def test_nobody_switches(person: Person, path: str) -> None:
    assert person("nobody").post(path).json() == {"message": "Unauthorized: Token not found"}


def test_keystone_away_is_no_reason_to_log_out(person: Person, keystone: Cloud) -> None:
    client = person()
    client.get("/api/v1/profile")
    keystone.down.add("identity")
    answer = client.post(f"{PROJECT}/p2")
    assert answer.status_code == 503
    assert answer.headers.get("set-cookie") is None
