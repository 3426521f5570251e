"""One migrated Magnum database of each kind for a whole module of tests, emptied between them.

Making and migrating a database takes longer than most tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tests.conftest import _database
from tests.support.databases import KINDS
from trimaran.db import migrate, urls


@pytest.fixture(scope="module", params=KINDS)
def shared_magnum_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The database of each kind."""
    yield from _migrated(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def shared_magnum_mariadb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The one on MariaDB."""
    yield from _migrated("mariadb", tmp_path_factory)


def _migrated(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    for url in _database(kind, tmp_path_factory.mktemp("shared")):
        migrate.upgrade(url, "magnum")
        yield url


@pytest.fixture
def magnum_url(shared_magnum_url: str) -> str:
    """A migrated database of each kind, without a row."""
    return emptied(shared_magnum_url)


@pytest.fixture
def magnum_mariadb_url(shared_magnum_mariadb_url: str) -> str:
    """A migrated MariaDB database, without a row."""
    return emptied(shared_magnum_mariadb_url)


def emptied(url: str) -> str:
    """Deletes all rows."""
    engine = sa.create_engine(urls.parse(url), poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        for table in sa.inspect(connection).get_table_names():
            if not table.endswith("version"):
                connection.execute(sa.text(f"DELETE FROM {table}"))
    return url
