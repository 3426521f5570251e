"""``openstack coe`` against our Magnum on a real cloud, in one process and in two."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import DEMO, CloudEnv
from tests.support.magnum_daemons import Magnum, image, in_catalog, one_process, two_processes

OPENSTACK = Path(sys.executable).with_name("openstack")


@dataclass
class Cli:
    """The command line client of the demo member, in a region that has our Magnum."""

    magnum: Magnum
    region: str

    def run(self, *arguments: str, ok: bool = True) -> str:
        """What a command prints; of a failed one its last line of errors."""
        cloud = self.magnum.cloud
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OS_")},
            "OS_AUTH_URL": cloud.auth_url,
            "OS_USERNAME": DEMO.name,
            "OS_PASSWORD": DEMO.password,
            "OS_PROJECT_NAME": DEMO.project,
            "OS_USER_DOMAIN_NAME": DEMO.domain,
            "OS_PROJECT_DOMAIN_NAME": DEMO.domain,
            "OS_REGION_NAME": self.region,
            "OS_IDENTITY_API_VERSION": "3",
        }
        done = subprocess.run(
            [str(OPENSTACK), "coe", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr + self.magnum.said()
        return done.stdout if ok else done.stderr.strip().splitlines()[-1]

    def json(self, *arguments: str) -> Any:
        """What a command prints with ``-f json``."""
        return json.loads(self.run(*arguments, "-f", "json"))


@pytest.fixture(params=["one process", "two processes"])
def cli(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cloud_env: CloudEnv,
    migrated: Callable[..., str],
) -> Iterator[Cli]:
    with contextlib.ExitStack() as stack:
        if request.param == "one process":
            url = migrated(f"sqlite:///{tmp_path}/magnum.sqlite", "magnum")
            magnum = stack.enter_context(one_process(tmp_path, cloud_env, url))
        else:
            url = migrated(request.getfixturevalue("mariadb_url"), "magnum")
            magnum = stack.enter_context(two_processes(tmp_path, cloud_env, url))
        region = stack.enter_context(in_catalog(cloud_env, magnum.url))
        yield Cli(magnum, region)


@pytest.fixture
def distro(cloud_env: CloudEnv) -> Iterator[str]:
    with image(cloud_env) as name:
        yield name


def test_templates_and_clusters(cli: Cli, distro: str) -> None:
    template = ("cluster", "template")
    flavors = ("--flavor", "m1.tiny", "--master-flavor", "m1.tiny")
    cli.run(
        *template, "create", "k8s", "--coe", "kubernetes", "--image", distro,
        "--external-network", "public", "--dns-nameserver", "8.8.8.8", *flavors,
        "--labels", "a=1",
    )  # fmt: skip
    (listed,) = cli.json(*template, "list")
    assert listed["name"] == "k8s"
    shown = cli.json(*template, "show", "k8s")
    assert (shown["uuid"], shown["cluster_distro"]) == (listed["uuid"], "ubuntu")
    assert shown["labels"] == {"a": "1"}
    cli.run(*template, "update", "k8s", "--tag", "x")
    assert cli.json(*template, "show", "k8s")["tags"] == "x"

    said = cli.run("cluster", "create", "c1", "--cluster-template", "k8s", "--node-count", "1")
    assert said.startswith("Request to create cluster ")
    ident = said.split()[4]
    cli.magnum.wait_for(ident, "CREATE_COMPLETE")
    cluster = cli.json("cluster", "show", "c1")
    assert (cluster["uuid"], cluster["status"]) == (ident, "CREATE_COMPLETE")
    assert (cluster["node_count"], cluster["master_count"]) == (1, 1)
    (listed,) = cli.json("cluster", "list")
    assert (listed["uuid"], listed["status"]) == (ident, "CREATE_COMPLETE")
    groups = cli.json("nodegroup", "list", "c1")
    assert {group["name"] for group in groups} == {"default-master", "default-worker"}

    cli.run("cluster", "delete", "c1")
    cli.magnum.wait_for(ident, "gone")
    assert cli.json("cluster", "list") == []
    cli.run(*template, "delete", "k8s")
    assert cli.json(*template, "list") == []


# Errors are the API's alone: once is enough.
@pytest.mark.parametrize("cli", ["one process"], indirect=True)
def test_errors_are_readable(cli: Cli, distro: str) -> None:
    said = cli.run("cluster", "create", "c1", "--cluster-template", "nope", ok=False)
    assert "ClusterTemplate nope could not be found" in said
    said = cli.run(
        "cluster", "template", "create", "x", "--coe", "kubernetes", "--image", distro,
        "--external-network", "nope", ok=False,
    )  # fmt: skip
    assert "Unable to find external network nope" in said
    said = cli.run("cluster", "show", "nope", ok=False)
    assert "Cluster nope could not be found" in said
    assert "doesn't allow magnum-service:get_all" in cli.run("service", "list", ok=False)
