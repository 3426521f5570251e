"""Fixtures that all tests share.

Unit tests open no socket; functional and end-to-end tests run against real
parts and fail, rather than skip, when a part is missing: ``make test`` starts
every part.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_socket
import sqlalchemy
from xdist.scheduler import LoadScopeScheduling

from tests.support.cloud import CloudEnv
from tests.support.ports import free_port
from tests.support.servers import AMQP_URL, MYSQL_URL, POSTGRESQL_URL, STATE

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the servers that they ask for."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and "db_url" in getattr(item, "fixturenames", ()):
            kind = callspec.params.get("db_url")
            if kind in ("mariadb", "postgresql"):
                item.add_marker(kind)
        if "cloud_env" in getattr(item, "fixturenames", ()):
            item.add_marker("cloud")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why a test was run once more: that it passed then explains nothing."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"first run of {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Files run side by side, but for those that work in the cloud.

    These run one after another, since they share its quotas: EC2's in one lane,
    and in another those of the rest, which ask for little.
    """
    return Lanes(config, log)


class Lanes(LoadScopeScheduling):
    """What must not run at the same time goes to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return _lane(nodeid.partition("::")[0])


@cache
def _lane(file: str) -> str:
    if "CloudEnv" not in (HERE.parent / file).read_text():
        return file
    return "ec2" if "/test_ec2_" in file else "cloud"


@pytest.fixture(autouse=True)
def _no_sockets_in_unit_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    if HERE / "unit" in request.path.parents:
        # Unix sockets stay: asyncio's event loop makes a pair for itself.
        pytest_socket.disable_socket(allow_unix_socket=True)
        yield
        pytest_socket.enable_socket()
    else:
        yield


@pytest.fixture(autouse=True)
def _machine_has_no_say(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit tests do not depend on what the machine's environment says of certificates."""
    if HERE / "unit" in request.path.parents:
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)


def _server_database(admin_url: str, admin_options: dict[str, str]) -> Iterator[str]:
    name = f"trimaran_test_{uuid.uuid4().hex[:12]}"
    engine = sqlalchemy.create_engine(admin_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} {admin_options['create']}"))
    try:
        url = sqlalchemy.make_url(admin_url).set(database=name)
        yield url.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(
                sqlalchemy.text(f"DROP DATABASE IF EXISTS {name} {admin_options['drop']}")
            )
        engine.dispose()


def _database(kind: str, tmp_path: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/test.sqlite"
    elif kind == "mariadb":
        yield from _server_database(MYSQL_URL, {"create": "CHARACTER SET utf8mb4", "drop": ""})
    else:
        # Of the template that nobody connects to, autovacuum neither: it must not be in use.
        options = {"create": "TEMPLATE template0", "drop": "WITH (FORCE)"}
        yield from _server_database(POSTGRESQL_URL, options)


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def db_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty database of each kind that is supported."""
    yield from _database(request.param, tmp_path)


@pytest.fixture
def mariadb_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty MariaDB database."""
    yield from _database("mariadb", tmp_path)


@pytest.fixture(scope="module")
def module_mariadb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a MariaDB database that the tests of a module share."""
    yield from _database("mariadb", tmp_path_factory.getbasetemp())


@pytest.fixture
def postgresql_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database."""
    yield from _database("postgresql", tmp_path)


@pytest.fixture(scope="session")
def amqp_url() -> str:
    """The URL of the broker, as oslo.messaging takes it."""
    return AMQP_URL


@pytest.fixture
def migrated() -> Callable[[str, str], str]:
    """A function (url, hull) that migrates a database and returns its URL."""
    from trimaran.db import migrate

    def upgrade(url: str, hull: str = "all") -> str:
        migrate.upgrade(url, hull)
        return url

    return upgrade


@pytest.fixture(name="free_port")
def _free_port() -> Callable[[], int]:
    """A function that finds a TCP port nobody listens on."""
    return free_port


@pytest.fixture(scope="session")
def cloud_env() -> CloudEnv:
    """The sandbox cloud; it is started when it is not up."""
    env = CloudEnv(STATE)
    if not env.is_up():
        subprocess.run(
            [sys.executable, "-m", "trimaran.sandbox", "up", "--state", str(STATE)],
            check=True,
            timeout=900,
        )
    return env
