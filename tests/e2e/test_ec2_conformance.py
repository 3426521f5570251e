"""The conformance rows of the EC2 wire (spec ec2.md 10) against our daemon on a real cloud.

The rows are in ``tests/support/ec2_rows_*``, since ``benchmarks/ec2_conformance.py``
asks upstream the same; rows that are shown elsewhere are named there.  The
database is PostgreSQL, which upstream does not work with.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2_project import fresh_project
from tests.support.ec2_rows import World, every_row
from tests.support.ec2_service import service
from tests.support.ec2_tenant import tenant

#: Those that no other test walks.
ROWS = {number: row for number, row in every_row().items() if not row.also}


@pytest.fixture(scope="module")
def world(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("conformance")
    with (
        tenant(cloud_env) as mine,
        fresh_project(cloud_env) as other,
        service(cloud_env, home, "postgresql") as daemon,
    ):
        made = World(daemon.url, mine, other)
        made.begin()
        yield made


@pytest.mark.parametrize("number", list(ROWS), ids=lambda number: f"row {number}")
def test_row(world: World, number: str) -> None:
    assert ROWS[number].answer(world) in ROWS[number].targets
