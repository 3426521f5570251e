"""Regions, Keystones and domains (spec/skyline.md 1.7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from tests.support.console import Cloud
from tests.support.keystone import catalog

Person = Callable[..., TestClient]

C = "/api/v1/contrib"


def test_regions_and_keystones_are_for_everybody(person: Person, keystone: Cloud) -> None:
    keystone.regions = ["RegionTwo", "RegionOne"]
    client = person("nobody", openstack={"nginx_prefix": "/p"})
    assert client.get(f"{C}/regions").json() == ["RegionOne", "RegionTwo"]
    assert client.get(f"{C}/keystone_endpoints").json() == [
        {"region_name": "RegionOne", "url": "/p/regionone/keystone"},
        {"region_name": "RegionTwo", "url": "/p/regiontwo/keystone"},
    ]


def test_a_region_without_keystone_is_left_out(
    person: Person, keystone: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.support.console.catalog",
        lambda region: (
            catalog(region=region) + catalog({"compute": "http://nova.two/v2.1"}, region="Edge")
        ),
    )
    client = person("nobody")
    assert client.get(f"{C}/regions").json() == ["Edge", "RegionOne"]
    names = [each["region_name"] for each in client.get(f"{C}/keystone_endpoints").json()]
    assert names == ["RegionOne"]


def test_domains_need_a_session(person: Person) -> None:
    answer = person("nobody").get(f"{C}/domains")
    assert answer.status_code == 401
    assert answer.json() == {"message": "Unauthorized: Token not found"}
    assert person().get(f"{C}/domains").json() == ["Default", "Corp"]


def test_domains_can_be_opened(person: Person) -> None:
    client = person("nobody", trimaran={"anonymous_domains": True})
    assert client.get(f"{C}/domains").json() == ["Default", "Corp"]
    # And nothing else.
    assert client.get(f"{C}/domains/x").status_code == 401
    assert client.get("/api/v1/settings").status_code == 401
    assert client.get("/api/v1/profile").status_code == 401


def test_keystone_away(person: Person, keystone: Cloud) -> None:
    keystone.down.add("identity")
    for path in ("regions", "keystone_endpoints"):
        answer = person("nobody").get(f"{C}/{path}")
        assert answer.status_code == 503
        assert set(answer.json()) == {"message"}
