"""What one server can and another cannot."""

from __future__ import annotations

from sqlalchemy.orm import Session


def can_skip_locked(session: Session) -> bool:
    """True when the server knows SELECT … FOR UPDATE SKIP LOCKED.

    PostgreSQL 9.5, MariaDB 10.6, MySQL 8.0.1.  SQLite has no row locks: a
    writer is alone there.
    """
    dialect = session.get_bind().dialect
    version = dialect.server_version_info or (0,)
    if dialect.name == "mysql":
        first = (10, 6) if dialect.is_mariadb else (8, 0, 1)  # type: ignore[attr-defined]
        return bool(tuple(version[:3]) >= first)
    return bool(dialect.name == "postgresql")
