"""APIs and conductors of magnum 23.0.0 and ours in pairs, as in the middle of a migration.

Needs what `make test` does not start, and is skipped without it:
TRIMARAN_UPSTREAM_MAGNUM names a virtual environment with magnum==23.0.0 and
PyMySQL, TRIMARAN_UPSTREAM_AMQP_URL a vhost of its own (upstream's API does not
let the topic be chosen).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import magnum_daemons as daemons
from tests.support.cloud import ADMIN, DEMO, CloudEnv, Person
from tests.support.magnum_upstream import Upstream, upstream
from trimaran.db import migrate

VENV = os.environ.get("TRIMARAN_UPSTREAM_MAGNUM", "")
AMQP = os.environ.get("TRIMARAN_UPSTREAM_AMQP_URL", "")
pytestmark = pytest.mark.skipif(
    not (VENV and AMQP), reason="TRIMARAN_UPSTREAM_MAGNUM or TRIMARAN_UPSTREAM_AMQP_URL is not set"
)
POLLS = {"sandbox_polls": "1"}


@pytest.fixture
def deployment(tmp_path: Path, mariadb_url: str, cloud_env: CloudEnv) -> Iterator[Upstream]:
    """Upstream makes the tables, we take them over."""
    with upstream(
        VENV, AMQP, tmp_path, cloud_env, mariadb_url, api__upstream_conductor="true"
    ) as made:
        migrate.upgrade(mariadb_url, "magnum")
        yield made


Ask = Callable[..., dict[str, Any]]


def asking(magnum: daemons.Magnum) -> Ask:
    def ask(method: str, path: str, status: int, who: Person = DEMO, **more: Any) -> dict[str, Any]:
        answer = magnum.call(method, path, who, **more)
        assert answer.status_code == status, f"{path}: {answer.text}\n{magnum.said()}"
        return dict(answer.json()) if answer.content else {}

    return ask


@contextmanager
def template(ask: Ask, cloud: CloudEnv) -> Iterator[str]:
    """A template's UUID."""
    with daemons.image(cloud) as image:
        body = {
            "name": "pair",
            "image_id": image,
            "coe": "kubernetes",
            "driver": "sandbox_ubuntu",
            "flavor_id": "m1.tiny",
            "master_flavor_id": "m1.tiny",
            "external_network_id": "public",
            "labels": POLLS,
        }
        made = ask("POST", "/clustertemplates", 201, json=body)["uuid"]
        renamed = [{"op": "replace", "path": "/name", "value": "other"}]
        ask("PATCH", f"/clustertemplates/{made}", 200, json=renamed)
        yield made
        ask("DELETE", f"/clustertemplates/{made}", 204)


def live(magnum: daemons.Magnum, ask: Ask, template: str) -> None:
    """The life of a cluster, from its creation to its end, by create, show, update and delete."""
    wanted = {"name": "c", "cluster_template_id": template, "node_count": 2}
    cluster = ask("POST", "/clusters", 202, json={**wanted, "labels": POLLS})["uuid"]
    # Where a conductor of upstream's or an API of upstream's is, the row comes after the answer.
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
    assert ask("GET", "/stats", 200)["nodes"] == 4
    (service,) = ask("GET", "/mservices", 200, ADMIN)["mservices"]
    assert service["state"] == "up"

    ask("POST", f"/clusters/{cluster}/nodegroups", 202, json={"name": "more"})
    group = f"/clusters/{cluster}/nodegroups/more"
    until(lambda: magnum.call("GET", group).json().get("status") == "CREATE_COMPLETE")
    magnum.wait_for(cluster, "UPDATE_COMPLETE")

    ask("DELETE", f"/clusters/{cluster}", 204)
    magnum.wait_for(cluster, "gone")


@pytest.mark.parametrize("binary", [False, True], ids=["wsgi", "binary"])
def test_upstreams_api_and_our_conductor(
    deployment: Upstream, cloud_env: CloudEnv, binary: bool
) -> None:
    magnum = deployment.magnum
    magnum.start_daemon("magnum-conductor")
    deployment.start_api(binary=binary)
    ask = asking(magnum)
    with template(ask, cloud_env) as made:
        live(magnum, ask, made)


def test_our_api_and_upstreams_conductor(deployment: Upstream, cloud_env: CloudEnv) -> None:
    magnum = deployment.magnum
    deployment.start_conductor()
    deployment.wait_for_conductor()
    magnum.start_daemon("magnum-api")
    deployment.wait_for_api()
    ask = asking(magnum)
    with template(ask, cloud_env) as made:
        live(magnum, ask, made)


def until(condition: Callable[[], bool], timeout: float = 60) -> None:
    limit = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.3)
