"""A whole sandbox, beside any other one: made over a killed start, repaired, taken down.

It has a base port and a state directory of its own, and shares at most the machine's
MariaDB and RabbitMQ, which it must leave alone.  The tests run in the order of the file
and build on each other, because a cloud takes half a minute to start.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import stat
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from trimaran.sandbox import amqp, mariadb
from trimaran.sandbox.proc import Proc
from trimaran.sandbox.settings import APIS, SERVER_OFFSETS, Settings


def free_base_port() -> int:
    """A base port with nobody on it or its neighbours: another run may be under way."""
    proc = Proc()
    offsets = [api.offset for api in APIS.values()] + list(SERVER_OFFSETS.values())
    for base in range(21000, 31000, 1000):
        if not any(proc.listening(base + offset) for offset in offsets):
            return base
    raise AssertionError("no base port is free")


def eventually(test: Callable[[], object]) -> None:
    """Waits for what a busy machine does late: an API that takes its time is no dead one."""
    end = time.monotonic() + PATIENCE
    while not test():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.2)


PATIENCE = 120.0
BASE = free_base_port()
COMMAND = [sys.executable, "-m", "trimaran.sandbox"]
pytestmark = [pytest.mark.mariadb, pytest.mark.rabbitmq]


class Sandbox:
    """The sandbox under test, by its command line."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.proc = Proc()

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *words, "--state", str(self.state)],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done

    def up(self) -> str:
        return self.run("up", "--base-port", str(BASE)).stderr

    def status(self) -> dict[str, dict[str, Any]]:
        done = self.run("status", "--json", check=False)
        lines = {line["name"]: line for line in json.loads(done.stdout)}
        assert done.returncode == (0 if all(line["up"] for line in lines.values()) else 1)
        return lines

    def all_up(self) -> bool:
        return all(line["up"] for line in self.status().values())

    def pids(self) -> dict[str, int]:
        groups = self.proc.groups(self.state / "log")
        return {name: group.leader for name, group in groups.items()}

    @property
    def description(self) -> dict[str, Any]:
        return dict(json.loads((self.state / "sandbox.json").read_text()))

    def token(self, user: str, project: str) -> requests.Response:
        domain = {"id": "default"}
        who = {"name": user, "domain": domain, "password": "password"}
        identity = {"methods": ["password"], "password": {"user": who}}
        scope = {"project": {"name": project, "domain": domain}}
        body = {"auth": {"identity": identity, "scope": scope}}
        return requests.post(
            f"{self.description['auth_url']}/auth/tokens", json=body, timeout=PATIENCE
        )

    def get(self, service: str, path: str, token: str) -> Any:
        url = self.description["urls"][service] + path
        answer = requests.get(url, headers={"X-Auth-Token": token}, timeout=PATIENCE)
        assert answer.ok, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox whose first ``up`` was killed in the middle of making the databases."""
    state = tmp_path_factory.mktemp("cloud").resolve() / "state"
    made = Sandbox(state)
    first = subprocess.Popen(
        [*COMMAND, "up", "--base-port", str(BASE), "--state", str(state)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert first.stderr is not None
    for line in first.stderr:
        if "database of" in line:
            break
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stderr.close()
    try:
        made.up()
        yield made
    finally:
        made.run("reset", check=False)


def test_everything_is_up_after_a_killed_start(sandbox: Sandbox) -> None:
    eventually(sandbox.all_up)
    lines = sandbox.status()
    assert lines["nova-compute"]["memory"] > 20 * 2**20
    assert lines["keystone-api"]["since"] <= time.strftime("%Y-%m-%d %H:%M:%S")
    for name in ("sandbox.json", "clouds.yaml", "openrc.demo", "etc/nova/nova.conf"):
        assert stat.S_IMODE((sandbox.state / name).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("user", "project", "roles"),
    [
        ("demo", "demo", {"member", "reader", "creator"}),
        ("demo_manager", "demo", {"manager", "member", "reader"}),
        ("demo_reader", "demo", {"reader"}),
        ("alt_demo", "alt_demo", {"member", "reader", "creator"}),
        ("alt_demo_manager", "alt_demo", {"manager", "member", "reader"}),
        ("alt_demo_reader", "alt_demo", {"reader"}),
        ("skyline", "service", {"admin", "manager", "member", "reader", "service"}),
        ("ec2api", "service", {"admin", "manager", "member", "reader", "service"}),
        ("magnum", "service", {"admin", "manager", "member", "reader", "service"}),
    ],
)
def test_who_is_there(sandbox: Sandbox, user: str, project: str, roles: set[str]) -> None:
    answer = sandbox.token(user, project)

    assert answer.status_code == 201
    assert {role["name"] for role in answer.json()["token"]["roles"]} == roles


def test_who_may_not_log_in(sandbox: Sandbox) -> None:
    assert sandbox.token("demo_disabled", "demo").status_code == 401
    assert sandbox.token("demo_lost", "demo").status_code == 401


def test_the_catalog_names_our_services(sandbox: Sandbox) -> None:
    catalog = sandbox.token("demo", "demo").json()["token"]["catalog"]
    urls = {
        entry["type"]: {point["url"] for point in entry["endpoints"]}
        for entry in catalog
        if entry["type"] in ("panel", "ec2", "container-infra")
    }

    assert urls == {
        "panel": {"http://127.0.0.1:9998"},
        "ec2": {"http://127.0.0.1:8788/"},
        "container-infra": {"http://127.0.0.1:9511/v1"},
    }


def test_keystone_accepts_the_ec2_keys(sandbox: Sandbox) -> None:
    service = sandbox.token("ec2api", "service").headers["X-Subject-Token"]
    for user in ("demo", "alt_demo"):
        keys = sandbox.description["ec2"][user]
        params = {
            "AWSAccessKeyId": keys["access"],
            "Action": "DescribeInstances",
            "SignatureMethod": "HmacSHA256",
            "SignatureVersion": "2",
        }
        query = "&".join(f"{key}={params[key]}" for key in sorted(params))
        text = f"GET\nec2.test\n/\n{query}".encode()
        signature = b64encode(hmac.digest(keys["secret"].encode(), text, hashlib.sha256)).decode()
        request = {"access": keys["access"], "host": "ec2.test", "verb": "GET", "path": "/"}
        answer = requests.post(
            f"{sandbox.description['auth_url']}/ec2tokens",
            json={"credentials": request | {"params": params, "signature": signature}},
            headers={"X-Auth-Token": service},
            timeout=PATIENCE,
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["token"]["project"]["id"] == keys["project_id"]


def test_images_flavors_and_networks(sandbox: Sandbox) -> None:
    described = sandbox.description
    token = sandbox.token("demo", "demo").headers["X-Subject-Token"]
    images = {
        image["name"]: image for image in sandbox.get("glance", "/v2/images", token)["images"]
    }
    networks = {
        network["name"]: network
        for network in sandbox.get("neutron", "/v2.0/networks", token)["networks"]
    }
    routers = sandbox.get("neutron", "/v2.0/routers", token)["routers"]

    assert {name: image["id"] for name, image in images.items()} == described["images"]
    assert all(image["status"] == "active" for image in images.values())
    assert {"ubuntu", "fedora-coreos"} <= {image["os_distro"] for image in images.values()}
    other = images["debian-12-of-alt"]
    assert (other["visibility"], other["owner"]) == ("public", described["projects"]["alt_demo"])
    mapping = json.loads(images["demo-ebs"]["block_device_mapping"])[0]
    assert images["demo-ebs"]["root_device_name"] == "/dev/vda"
    assert mapping["snapshot_id"] == described["ebs"]["snapshot"]
    assert networks["public"]["router:external"]
    # the other project's network is not to be seen
    assert networks.keys() == {"public", "private"}
    assert routers[0]["external_gateway_info"]["network_id"] == described["networks"]["public"]
    flavors = sandbox.get("nova", "/v2.1/flavors", token)["flavors"]
    assert {flavor["name"]: flavor["id"] for flavor in flavors} == described["flavors"]


def test_a_server_boots_from_the_volume_image(sandbox: Sandbox) -> None:
    described = sandbox.description
    token = sandbox.token("demo", "demo").headers["X-Subject-Token"]
    headers = {"X-Auth-Token": token, "OpenStack-API-Version": "compute 2.67"}
    servers = f"{described['urls']['nova']}/v2.1/servers"
    body = {
        "name": "from-snapshot",
        "imageRef": described["images"]["demo-ebs"],
        "flavorRef": described["flavors"]["m1.tiny"],
        "networks": [{"uuid": described["networks"]["private"]}],
    }
    made = requests.post(servers, json={"server": body}, headers=headers, timeout=PATIENCE)
    assert made.status_code == 202, made.text
    url = f"{servers}/{made.json()['server']['id']}"
    end = time.monotonic() + 2 * PATIENCE
    status = "BUILD"
    while status == "BUILD" and time.monotonic() < end:
        time.sleep(0.5)
        server = requests.get(url, headers=headers, timeout=PATIENCE).json()["server"]
        status = server["status"]
    assert status == "ACTIVE", server
    assert len(server["os-extended-volumes:volumes_attached"]) == 1
    assert requests.delete(url, headers=headers, timeout=PATIENCE).status_code == 204


def test_a_second_up_changes_nothing(sandbox: Sandbox) -> None:
    pids, described = sandbox.pids(), sandbox.description

    sandbox.up()

    assert sandbox.pids() == pids
    assert sandbox.description == described


def test_up_repairs_what_was_killed_and_nothing_else(sandbox: Sandbox) -> None:
    before = sandbox.pids()
    killed = ["nova-compute", "glance-api", "cinder-volume"]
    for name in killed:
        os.kill(before[name], signal.SIGKILL)
    eventually(lambda: not sandbox.pids().keys() & set(killed))
    lines = sandbox.status()
    assert not any(lines[name]["up"] for name in killed)
    gone = [name for name, line in lines.items() if line["note"] == "does not run"]
    assert sorted(gone) == sorted(killed)
    # a password that somebody changed, an endpoint that somebody bent
    token = sandbox.token("admin", "admin").headers["X-Subject-Token"]
    user = sandbox.description["users"]["demo"]["id"]
    requests.patch(
        f"{sandbox.description['auth_url']}/users/{user}",
        json={"user": {"password": "changed"}},
        headers={"X-Auth-Token": token},
        timeout=PATIENCE,
    ).raise_for_status()
    assert sandbox.token("demo", "demo").status_code == 401

    sandbox.up()

    after = sandbox.pids()
    assert {name for name, pid in after.items() if before[name] != pid} == set(killed)
    eventually(sandbox.all_up)
    assert sandbox.token("demo", "demo").status_code == 201


def test_up_restarts_an_api_that_hangs(sandbox: Sandbox) -> None:
    before = sandbox.pids()
    os.kill(before["placement-api"], signal.SIGSTOP)

    said = sandbox.up()

    assert "placement-api runs but does not answer" in said
    after = sandbox.pids()
    assert [name for name, pid in after.items() if before[name] != pid] == ["placement-api"]


def test_another_state_with_these_ports_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    done = Sandbox(tmp_path.resolve() / "other").run("up", "--base-port", str(BASE), check=False)

    assert done.returncode == 1
    assert f"Port {BASE} (for keystone) is taken by process" in done.stderr
    assert "--base-port" in done.stderr
    assert "Traceback" not in done.stderr


def test_down_leaves_no_process_and_no_port(sandbox: Sandbox) -> None:
    settings = Settings.load(sandbox.state)
    said = sandbox.run("down").stderr

    assert "keystone-api" in said
    assert sandbox.pids() == {}
    offsets = [api.offset for api in APIS.values()] + list(SERVER_OFFSETS.values())
    assert [o for o in offsets if sandbox.proc.listening(BASE + o)] == []
    assert not any(line["up"] for name, line in sandbox.status().items() if line["pid"])
    # what was only borrowed goes on
    if not settings.mysql_own:
        assert mariadb.answers(settings.mysql_port)
    if not settings.amqp_own:
        assert amqp.opens(settings.amqp_port, settings.amqp_vhost)
    assert "nothing ran" in sandbox.run("down").stderr


def test_reset_forgets_also_in_the_shared_servers(sandbox: Sandbox) -> None:
    settings = Settings.load(sandbox.state)

    sandbox.run("reset")

    assert {entry.name for entry in sandbox.state.iterdir()} <= {".lock"}
    if not settings.mysql_own:
        with mariadb.connect(settings.mysql_port) as cursor:
            cursor.execute("SHOW DATABASES LIKE %s", [f"sbx{BASE}%{settings.ident}%"])
            assert cursor.fetchall() == ()
    if not settings.amqp_own:
        assert not amqp.opens(settings.amqp_port, settings.amqp_vhost)
