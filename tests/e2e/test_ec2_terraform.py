"""Terraform itself, where it is: all themes at once, from plan to destroy.

What it made is what it wanted (an empty plan), it changes it in place, and
leaves nothing.  ``test_ec2_terraform_replay.py`` shows the same without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.ports import free_port
from tests.support.terraform import Terraform, themes
from trimaran.db import migrate

pytestmark = pytest.mark.skipif(not Terraform.is_here(), reason="there is no terraform on PATH")


@pytest.fixture
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture
def api(cloud_env: CloudEnv, tmp_path: Path) -> Iterator[Daemon]:
    url = f"sqlite:///{tmp_path}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    conf = write_conf(tmp_path, cloud_env, url, ec2api_listen_port=port)
    with running("ec2-api", conf, port) as daemon:
        yield daemon


def test_terraform_from_plan_to_destroy(api: Daemon, mine: Tenant, tmp_path: Path) -> None:
    home = tmp_path / "terraform"
    home.mkdir()
    terraform = Terraform(home, api.url, mine.keys, themes())
    if terraform.init():
        pytest.skip("the AWS provider is not here (TRIMARAN_TERRAFORM_PLUGINS names its directory)")
    api.client(mine.keys).describe_vpcs()
    before = mine.left()
    terraform.apply(1)
    assert terraform.differences(1) == ""
    terraform.apply(2)
    assert terraform.differences(2) == ""
    terraform.destroy(2)
    assert mine.left() == before
    until(lambda: not mine.storage())
