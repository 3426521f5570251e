"""Sort parameters as Cinder reads them."""

from __future__ import annotations

from collections.abc import Sequence

from trimaran.console.schemas.extension_queries import SortDirection

# Cinder's own name of the column.
_COLUMNS = {"name": "display_name"}


def cinder_sort(keys: Sequence[str] | None, direction: SortDirection | None) -> str | None:
    """Returns ``key:direction,…``; keys alone leave the direction to Cinder."""
    if not keys:
        return None
    suffix = f":{direction.value}" if direction else ""
    return ",".join(f"{_COLUMNS.get(str(key), str(key))}{suffix}" for key in keys)
