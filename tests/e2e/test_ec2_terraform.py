"""Terraform itself, where it is: all themes at once, from plan to destroy.

What it made is what it wanted (an empty plan), it changes it in place, and
leaves nothing.  ``test_ec2_terraform_replay.py`` shows the same without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, free_port, running, write_conf
from tests.support.ec2_project import Project, fresh_project
from tests.support.terraform import Terraform, themes
from trimaran.db import migrate

pytestmark = pytest.mark.skipif(not Terraform.is_here(), reason="there is no terraform on PATH")


@pytest.fixture
def project(cloud_env: CloudEnv) -> Iterator[Project]:
    with fresh_project(cloud_env) as made:
        yield made


@pytest.fixture
def api(cloud_env: CloudEnv, tmp_path: Path) -> Iterator[Daemon]:
    url = f"sqlite:///{tmp_path}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    conf = write_conf(tmp_path, cloud_env, url, ec2api_listen_port=port)
    with running("ec2-api", conf, port) as daemon:
        yield daemon


def test_terraform_from_plan_to_destroy(api: Daemon, project: Project, tmp_path: Path) -> None:
    home = tmp_path / "terraform"
    home.mkdir()
    terraform = Terraform(home, api.url, project.keys, themes())
    if terraform.init():
        pytest.skip("the AWS provider is not here (TRIMARAN_TERRAFORM_PLUGINS names its directory)")
    api.client(project.keys).describe_vpcs()
    before = project.left()
    terraform.apply(1)
    assert terraform.differences(1) == ""
    terraform.apply(2)
    assert terraform.differences(2) == ""
    terraform.destroy(2)
    assert project.left() == before
