"""The listings, switches, regions and settings on a real cloud and real databases."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.cloud import ADMIN, DEMO, CloudEnv
from trimaran.config import console as options
from trimaran.console import app as console
from trimaran.db import migrate
from trimaran.identity import count_calls

E = "/api/v1/extension"
SECRET = "0123456789abcdef0123456789abcdef"


def build(cloud_env: CloudEnv, url: str, **groups: Any) -> TestClient:
    content = {
        "default": {"database_url": url, "secret_key": SECRET},
        "openstack": {
            "keystone_url": cloud_env.auth_url,
            "system_user_password": "password",
            "default_region": cloud_env.region,
        },
    }
    app = console.build(options.parse({**content, **groups}, "skyline.yaml"))
    return TestClient(app, follow_redirects=False)


def log_in(client: TestClient, name: str) -> TestClient:
    answer = client.post("/api/v1/login", json={"username": name, "password": "password"})
    assert answer.status_code == 200, answer.text
    return client


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("console") / "console.sqlite"
    migrate.upgrade(f"sqlite:///{file}", "console")
    return f"sqlite:///{file}"


@pytest.fixture(scope="module")
def demo(cloud_env: CloudEnv, url: str) -> Iterator[TestClient]:
    client = log_in(build(cloud_env, url), DEMO.name)
    yield client
    client.app.state.parts.db.dispose()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def admin(cloud_env: CloudEnv, url: str) -> Iterator[TestClient]:
    client = log_in(build(cloud_env, url), ADMIN.name)
    yield client
    client.app.state.parts.db.dispose()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def volume(cloud_env: CloudEnv) -> Iterator[dict[str, Any]]:
    """A volume of demo."""
    name = f"listing-{uuid.uuid4().hex[:8]}"
    made = cloud_env.call(
        DEMO, "volumev3", "POST", "/volumes", json={"volume": {"name": name, "size": 1}}
    )["volume"]
    yield made
    cloud_env.call(DEMO, "volumev3", "DELETE", f"/volumes/{made['id']}", raise_exc=False)


@pytest.fixture(scope="module")
def port(cloud_env: CloudEnv) -> Iterator[dict[str, Any]]:
    """A port of demo on its private network."""
    (network,) = cloud_env.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    body = {"name": f"listing-{uuid.uuid4().hex[:8]}", "network_id": network["id"]}
    made = cloud_env.call(DEMO, "network", "POST", "/v2.0/ports", json={"port": body})["port"]
    yield made
    cloud_env.call(DEMO, "network", "DELETE", f"/v2.0/ports/{made['id']}")


def listed(client: TestClient, path: str) -> Any:
    answer = client.get(f"{E}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_volumes(demo: TestClient, admin: TestClient, volume: dict[str, Any]) -> None:
    for query in (
        f"name={volume['name']}",
        f"uuid={volume['id']}&uuid=gone",
        f"name={volume['name']}&multiattach=false&bootable=false",
        f"name={volume['name']}&sort_keys=name&sort_keys=created_at&sort_dirs=desc&limit=5",
    ):
        found = listed(demo, f"volumes?{query}")
        assert found["count"] == 1, query
        assert [row["id"] for row in found["volumes"]] == [volume["id"]], query
        assert found["volumes"][0]["name"] == volume["name"]
    assert listed(demo, f"volumes?name={volume['name']}&multiattach=true")["count"] == 0
    found = listed(admin, f"volumes?all_projects=true&uuid={volume['id']}")
    assert found["volumes"][0]["project_name"] == DEMO.project


def test_volumes_of_others_by_id(cloud_env: CloudEnv, url: str, volume: dict[str, Any]) -> None:
    alt = log_in(build(cloud_env, url), "alt_demo")
    assert listed(alt, f"volumes?uuid={volume['id']}") == {"count": 0, "volumes": []}
    alt.app.state.parts.db.dispose()  # type: ignore[attr-defined]


def test_ports(demo: TestClient, port: dict[str, Any]) -> None:
    query = f"ports?uuid={port['id']}&network_name=private&network_id={port['network_id']}"
    (row,) = listed(demo, f"{query}&device_owner=&limit=9&sort_keys=name")["ports"]
    assert row["network_name"] == "private"
    assert row["ipv4"] == [port["fixed_ips"][0]["ip_address"]]
    assert row["origin_data"]["admin_state"] == "UP"
    assert listed(demo, "ports?network_name=nobody") == {"ports": []}


def test_servers_and_services(demo: TestClient, admin: TestClient) -> None:
    with count_calls() as calls:
        listed(demo, "servers?limit=5&sort_keys=display_name&sort_dirs=asc")
    assert calls.total <= 3
    assert calls.by_service["identity"] == 0
    found = listed(admin, "servers?all_projects=true&limit=5")["servers"]
    assert all(row["project_name"] for row in found)
    assert listed(demo, f"servers?uuid={uuid.uuid4()}") == {"servers": []}
    assert isinstance(listed(demo, "recycle_servers")["recycle_servers"], list)
    services = listed(admin, "compute-services?binary=nova-compute")["services"]
    assert {row["binary"] for row in services} == {"nova-compute"}
    assert demo.get(f"{E}/compute-services").status_code == 403


def test_mistakes_are_told(demo: TestClient) -> None:
    for listing in ("servers", "volumes", "volume_snapshots", "ports"):
        answer = demo.get(f"{E}/{listing}?marker={uuid.uuid4()}&limit=2")
        assert answer.status_code == 400, listing
        assert demo.get(f"{E}/{listing}?limit={10**20}").status_code == 200, listing


def test_switch_of_the_project(cloud_env: CloudEnv, url: str) -> None:
    client = log_in(build(cloud_env, url), ADMIN.name)
    profile = client.get("/api/v1/profile").json()
    # One that stays: other tests' projects come and go.
    other = next(key for key, row in profile["projects"].items() if row["name"] == DEMO.project)
    assert other != profile["project"]["id"]
    body = client.post(f"/api/v1/switch_project/{other}").json()
    assert body["project"]["id"] == other
    assert client.get("/api/v1/profile").json()["uuid"] == body["uuid"]
    assert client.post("/api/v1/switch_project/nope").status_code == 401
    assert client.post(f"/api/v1/switch_region/{cloud_env.region}").status_code == 200
    client.app.state.parts.db.dispose()  # type: ignore[attr-defined]


def test_single_sign_on_form(cloud_env: CloudEnv, url: str) -> None:
    client = build(cloud_env, url)
    token = cloud_env.session(DEMO).get_token()
    answer = client.post("/api/v1/websso", data={"token": token})
    assert (answer.status_code, answer.headers["location"]) == (302, "/base/overview")
    assert client.get("/api/v1/profile").json()["user"]["name"] == DEMO.name
    client.app.state.parts.db.dispose()  # type: ignore[attr-defined]


def test_settings_on_each_database(
    cloud_env: CloudEnv, db_url: str, migrated: Callable[[str, str], object]
) -> None:
    migrated(db_url, "console")
    client = log_in(build(cloud_env, db_url), ADMIN.name)
    for value in ([{"a": "ü€😀"}], None, "\u0000"):
        body = {"key": "gpu_models", "value": value}
        assert client.put("/api/v1/setting", json=body).status_code == 200
        assert client.get("/api/v1/setting/gpu_models").json()["value"] == value
    assert client.delete("/api/v1/setting/gpu_models").json()["value"] == ["nvidia_t4"]
    client.app.state.parts.db.dispose()  # type: ignore[attr-defined]
