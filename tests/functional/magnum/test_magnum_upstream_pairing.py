"""An API of magnum 23.0.0 in front of our conductor, as in the middle of a migration.

Needs what `make test` does not start, and is skipped without it:
TRIMARAN_UPSTREAM_MAGNUM names a virtual environment with magnum==23.0.0 and
PyMySQL, TRIMARAN_UPSTREAM_AMQP_URL a vhost of its own (upstream's API does not
let the topic be chosen).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support import magnum_daemons as daemons
from tests.support.cloud import ADMIN, DEMO, CloudEnv, Person
from trimaran.db import migrate

VENV = os.environ.get("TRIMARAN_UPSTREAM_MAGNUM", "")
AMQP = os.environ.get("TRIMARAN_UPSTREAM_AMQP_URL", "")
pytestmark = pytest.mark.skipif(
    not (VENV and AMQP), reason="TRIMARAN_UPSTREAM_MAGNUM or TRIMARAN_UPSTREAM_AMQP_URL is not set"
)

#: what upstream's API wants to know of a driver
DRIVER = """
from magnum.drivers.common import driver

class Ubuntu(driver.Driver):
    provides = [{"server_type": "vm", "os": "ubuntu", "coe": "kubernetes"}]

Ubuntu.__abstractmethods__ = frozenset()
"""
WSGI = """
import sys
port, sys.argv = int(sys.argv[1]), ["magnum-api", "--config-file", sys.argv[2]]
from magnum.wsgi.api import application
from werkzeug.serving import run_simple
run_simple("127.0.0.1", port, application, threaded=True)
"""


@pytest.fixture(params=["wsgi", "binary"])
def magnum(
    request: pytest.FixtureRequest, tmp_path: Path, mariadb_url: str, cloud_env: CloudEnv
) -> Iterator[daemons.Magnum]:
    """Upstream's API (as WSGI application, or as binary with object indirection), our conductor."""
    port = daemons.free_port()
    paste = Path(VENV) / "etc" / "magnum" / "api-paste.ini"
    conf = daemons.write_conf(
        tmp_path,
        cloud_env,
        mariadb_url,
        AMQP,
        port,
        conductor__topic="magnum-conductor",
        certificates__cert_manager_type="x509keypair",
        api__api_paste_config=str(paste),
        drivers__disabled_drivers="sandbox_disabled",
    )
    site = tmp_path / "site"
    info = site / "upstream_driver-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "upstream_driver.py").write_text(DRIVER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: upstream-driver\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[magnum.drivers]\nsandbox_ubuntu = upstream_driver:Ubuntu\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONWARNINGS": "ignore"}
    scripts = Path(VENV) / "bin"
    # Upstream makes the tables, we take them over.
    subprocess.run(
        [scripts / "magnum-db-manage", "--config-file", conf, "upgrade", "head"],
        check=True,
        env=environment,
        capture_output=True,
    )
    migrate.upgrade(mariadb_url, "magnum")
    if request.param == "binary":
        command = [str(scripts / "magnum-api"), "--config-file", str(conf)]
    else:
        command = [str(scripts / "python"), "-c", WSGI, str(port), str(conf)]
    running = daemons.Magnum(f"http://127.0.0.1:{port}/v1", tmp_path, cloud_env, conf)
    log = tmp_path / "upstream.log"
    with log.open("wb") as output:
        upstream = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    running.processes["upstream"], running.logs["upstream"] = upstream, log
    try:
        running.start_daemon("magnum-conductor")
        _wait(running)
        yield running
    finally:
        running.stop()


def _wait(running: daemons.Magnum) -> None:
    deadline = time.monotonic() + 90
    while True:
        with contextlib.suppress(requests.ConnectionError):
            if requests.get(running.url.removesuffix("/v1"), timeout=5).ok:
                return
        running.check()
        assert time.monotonic() < deadline, running.said()
        time.sleep(0.3)


def test_upstreams_api_and_our_conductor(magnum: daemons.Magnum, cloud_env: CloudEnv) -> None:
    def ask(method: str, path: str, status: int, who: Person = DEMO, **more: Any) -> dict[str, Any]:
        answer = magnum.call(method, path, who, **more)
        assert answer.status_code == status, f"{path}: {answer.text}\n{magnum.said()}"
        return dict(answer.json()) if answer.content else {}

    with daemons.image(cloud_env) as image:
        body = {
            "name": "pair",
            "image_id": image,
            "coe": "kubernetes",
            "driver": "sandbox_ubuntu",
            "flavor_id": "m1.tiny",
            "master_flavor_id": "m1.tiny",
            "external_network_id": "public",
            "labels": {"sandbox_polls": "1"},
        }
        template = ask("POST", "/clustertemplates", 201, json=body)["uuid"]
        renamed = [{"op": "replace", "path": "/name", "value": "other"}]
        ask("PATCH", f"/clustertemplates/{template}", 200, json=renamed)
        wanted = {"name": "c", "cluster_template_id": template, "node_count": 2}
        labels = {"sandbox_polls": "1"}
        cluster = ask("POST", "/clusters", 202, json={**wanted, "labels": labels})["uuid"]
        # Upstream's API answers before there is a row.
        until(lambda: magnum.call("GET", f"/clusters/{cluster}").status_code == 200)
        shown = magnum.wait_for(cluster, "CREATE_COMPLETE")
        assert (shown["node_count"], shown["master_count"]) == (2, 1)
        assert [c["uuid"] for c in ask("GET", "/clusters", 200)["clusters"]] == [cluster]
        groups = ask("GET", f"/clusters/{cluster}/nodegroups", 200)["nodegroups"]
        assert [group["name"] for group in groups] == ["default-master", "default-worker"]
        assert "BEGIN CERTIFICATE" in ask("GET", f"/certificates/{cluster}", 200)["pem"]

        more = [{"op": "replace", "path": "/node_count", "value": 3}]
        ask("PATCH", f"/clusters/{cluster}", 202, json=more)
        until(lambda: ask("GET", f"/clusters/{cluster}", 200)["node_count"] == 3)
        magnum.wait_for(cluster, "UPDATE_COMPLETE")
        ask("PATCH", f"/certificates/{cluster}", 400)
        assert ask("GET", "/stats", 200)["nodes"] == 4
        (service,) = ask("GET", "/mservices", 200, ADMIN)["mservices"]
        assert service["state"] == "up"

        ask("DELETE", f"/clusters/{cluster}", 204)
        magnum.wait_for(cluster, "gone")
        ask("DELETE", f"/clustertemplates/{template}", 204)


def until(condition: Callable[[], bool], timeout: float = 60) -> None:
    limit = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.3)
