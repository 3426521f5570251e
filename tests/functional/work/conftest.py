"""Databases for these tests."""

from __future__ import annotations

from tests.support.databases import server_url, shared_server_url, shared_url, url

__all__ = ["server_url", "shared_server_url", "shared_url", "url"]
