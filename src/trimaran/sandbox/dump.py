"""A database as a list of SQL statements, and back.

Migrations take most of a first start and their outcome depends on the pins alone, so
it is kept.  Written with the Python driver, because client programs need not be
installed where a server of the machine is used; the statements name no database, so
that a dump fits every sandbox.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

_BATCH = 200


def literal(cursor: Any, value: Any) -> str:
    """A value as an SQL literal; bytes in hexadecimal, so that a dump is text."""
    if isinstance(value, bytes | bytearray):
        return f"x'{bytes(value).hex()}'" if value else "''"
    return str(cursor.connection.escape(value))


def take(cursor: Any, without_rows: Collection[str] = ()) -> list[str]:
    """The statements that make the cursor's database again, tables and rows.

    Args:
        without_rows: tables to make empty.
    """
    cursor.execute("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")
    statements = []
    for table, _ in cursor.fetchall():
        cursor.execute(f"SHOW CREATE TABLE `{table}`")
        statements.append(cursor.fetchone()[1])
        if table in without_rows:
            continue
        cursor.execute(f"SELECT * FROM `{table}`")
        columns = ", ".join(f"`{column[0]}`" for column in cursor.description)
        rows = [f"({', '.join(literal(cursor, v) for v in row)})" for row in cursor.fetchall()]
        for start in range(0, len(rows), _BATCH):
            values = ",\n".join(rows[start : start + _BATCH])
            statements.append(f"INSERT INTO `{table}` ({columns}) VALUES\n{values}")
    return statements


def put(cursor: Any, statements: list[str]) -> None:
    """Make tables and rows in the cursor's (empty) database."""
    cursor.execute("SET SESSION foreign_key_checks = 0, unique_checks = 0")
    # several statements in one packet: the time is in the round trips
    for start in range(0, len(statements), 20):
        cursor.execute(";\n".join(statements[start : start + 20]))
        while cursor.nextset():
            pass


def save(path: Path, databases: dict[str, list[str]]) -> None:
    """Keep dumps by database name; a reader sees all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
    temporary.write_text(json.dumps(databases))
    temporary.replace(path)


def load(path: Path) -> dict[str, list[str]] | None:
    """Kept dumps, or None when there are none that can be read."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
