"""From the operator's database URL to an engine of one of three kinds.

Operators bring the URLs of their upstream services (``mysql://``,
``mysql+pymysql://…?charset=utf8``, ``postgresql+psycopg2://``); each is mapped
to the one driver that we ship.  Everything that depends on the kind of
database and must be set when a connection opens is here.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import Any

import sqlalchemy
from sqlalchemy import event, exc
from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import NullPool, QueuePool

from trimaran.errors import ConfigError

DRIVERS = {
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "sqlite": "sqlite+pysqlite",
}

#: Seconds to open a connection; a dead host must not hold a request longer.
CONNECT_TIMEOUT = 5
#: Seconds that a statement waits for another transaction's lock.
LOCK_TIMEOUT = 10
#: Seconds that a migration waits for another one.
MIGRATION_PATIENCE = 600
#: Seconds without a byte from a MySQL server before the connection counts as lost.
READ_TIMEOUT = 60
#: Seconds after which an idle connection is replaced (oslo.db connection_recycle_time).
RECYCLE = 3600


def parse(url: str) -> URL:
    """Reads a database URL and maps it to the driver in use.

    Args:
        url: any SQLAlchemy URL of MySQL, MariaDB, PostgreSQL or SQLite; a
            password may be percent-encoded.

    Returns:
        The URL with our driver's name.

    Raises:
        ConfigError: not a URL, another kind of database, or an SQLite file
            whose directory does not exist or cannot be written.
    """
    try:
        parsed = sqlalchemy.make_url(url)
    except (exc.ArgumentError, ValueError):
        # The text is not repeated: it may hold a password.
        raise ConfigError(
            "the database URL cannot be read; it looks like mysql+pymysql://user:password@host/name"
        ) from None
    kind = parsed.drivername.split("+")[0]
    if kind not in DRIVERS:
        raise ConfigError(
            f"the database URL begins with {parsed.drivername!r}; "
            "mysql+pymysql://, postgresql+psycopg:// and sqlite:// are supported"
        )
    parsed = parsed.set(drivername=DRIVERS[kind])
    if kind == "sqlite":
        _check_directory(parsed)
    return parsed


def is_memory(url: URL) -> bool:
    """True for an SQLite database that lives in one connection."""
    return url.get_backend_name() == "sqlite" and (url.database or ":memory:") == ":memory:"


def _check_directory(url: URL) -> None:
    if is_memory(url) or "uri" in url.query:
        return
    path = os.path.abspath(str(url.database))
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise ConfigError(
            f"the SQLite database {path} cannot be opened: the directory {directory} does not exist"
        )
    writable = os.access(directory, os.W_OK | os.X_OK)
    if (
        os.path.isdir(path)
        or not writable
        or (os.path.exists(path) and not os.access(path, os.W_OK))
    ):
        # The write-ahead log lives beside the file, so both must be writable.
        raise ConfigError(
            f"the SQLite database {path} cannot be opened: it and its directory must be writable"
        )


def make_engine(url: URL, *, pool_size: int, pool_timeout: float) -> Engine:
    """Makes the engine of a service: a pool of a fixed size that never overflows.

    A connection is not tested before each use (that would be one round trip
    per unit): a unit that finds its connection dead is run again, and one dead
    connection empties the whole pool.

    Args:
        url: from ``parse``.
        pool_size: connections at most.
        pool_timeout: seconds to wait for a free one.
    """
    if is_memory(url):
        pool_size = 1
    engine = sqlalchemy.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=pool_timeout,
        pool_recycle=-1 if is_memory(url) else RECYCLE,
        # The most recently used first: after a burst the rest grow old and are replaced.
        pool_use_lifo=True,
        # Sessions and connections end their transaction themselves; the pool would send
        # a second ROLLBACK, one round trip more for each unit of work.
        pool_reset_on_return=None,
        # Values may be secrets; error texts are logged.
        hide_parameters=True,
        **_options(url, read_timeout=READ_TIMEOUT, turn_timeout=CONNECT_TIMEOUT),
    )
    prepare(engine)
    return engine


def make_migration_engine(url: URL) -> Engine:
    """Makes an engine without pool and without a limit on a statement's time.

    On SQLite its turn to write is waited for as long as another's migration may take.
    """
    engine = sqlalchemy.create_engine(
        url,
        poolclass=NullPool,
        hide_parameters=True,
        **_options(url, read_timeout=None, turn_timeout=MIGRATION_PATIENCE),
    )
    prepare(engine)
    return engine


def _options(url: URL, *, read_timeout: int | None, turn_timeout: int) -> dict[str, Any]:
    kind = url.get_backend_name()
    if kind == "mysql":
        connect: dict[str, Any] = {}
        if url.password is not None:
            # PyMySQL would encode it as Latin-1; servers compare UTF-8.
            connect["password"] = str(url.password).encode()
        return {
            # PostgreSQL's default too; MySQL's own one takes gap locks, which deadlock.
            "isolation_level": "READ COMMITTED",
            "connect_args": connect
            | {
                "connect_timeout": CONNECT_TIMEOUT,
                "read_timeout": read_timeout,
                "write_timeout": read_timeout,
                "charset": "utf8mb4",
                # TRADITIONAL is oslo.db's default: refuse what does not fit, never truncate.
                "init_command": (
                    "SET SESSION sql_mode='TRADITIONAL', time_zone='+00:00', "
                    f"innodb_lock_wait_timeout={LOCK_TIMEOUT}"
                ),
            },
        }
    if kind == "postgresql":
        return {
            "connect_args": {
                "connect_timeout": CONNECT_TIMEOUT,
                # Prepared statements do not survive a transaction pooler (PgBouncer).
                "prepare_threshold": None,
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
                "tcp_user_timeout": READ_TIMEOUT * 1000,
            },
        }
    return {"connect_args": {"check_same_thread": False, "timeout": turn_timeout}}


def prepare(engine: Engine) -> None:
    """Adds what each new connection needs, by kind of database."""
    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _postgresql_connect)
    elif engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _sqlite_connect)
        event.listen(engine, "begin", _sqlite_begin)


def _postgresql_connect(dbapi_connection: Any, _record: Any) -> None:
    # Not as a start-up option: PgBouncer refuses those.
    dbapi_connection.autocommit = True
    dbapi_connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}s'")
    dbapi_connection.autocommit = False


def _sqlite_connect(dbapi_connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: see _sqlite_begin.
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    _write_ahead(cursor)
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Has readers and one writer at the same time, in several processes.

    Those who open a new file in the same moment are in each other's way here, and for this
    lock SQLite itself does not wait.
    """
    limit = time.monotonic() + CONNECT_TIMEOUT
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > limit:
                raise
            time.sleep(0.01)


def _sqlite_begin(connection: sqlalchemy.Connection) -> None:
    # A transaction that reads first and writes later would fail at once, without
    # waiting, when another wrote in between; so a writer takes the lock first.
    write = connection.get_execution_options().get("trimaran_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
