"""One database layer: engines, sessions, every table, every query, one migration tree.

SQL is written here and nowhere else, so that a reader finds the whole contract
with the database, its indexes and its retries, in one package.
"""

from __future__ import annotations

from trimaran.db.database import Database

__all__ = ["Database"]
