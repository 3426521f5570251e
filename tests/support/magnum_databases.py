"""One migrated Magnum database of each kind for a whole module of tests, emptied between them.

Making and migrating a database takes longer than most tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tests.conftest import _database
from tests.support.databases import KINDS
from trimaran.db import Database, migrate


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
    """Deletes all rows; what a killed process was at may be in the way for a moment."""
    db = Database(url)

    def unit(session: Session) -> None:
        for table in sa.inspect(session.connection()).get_table_names():
            if not table.endswith("version"):
                session.execute(sa.text(f"DELETE FROM {table}"))

    db.write(unit, attempts=20)
    db.dispose()
    return url
