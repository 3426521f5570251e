"""What a database error means for the unit of work: run it again, or tell the caller.

The table is made of the codes that the servers document; a text is compared
only where a driver gives no code.  Galera reports a lost certification as a
deadlock, often at COMMIT, so a unit is judged as a whole, its commit included.
"""

from __future__ import annotations

import enum
import sqlite3
from typing import Any

from sqlalchemy import exc


class Fault(enum.Enum):
    """What went wrong, from the unit's point of view.

    Attributes:
        CONFLICT: another transaction was in the way; nothing of ours is left.
        LOST: the connection broke, or its server no longer takes writes.
        DOWN: no connection can be had at the moment.
        REFUSED: the server is there and will not have us (password, name, disk);
            waiting does not help, an operator does.
    """

    CONFLICT = "conflict"
    LOST = "lost"
    DOWN = "down"
    REFUSED = "refused"


# https://mariadb.com/kb/en/mariadb-error-codes/ and MySQL's error reference.
MYSQL: dict[int, Fault] = {
    1020: Fault.CONFLICT,  # record changed since last read (snapshot isolation)
    1180: Fault.CONFLICT,  # error during COMMIT (Galera certification)
    1205: Fault.CONFLICT,  # lock wait timeout
    1213: Fault.CONFLICT,  # deadlock; Galera: certification failed, also at COMMIT
    3058: Fault.CONFLICT,  # deadlock of user-level locks
    3572: Fault.CONFLICT,  # NOWAIT
    1047: Fault.LOST,  # WSREP has not yet prepared the node: another node may answer
    1053: Fault.LOST,  # server shutdown in progress
    1290: Fault.LOST,  # --read-only: the primary moved
    1317: Fault.CONFLICT,  # query interrupted (KILL QUERY, Galera brute-force abort)
    1792: Fault.LOST,  # read-only transaction
    1836: Fault.LOST,  # read-only mode
    1927: Fault.LOST,  # connection was killed
    2006: Fault.LOST,
    2013: Fault.LOST,
    2014: Fault.LOST,
    2045: Fault.LOST,
    2055: Fault.LOST,
    4031: Fault.LOST,  # disconnected because of inactivity
    1040: Fault.DOWN,  # too many connections
    1129: Fault.DOWN,  # host is blocked
    1203: Fault.DOWN,  # user has too many connections
    2002: Fault.DOWN,
    2003: Fault.DOWN,
    2005: Fault.DOWN,
    1021: Fault.REFUSED,  # disk full
    1044: Fault.REFUSED,
    1045: Fault.REFUSED,
    1049: Fault.REFUSED,
    1114: Fault.REFUSED,  # table is full
    1142: Fault.REFUSED,
    1146: Fault.REFUSED,  # no such table: not migrated
    1054: Fault.REFUSED,  # no such column: not migrated
    1698: Fault.REFUSED,
}

# https://www.postgresql.org/docs/current/errcodes-appendix.html
POSTGRESQL: dict[str, Fault] = {
    "40001": Fault.CONFLICT,
    "40P01": Fault.CONFLICT,
    "55P03": Fault.CONFLICT,
    "25006": Fault.LOST,  # read only: the primary moved
    "57P01": Fault.LOST,
    "57P02": Fault.LOST,
    "57P05": Fault.LOST,
    "57P03": Fault.DOWN,  # starting up
    "53300": Fault.DOWN,
    "53100": Fault.REFUSED,
    "28000": Fault.REFUSED,
    "28P01": Fault.REFUSED,
    "3D000": Fault.REFUSED,
    "42501": Fault.REFUSED,
    "42P01": Fault.REFUSED,
    "42703": Fault.REFUSED,
}

# https://www.sqlite.org/rescode.html (primary codes)
SQLITE: dict[int, Fault] = {
    sqlite3.SQLITE_BUSY: Fault.CONFLICT,
    sqlite3.SQLITE_LOCKED: Fault.CONFLICT,
    sqlite3.SQLITE_IOERR: Fault.LOST,
    sqlite3.SQLITE_CANTOPEN: Fault.DOWN,
    sqlite3.SQLITE_FULL: Fault.REFUSED,
    sqlite3.SQLITE_READONLY: Fault.REFUSED,
    sqlite3.SQLITE_CORRUPT: Fault.REFUSED,
    sqlite3.SQLITE_NOTADB: Fault.REFUSED,
    sqlite3.SQLITE_PERM: Fault.REFUSED,
}

_POSTGRESQL_REFUSALS = (
    "password authentication failed",
    "no pg_hba.conf entry",
    "no password supplied",
    "does not exist",
)


def classify(error: BaseException, *, connecting: bool = False) -> Fault | None:
    """Says what an error of SQLAlchemy or its driver means.

    Args:
        error: what was raised in the unit, or by its commit.
        connecting: the error came while the connection was being opened.

    Returns:
        The fault, or None when the error is not the database's state but the
        unit's doing (a constraint, a mistake in a statement).
    """
    if isinstance(error, exc.TimeoutError):
        return Fault.DOWN  # no free connection within pool_timeout
    if not isinstance(error, exc.DBAPIError):
        return None
    fault = _by_code(error.orig)
    if fault is None and error.connection_invalidated:
        fault = Fault.LOST
    if connecting and fault in (None, Fault.LOST) and isinstance(error, exc.DBAPIError):
        fault = Fault.REFUSED if _refused_in_words(error.orig) else Fault.DOWN
    return fault


def _by_code(orig: Any) -> Fault | None:
    if orig is None:
        return None
    if isinstance(orig, sqlite3.Error):
        code = getattr(orig, "sqlite_errorcode", None)
        if code is None:
            return None
        if code == sqlite3.SQLITE_ERROR and str(orig).startswith(("no such table", "no such col")):
            return Fault.REFUSED
        return SQLITE.get(code & 0xFF)
    code = orig.args[0] if orig.args else None
    if isinstance(code, int):  # PyMySQL; its errors have an sqlstate too, but it is coarse
        # InnoDB forgets the savepoint when it rolls a deadlock back.
        if code == 1305 and "SAVEPOINT" in str(orig):
            return Fault.CONFLICT
        return MYSQL.get(code)
    state = getattr(orig, "sqlstate", None)
    if isinstance(state, str):
        return Fault.LOST if state.startswith("08") else POSTGRESQL.get(state)
    return None


def _refused_in_words(orig: Any) -> bool:
    # libpq gives no code for what the server says while connecting.
    text = str(orig)
    return any(words in text for words in _POSTGRESQL_REFUSALS)
