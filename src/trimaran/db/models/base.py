"""What all tables share: one metadata, names for every constraint, portable types.

Constraints have fixed names because a migration can only change what it can
name, on each of three dialects.  The types store what the upstream services
store (JSON as text, times as naive UTC), so that an existing database can be
adopted where it stands.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import JSON, Double, MetaData, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator, TypeEngine

#: Every constraint and index gets a name; ours equal upstream's where upstream uses a convention.
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

#: InnoDB is what row locks need; a table made by us holds every character.
MYSQL_TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


class Base(DeclarativeBase):
    """The declarative base of every table of the project.

    Each table has a primary key (Galera and InnoDB clusters need one); the
    mapper refuses a class without.
    """

    metadata = MetaData(naming_convention=NAMING)
    __table_args__: Any = MYSQL_TABLE


class LongText(TypeDecorator[str]):
    """Text without a practical limit on all dialects (MySQL's TEXT ends at 64 KiB)."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """LONGTEXT on MySQL and MariaDB, TEXT elsewhere."""
        if dialect.name in ("mysql", "mariadb"):
            return mysql.LONGTEXT()
        return self.impl_instance


class JSONText(TypeDecorator[Any]):
    """JSON kept in a text column, as ec2-api and Magnum keep it.

    Args:
        empty: type of the value that stands for NULL when reading (``dict``
            or ``list``); None keeps NULL as None.
        long: the column is LONGTEXT on MySQL (an upstream column is TEXT).

    A value is written compactly and read as plain Python.  Values are not
    tracked: assign a new object, do not change one in place.
    """

    impl = Text
    cache_ok = True

    def __init__(
        self, empty: type[dict[Any, Any]] | type[list[Any]] | None = None, long: bool = False
    ) -> None:
        super().__init__()
        self.empty = empty
        self.long = long

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """LONGTEXT on MySQL when asked for, TEXT otherwise."""
        if self.long and dialect.name in ("mysql", "mariadb"):
            return mysql.LONGTEXT()
        return self.impl_instance

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Python to text; None becomes the empty value's text, or NULL."""
        if value is None:
            if self.empty is None:
                return None
            value = self.empty()
        return json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Text to Python; NULL and the empty text become the empty value."""
        if value is None or value == "":
            return self.empty() if self.empty is not None else None
        return json.loads(value)


#: Seconds since 1970 by the database's clock (see trimaran.db.clock).
EpochSeconds = Double

#: A JSON column in the database's own type, as Skyline has it.
NativeJSON = JSON(none_as_null=True)
