"""What Terraform's AWS provider asks for, resource by resource, repeated without Terraform.

Each ``terraform/<theme>.json`` holds the calls of the provider for create,
read, update and delete of the resources of a theme, with their answers; it is
written by ``python -m tests.support.terraform_record <theme>``.  Every field of
every answer is compared, so whatever the provider reads is.  Afterwards Neutron
has what it had before, and Cinder, Glance and Nova's key pairs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.ports import free_port
from tests.support.terraform import THEMES
from tests.support.terraform_replay import Replay
from trimaran.db import migrate

RECORDS = sorted(THEMES.glob("*.json"))
#: Each of a VPC's and of storage's is made, read, changed where that can be, and deleted.
CORE = {
    "aws_vpc": {"create", "read", "update", "delete"},
    "aws_subnet": {"create", "read", "update", "delete"},
    "aws_internet_gateway": {"create", "read", "update", "delete"},
    "aws_route_table": {"create", "read", "update", "delete"},
    "aws_route": {"create", "read", "delete"},
    "aws_route_table_association": {"create", "read", "delete"},
    "aws_main_route_table_association": {"create", "read", "delete"},
    "aws_vpc_dhcp_options": {"create", "read", "update", "delete"},
    "aws_vpc_dhcp_options_association": {"create", "read", "delete"},
    "aws_network_interface": {"create", "read", "update", "delete"},
    "aws_eip": {"create", "read", "update", "delete"},
    "aws_eip_association": {"create", "read", "delete"},
    "aws_instance": {"create", "read", "update", "delete"},
    "aws_default_vpc": {"create", "read", "update"},
    "aws_default_subnet": {"create", "read", "update"},
    "aws_default_route_table": {"create", "read", "update"},
    "aws_security_group": {"create", "read", "update", "delete"},
    "aws_security_group_rule": {"create", "read", "update", "delete"},
    "aws_vpc_security_group_ingress_rule": {"create", "read", "update", "delete"},
    "aws_vpc_security_group_egress_rule": {"create", "read", "update", "delete"},
    "aws_default_security_group": {"create", "read", "update"},
    "aws_network_acls": {"read"},
    "aws_customer_gateway": {"create", "read", "update", "delete"},
    "aws_vpn_gateway": {"create", "read", "update", "delete"},
    "aws_vpn_gateway_attachment": {"create", "read", "delete"},
    "aws_vpn_gateway_route_propagation": {"create", "read", "delete"},
    "aws_vpn_connection": {"create", "read", "update", "delete"},
    "aws_vpn_connection_route": {"create", "read", "delete"},
    "aws_ebs_volume": {"create", "read", "update", "delete"},
    "aws_volume_attachment": {"create", "read", "delete"},
    "aws_ebs_snapshot": {"create", "read", "update", "delete"},
    "aws_ami": {"create", "read", "update", "delete"},
    "aws_ami_copy": {"create", "read", "update", "delete"},
    "aws_ami_from_instance": {"create", "read", "update", "delete"},
    "aws_key_pair": {"create", "read", "update", "delete"},
}


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def api(
    cloud_env: CloudEnv, mine: Tenant, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    home: Path = tmp_path_factory.mktemp("ec2-terraform-replay")
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    with running("ec2-api", write_conf(home, cloud_env, url, ec2api_listen_port=port), port) as it:
        # What every project has is there before anything is compared.
        it.client(mine.keys).describe_vpcs()
        yield it


@pytest.mark.parametrize("record", RECORDS, ids=[path.stem for path in RECORDS])
def test_the_provider_would_be_content(api: Daemon, mine: Tenant, record: Path) -> None:
    before = mine.left()
    steps = json.loads(record.read_text())
    assert Replay(api.url, mine.keys, steps).run() == len(steps)
    assert mine.left() == before
    until(lambda: not mine.storage())


def test_every_resource_of_the_core_is_on_record() -> None:
    seen: dict[str, set[str]] = {}
    for path in RECORDS:
        for step in json.loads(path.read_text()):
            kind = step["resource"].rpartition(".")[0].rpartition(".")[2]
            seen.setdefault(kind, set()).add(step["phase"])
    for kind, phases in CORE.items():
        assert phases <= seen.get(kind, set()), kind
