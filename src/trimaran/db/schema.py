"""What migrations are written with: steps that look before they act.

Two reasons.  A first revision must be able to adopt the database of an
upstream service in place, where its tables exist already.  And MySQL commits
each DDL statement by itself: a migration that was killed half way is repaired
by running it again, which only works when each step may find itself done.

Tables are described in the revision, never imported from the models: a
revision must mean the same for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

#: Options of every table that we make (see trimaran.db.models.base).
TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


def long_text() -> sa.types.TypeEngine[str]:
    """The column type of models.base.LongText."""
    return sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def inspector() -> sa.Inspector:
    """A look at the schema as it is now (never cached: steps change it)."""
    return sa.inspect(op.get_bind())


def has_table(name: str) -> bool:
    """True when the table exists."""
    return inspector().has_table(name)


def columns(table: str) -> set[str]:
    """Names of the table's columns."""
    return {column["name"] for column in inspector().get_columns(table)}


def index_names(table: str) -> set[str]:
    """Names of the table's indexes and unique constraints."""
    look = inspector()
    names = [index["name"] for index in look.get_indexes(table)]
    names += [constraint["name"] for constraint in look.get_unique_constraints(table)]
    return {name for name in names if name}


def create_table(name: str, *items: Any, **options: Any) -> bool:
    """Creates a table unless it exists.

    Args:
        name: of the table.
        items: columns and constraints as for ``op.create_table``; names of
            constraints are given in full.
        options: dialect options beside those of ``TABLE``.

    Returns:
        True when it was created, False when it was there (adopted as it is;
        follow with ``add_column`` and ``create_index`` for what it may lack).
    """
    if has_table(name):
        return False
    op.create_table(name, *items, **(TABLE | options))
    return True


def add_column(table: str, column: sa.Column[Any]) -> bool:
    """Adds a column unless the table has it; returns True when it was added."""
    if column.name in columns(table):
        return False
    op.add_column(table, column)
    return True


def create_index(name: str, table: str, on: Sequence[str], *, unique: bool = False) -> bool:
    """Creates an index unless one of that name exists; returns True when it was created."""
    if name in index_names(table):
        return False
    op.create_index(name, table, list(on), unique=unique)
    return True


def drop_index(name: str, table: str) -> bool:
    """Drops an index if it exists; returns True when it was dropped."""
    if name not in index_names(table):
        return False
    op.drop_index(name, table_name=table)
    return True


def has_primary_key(table: str) -> bool:
    """True when the table has a primary key."""
    return bool(inspector().get_pk_constraint(table)["constrained_columns"])


def create_primary_key(name: str, table: str, on: Sequence[str]) -> bool:
    """Adds a primary key to a table without one; returns True when it was added.

    The columns' values must be unique and not null already.
    """
    if has_primary_key(table):
        return False
    with op.batch_alter_table(table) as batch:
        batch.create_primary_key(name, list(on))
    return True
