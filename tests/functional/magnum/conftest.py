"""Databases for these tests."""

from __future__ import annotations

from tests.support.magnum_databases import (
    magnum_mariadb_url,
    magnum_url,
    shared_magnum_mariadb_url,
    shared_magnum_url,
)

__all__ = ["magnum_mariadb_url", "magnum_url", "shared_magnum_mariadb_url", "shared_magnum_url"]
