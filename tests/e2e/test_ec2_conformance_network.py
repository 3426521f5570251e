"""The conformance rows of networks (spec ec2.md 10) against our daemon on a real cloud.

The rows are in ``tests/support/ec2_rows_network.py``, in order: they build a
topology and take it down again, so one that fails may take later ones with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2_project import fresh_project
from tests.support.ec2_rows_network import NETWORK, Network
from tests.support.ec2_service import service
from tests.support.ec2_tenant import tenant


@pytest.fixture(scope="module")
def world(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    home = tmp_path_factory.mktemp("conformance-network")
    with (
        tenant(cloud_env) as mine,
        fresh_project(cloud_env) as other,
        # Two processes, since one row is about that.
        service(cloud_env, home, ec2api_workers=2) as daemon,
    ):
        yield Network(daemon.url, mine, other)


@pytest.mark.parametrize("number", list(NETWORK), ids=lambda number: f"row {number}")
def test_row(world: Network, number: str) -> None:
    assert NETWORK[number].answer(world) in NETWORK[number].targets
