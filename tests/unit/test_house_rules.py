"""Rules of the house that no linter knows (docs/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "trimaran"


def imports(module: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each import; the name is empty for ``import x``."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_sql_is_written_in_the_database_layer_only() -> None:
    allowed = {("sqlalchemy.orm", "Session")}
    found = {
        f"{module.relative_to(SOURCE)}: {origin} {name}"
        for module in modules()
        if "db" not in module.relative_to(SOURCE).parts[:1]
        for origin, name in imports(module)
        if origin.split(".")[0] in ("sqlalchemy", "alembic") and (origin, name) not in allowed
    }
    # The envelope's field types come from the tables' column types; it asks nothing.
    assert found <= {"magnum/rpc/envelope.py: sqlalchemy "}


@pytest.mark.parametrize("library", ["eventlet", "flask", "pecan"])
def test_libraries_of_the_originals_stay_out(library: str) -> None:
    found = {
        str(module.relative_to(SOURCE))
        for module in modules()
        # The sandbox starts upstream's services, with what they need.
        if module.relative_to(SOURCE).parts[0] != "sandbox"
        for origin, _ in imports(module)
        if origin == library or origin.startswith(library + ".")
    }
    assert not found


def test_no_module_is_too_large_to_hold_in_the_head() -> None:
    assert not {
        str(module.relative_to(SOURCE)): module.stat().st_size
        for module in modules()
        if module.stat().st_size > 25_600
    }


def test_every_module_says_why_it_is_there() -> None:
    without = [
        str(module.relative_to(SOURCE))
        for module in modules()
        if module.read_text().strip() and not ast.get_docstring(ast.parse(module.read_text()))
    ]
    assert not without
