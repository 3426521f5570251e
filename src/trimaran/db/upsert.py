"""Insert-or-leave, insert-or-update, and how many rows a statement changed.

The first two are spelled differently by each dialect.  Both are one statement,
so that two transactions that insert the same key at the same time both succeed,
without an error that would end the transaction on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import CursorResult, Delete, Table, Update
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import DeclarativeBase, Session


def changed(session: Session, statement: Update | Delete) -> int:
    """Executes an UPDATE or DELETE.

    Returns:
        How many rows it matched, on all dialects (MySQL's client would
        otherwise count only those whose values changed).
    """
    result = session.execute(statement, execution_options={"synchronize_session": False})
    assert isinstance(result, CursorResult)
    return result.rowcount


def insert_missing(
    session: Session, model: type[DeclarativeBase], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Inserts the rows whose primary key does not exist; others stay as they are.

    Args:
        session: of the unit of work.
        model: the table's class.
        rows: values by column; all with the same columns.
    """
    if not rows:
        return
    table = _table(model)
    keys = [column.name for column in table.primary_key]
    values = [dict(row) for row in rows]
    name = session.get_bind().dialect.name
    if name == "mysql":
        # INSERT IGNORE would also swallow values that do not fit.
        statement: Any = mysql.insert(table).values(values)
        statement = statement.on_duplicate_key_update({keys[0]: table.c[keys[0]]})
    elif name == "postgresql":
        statement = postgresql.insert(table).values(values)
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    else:
        statement = sqlite.insert(table).values(values)
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    session.execute(statement)


def upsert(session: Session, model: type[DeclarativeBase], row: Mapping[str, Any]) -> None:
    """Inserts a row, or gives the row of the same primary key the other values.

    Args:
        session: of the unit of work.
        model: the table's class.
        row: values by column, the primary key among them.
    """
    table = _table(model)
    keys = [column.name for column in table.primary_key]
    rest = {name: value for name, value in row.items() if name not in keys}
    name = session.get_bind().dialect.name
    if name == "mysql":
        statement: Any = mysql.insert(table).values(dict(row)).on_duplicate_key_update(rest)
    elif name == "postgresql":
        statement = postgresql.insert(table).values(dict(row))
        statement = statement.on_conflict_do_update(index_elements=keys, set_=rest)
    else:
        statement = sqlite.insert(table).values(dict(row))
        statement = statement.on_conflict_do_update(index_elements=keys, set_=rest)
    session.execute(statement)


def _table(model: type[DeclarativeBase]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table
