"""The database's clock, as one expression for three dialects.

Whatever several hosts must agree upon (who holds a lease, which job is due) is
compared with this clock only: hosts' clocks differ and jump.  The expression
is constant within a statement, so that an index can be used to compare with
it (PostgreSQL's clock_timestamp() would forbid that).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class db_now(FunctionElement[float]):
    """Seconds since 1970-01-01 UTC with fractions, when the statement began.

    Resolution: microseconds on MySQL, MariaDB and PostgreSQL, about a
    millisecond on SQLite.
    """

    type = Double()
    inherit_cache = True
    name = "db_now"


@compiles(db_now, "mysql")
@compiles(db_now, "mariadb")
def _mysql(element: db_now, compiler: Any, **kw: Any) -> str:
    # DECIMAL + double is a double; CAST AS DOUBLE needs MySQL 8.0.17.
    return "(UNIX_TIMESTAMP(NOW(6)) + 0e0)"


@compiles(db_now, "postgresql")
def _postgresql(element: db_now, compiler: Any, **kw: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM statement_timestamp()) AS DOUBLE PRECISION)"


@compiles(db_now, "sqlite")
def _sqlite(element: db_now, compiler: Any, **kw: Any) -> str:
    # 2440587.5 is 1970-01-01 as a Julian day; unixepoch('subsec') needs 3.42.
    return "((julianday('now') - 2440587.5) * 86400.0)"
