"""How Python is set in a process that serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from trimaran.web import interpreter


@pytest.fixture
def _restored() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("_restored")
def test_what_the_start_made_is_not_looked_at_again() -> None:
    interpreter.settle()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == interpreter.COLLECT_AFTER
