"""One migrated database of each kind for a whole module of tests, emptied between them.

Making and migrating a database takes longer than most tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tests.conftest import _database
from trimaran.db import migrate, urls

#: The tables of the deck and the console.
TABLES = ("work_jobs", "work_leases", "settings", "revoked_token")

KINDS = [
    "sqlite",
    pytest.param("mariadb", marks=pytest.mark.mariadb),
    pytest.param("postgresql", marks=pytest.mark.postgresql),
]


def _shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    for url in _database(request.param, tmp_path_factory.mktemp("shared")):
        migrate.upgrade(url, "console")
        yield url


#: Each kind of database; the fixture's value is a URL.
shared_url = pytest.fixture(scope="module", params=KINDS, name="shared_url")(_shared)
#: Those with a server.
shared_server_url = pytest.fixture(scope="module", params=KINDS[1:], name="shared_server_url")(
    _shared
)


def emptied(url: str) -> str:
    """Deletes all rows; waits for its turn where the test before has still something to write."""
    engine = urls.make_migration_engine(urls.parse(url))
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(sa.text(f"DELETE FROM {table}"))
    return url


@pytest.fixture
def url(shared_url: str) -> str:
    """A migrated database of each kind, without a row."""
    return emptied(shared_url)


@pytest.fixture
def server_url(shared_server_url: str) -> str:
    """A migrated database of each kind that has a server, without a row."""
    return emptied(shared_server_url)
