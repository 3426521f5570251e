"""The Magnum API against the sandbox cloud: its checks, its costs, and parts that are away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.support.cloud import ADMIN, ALT, DEMO, READER, CloudEnv, Person
from tests.support.magnum_daemons import LATEST, image, write_conf
from trimaran.config import magnum as options
from trimaran.magnum.api import app

URL = "/v1/clustertemplates"


@pytest.fixture(scope="module", autouse=True)
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The sandbox's drivers are offered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGNUM_SANDBOX_DIR", str(tmp_path_factory.mktemp("driver")))
        yield


@pytest.fixture(scope="module")
def distro(cloud_env: CloudEnv) -> Iterator[str]:
    with image(cloud_env) as name:
        yield name


class Api:
    """The application in this process, with tokens of the sandbox."""

    def __init__(self, client: TestClient, cloud: CloudEnv) -> None:
        self.client = client
        self.cloud = cloud
        self.tokens: dict[str, str] = {}

    def call(self, method: str, path: str, who: Person = DEMO, **kwargs: Any) -> Any:
        if who.name not in self.tokens:
            self.tokens[who.name] = str(self.cloud.session(who).get_token())
        headers = {"X-Auth-Token": self.tokens[who.name], **LATEST}
        return self.client.request(method, path, headers=headers, **kwargs)


def make(
    folder: Path, cloud: CloudEnv, database: str, transport: str = "fake://", **settings: Any
) -> Any:
    conf = options.load([str(write_conf(folder, cloud, database, transport, 9511, **settings))])
    return TestClient(app.build(conf), base_url="http://magnum.test")


@pytest.fixture
def database(tmp_path: Path, migrated: Callable[..., str]) -> str:
    return migrated(f"sqlite:///{tmp_path}/magnum.sqlite", "magnum")


@pytest.fixture
def api(tmp_path: Path, cloud_env: CloudEnv, database: str) -> Iterator[Api]:
    with make(tmp_path, cloud_env, database) as client:
        yield Api(client, cloud_env)


def template(distro: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": "ct",
        "coe": "kubernetes",
        "image_id": distro,
        "flavor_id": "m1.small",
        "master_flavor_id": "m1.small",
        "external_network_id": "public",
        **fields,
    }


def detail(answer: Any) -> str:
    return str(answer.json()["errors"][0]["detail"])


def test_templates(api: Api, distro: str) -> None:
    answer = api.call("POST", URL, json=template(distro, fixed_network="private"))
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert (body["cluster_distro"], body["driver"]) == ("ubuntu", "sandbox_ubuntu")
    assert api.call("GET", f"{URL}/ct", READER).status_code == 200
    assert api.call("GET", f"{URL}/ct", ALT).status_code == 404
    assert api.call("GET", f"{URL}/ct", ADMIN).status_code == 200
    assert api.call("POST", URL, READER, json=template(distro)).status_code == 403
    assert api.call("DELETE", f"{URL}/ct").status_code == 204


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"image_id": "nope"}, 400, "Image nope could not be found."),
        ({"flavor_id": "nope"}, 400, "Unable to find flavor nope."),
        ({"external_network_id": "private"}, 400, "Unable to find external network private."),
        ({"fixed_network": "nope"}, 400, "Unable to find fixed network nope."),
        ({"fixed_subnet": "nope"}, 400, "Unable to find fixed subnet nope."),
    ],
)
def test_what_the_cloud_does_not_have(
    api: Api, distro: str, fields: dict[str, Any], status: int, text: str
) -> None:
    answer = api.call("POST", URL, json=template(distro, **fields))
    assert (answer.status_code, detail(answer)) == (status, text)


def test_keypair_and_networks_by_id(api: Api, distro: str, cloud_env: CloudEnv) -> None:
    networks = cloud_env.call(DEMO, "network", "GET", "/v2.0/networks")["networks"]
    public = next(row["id"] for row in networks if row["router:external"])
    answer = api.call("POST", URL, json=template(distro, external_network_id=public))
    assert answer.status_code == 201
    body = {"cluster_template_id": "ct", "keypair": "nope"}
    answer = api.call("POST", "/v1/clusters", json=body)
    assert (answer.status_code, detail(answer)) == (404, "Unable to find keypair nope.")


def test_keystone_is_asked_for_a_token_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert api.call("GET", "/v1/clusters").status_code == 200

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("Keystone was asked again")

    monkeypatch.setattr(type(api.client.app.state.parts.identity), "_ask", refused)
    for path in ("/v1/clusters", "/v1/clusters/detail", URL, "/v1/stats"):
        assert api.call("GET", path).status_code == 200


def test_wrong_token(api: Api) -> None:
    answer = api.client.get("/v1/clusters", headers={"X-Auth-Token": "gAAAAABnope"})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == 401


def test_a_create_does_not_wait_for_the_broker(
    tmp_path: Path, cloud_env: CloudEnv, database: str, distro: str
) -> None:
    nowhere = "rabbit://guest:guest@127.0.0.1:1/"
    with make(tmp_path, cloud_env, database, nowhere) as client:
        api = Api(client, cloud_env)
        assert api.call("POST", URL, json=template(distro)).status_code == 201
        started = time.monotonic()
        answer = api.call("POST", "/v1/clusters", json={"cluster_template_id": "ct"})
        assert answer.status_code == 202
        # Half of the time that one waits for the answer to a call.
        assert time.monotonic() - started < 30
        shown = api.call("GET", f"/v1/clusters/{answer.json()['uuid']}").json()
        assert shown["status"] == "CREATE_IN_PROGRESS"
        health = client.get("/healthcheck?detailed").json()
        assert health["checks"]["broker"]["status"] == "unavailable"
        assert health["checks"]["database"]["status"] == "ok"
        assert client.get("/healthcheck").status_code == 200


def test_database_away(tmp_path: Path, cloud_env: CloudEnv) -> None:
    url = "mysql+pymysql://root@127.0.0.1:1/magnum"
    with make(tmp_path, cloud_env, url) as client:
        api = Api(client, cloud_env)
        answer = api.call("GET", "/v1/clusters")
        assert answer.status_code == 503
        assert "127.0.0.1" not in answer.text
        assert client.get("/").status_code == 200


def test_keystone_away(tmp_path: Path, cloud_env: CloudEnv, database: str) -> None:
    away = "http://127.0.0.1:1/v3"
    with make(tmp_path, cloud_env, database, keystone_authtoken__auth_url=away) as client:
        api = Api(client, cloud_env)
        answer = api.call("GET", "/v1/clusters")
        assert answer.status_code == 503
        assert client.get("/healthcheck?detailed").json()["checks"]["identity"]["status"] == (
            "unavailable"
        )
