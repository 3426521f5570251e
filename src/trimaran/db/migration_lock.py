"""One migration at a time on MySQL and MariaDB, several Galera nodes included.

A row with an owner and an end, changed by compare-and-set in transactions of
its own: certification lets one of two nodes' claims through.  The holder
renews it from a thread, since a DDL statement on a large table takes its time;
a killed holder keeps the others waiting for TTL seconds at most.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import exc

from trimaran import errors
from trimaran.db.clock import db_now
from trimaran.db.faults import Fault, classify
from trimaran.db.urls import MIGRATION_PATIENCE

#: Seconds without renewal after which a holder counts as dead.
TTL = 20.0

_lock = sa.Table(
    "trimaran_migration_lock",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    mysql_engine="InnoDB",
)


@contextlib.contextmanager
def row_lease(engine: sa.Engine) -> Iterator[None]:
    """Holds the database's migration lock; waits for another holder.

    Args:
        engine: one that gives each caller a connection of its own.

    Raises:
        Unavailable: somebody else has held it for MIGRATION_PATIENCE seconds.
    """
    owner = uuid.uuid4().hex
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateTable(_lock, if_not_exists=True))
    deadline = time.monotonic() + MIGRATION_PATIENCE
    while not _claim(engine, owner):
        if time.monotonic() > deadline:
            raise errors.Unavailable("Another process is migrating.", service="database")
        time.sleep(0.5)
    done = threading.Event()
    keeper = threading.Thread(target=_keep, args=(engine, owner, done), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join()
        with engine.begin() as connection:
            connection.execute(
                _lock.update().where(_lock.c.owner == owner).values(owner="", expires_at=0)
            )


def _claim(engine: sa.Engine, owner: str) -> bool:
    try:
        with engine.begin() as connection:
            there = connection.execute(sa.select(_lock.c.id).where(_lock.c.id == 1)).first()
            if there is None:
                connection.execute(_lock.insert().values(id=1, owner="", expires_at=0))
            claimed = connection.execute(
                _lock.update()
                .where(_lock.c.id == 1, _lock.c.expires_at <= db_now())
                .values(owner=owner, expires_at=db_now() + TTL)
            )
            return claimed.rowcount == 1
    except exc.IntegrityError:
        return False  # another made the row first
    except exc.DBAPIError as error:
        if classify(error) is Fault.CONFLICT:
            return False
        raise


def _keep(engine: sa.Engine, owner: str, done: threading.Event) -> None:
    while not done.wait(TTL / 4):
        with contextlib.suppress(exc.DBAPIError), engine.begin() as connection:
            connection.execute(
                _lock.update().where(_lock.c.owner == owner).values(expires_at=db_now() + TTL)
            )
