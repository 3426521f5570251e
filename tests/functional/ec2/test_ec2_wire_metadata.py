"""The metadata service of a running daemon, for a real server that nobody has described."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.cloud import ALT, DEMO, CloudEnv
from tests.support.ec2 import Daemon, free_port, keys_of, running, write_conf

SECRET = "s3cret"
USER_DATA = b"\x1f\x8b\x00binary\xff"


@pytest.fixture(scope="module")
def server(cloud_env: CloudEnv) -> Iterator[dict[str, Any]]:
    """An ACTIVE server of the demo project, made by Nova directly, with a key and user data."""
    name = f"metadata-{uuid.uuid4().hex[:8]}"
    key = cloud_env.call(DEMO, "compute", "POST", "/os-keypairs", json={"keypair": {"name": name}})
    images = cloud_env.call(DEMO, "image", "GET", "/v2/images")["images"]
    flavors = cloud_env.call(DEMO, "compute", "GET", "/flavors")["flavors"]
    networks = cloud_env.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    body = {
        "name": name,
        "imageRef": images[0]["id"],
        "flavorRef": next(row["id"] for row in flavors if row["name"] == "m1.tiny"),
        "networks": [{"uuid": networks[0]["id"]}],
        "key_name": name,
        "user_data": base64.b64encode(USER_DATA).decode(),
    }
    made = cloud_env.call(DEMO, "compute", "POST", "/servers", json={"server": body})["server"]
    try:
        deadline = time.monotonic() + 180
        while True:
            row = cloud_env.call(DEMO, "compute", "GET", f"/servers/{made['id']}")["server"]
            if row["status"] == "ACTIVE":
                break
            assert row["status"] == "BUILD", row
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield {**row, "public_key": key["keypair"]["public_key"]}
    finally:
        cloud_env.call(DEMO, "compute", "DELETE", f"/servers/{made['id']}")
        cloud_env.call(DEMO, "compute", "DELETE", f"/os-keypairs/{name}")


@pytest.fixture(scope="module")
def conf(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    from trimaran.db import migrate

    home = tmp_path_factory.mktemp("metadata")
    database = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(database, "ec2")
    ports = free_port(), free_port()
    path = write_conf(
        home,
        cloud_env,
        database,
        ec2api_listen_port=ports[0],
        metadata_listen_port=ports[1],
    )
    return path, *ports


@pytest.fixture(scope="module")
def daemon(conf: tuple[Path, int, int]) -> Iterator[Daemon]:
    with running("ec2-metadata", conf[0], conf[2]) as started:
        yield started


Get = Callable[..., requests.Response]


@pytest.fixture
def get(daemon: Daemon, cloud_env: CloudEnv, server: dict[str, Any]) -> Get:
    """Asks as Neutron's agent does for this server; ``changed`` replaces headers."""
    project = cloud_env.session(DEMO).get_project_id()

    def ask(path: str, method: str = "GET", **changed: str | None) -> requests.Response:
        server_id = str(changed.pop("server_id", None) or server["id"])
        headers: dict[str, str | None] = {
            "X-Instance-ID": server_id,
            "X-Tenant-ID": project,
            "X-Instance-ID-Signature": hmac.new(
                SECRET.encode(), server_id.encode(), hashlib.sha256
            ).hexdigest(),
            "X-Forwarded-For": "10.0.0.77",
        }
        headers.update({name.replace("_", "-"): value for name, value in changed.items()})
        sent = {name: value for name, value in headers.items() if value is not None}
        return requests.request(method, daemon.url + path, headers=sent, timeout=120)

    return ask


def test_a_guest_learns_what_describe_instances_shows(
    get: Get, conf: tuple[Path, int, int], cloud_env: CloudEnv, server: dict[str, Any]
) -> None:
    meta = "/latest/meta-data"
    instance_id = get(f"{meta}/instance-id").text
    assert instance_id.startswith("i-")
    with running("ec2-api", conf[0], conf[1]) as api:
        shown = api.client(keys_of(cloud_env)).describe_instances(InstanceIds=[instance_id])
    reservation = shown["Reservations"][0]
    instance = reservation["Instances"][0]
    told = {
        "ami-id": instance["ImageId"],
        "instance-type": "m1.tiny",
        "local-ipv4": instance["PrivateIpAddress"],
        "local-hostname": instance["PrivateDnsName"],
        "hostname": instance["PrivateDnsName"],
        "reservation-id": reservation["ReservationId"],
        "placement/availability-zone": "nova",
        "security-groups": "default",
        "public-keys/0/openssh-key": server["public_key"],
        "public-keys/": f"0={server['key_name']}",
    }
    assert {name: get(f"{meta}/{name}").text for name in told} == told


def test_user_data_is_byte_for_byte(get: Get) -> None:
    response = get("/latest/user-data")
    assert response.content == USER_DATA
    assert response.headers["Content-Type"].startswith("text/plain")


def test_cloud_init_can_crawl_everything_that_is_listed(get: Get) -> None:
    def crawl(path: str) -> int:
        listing = get(path)
        assert listing.status_code == 200, path
        count = 0
        for line in listing.text.split("\n") if listing.text else ():
            name = line.split("=")[0] + "/" if "=" in line else line
            response = get(path + name)
            assert response.status_code == 200, path + name
            count += 1 + (crawl(path + name) if name.endswith("/") else 0)
        return count

    assert crawl("/2009-04-04/meta-data/") > 15


def test_versions_need_no_identity(daemon: Daemon) -> None:
    lines = requests.get(daemon.url + "/", timeout=60).text.split("\n")
    assert (lines[0], lines[-1]) == ("1.0", "latest")
    assert requests.get(daemon.url + "/2021-03-23/meta-data", timeout=60).status_code == 404


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"X_Instance_ID_Signature": "0" * 64}, 403),
        ({"X_Instance_ID_Signature": None}, 400),
        ({"X_Tenant_ID": None}, 400),
        ({"X_Forwarded_For": None}, 400),
        ({"server_id": str(uuid.uuid4())}, 404),
        ({"server_id": "../../x"}, 400),
    ],
)
def test_who_may_not_read(get: Get, changed: dict[str, Any], status: int) -> None:
    assert get("/latest/meta-data/instance-id", **changed).status_code == status


def test_a_server_of_another_project_is_not_found(get: Get, cloud_env: CloudEnv) -> None:
    other = cloud_env.session(ALT).get_project_id()
    assert get("/latest/meta-data/instance-id", X_Tenant_ID=other).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/latest/meta-data/ami-id/x",
        "/latest/meta-data/iam/",
        "/latest/nothing",
        "/openstack/latest",
    ],
)
def test_paths_that_are_not_there_are_404(get: Get, path: str) -> None:
    assert get(path).status_code == 404


def test_a_session_token_is_not_offered(get: Get) -> None:
    assert get("/latest/api/token", "PUT").status_code == 404


def test_the_signature_stays_out_of_the_log(get: Get, daemon: Daemon) -> None:
    get("/latest/meta-data/", X_Instance_ID_Signature="0" * 64)
    log = daemon.lines()
    assert SECRET not in log
    assert "Traceback" not in log
