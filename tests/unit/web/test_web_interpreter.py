"""How Python is set in a process that serves."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from trimaran.web import interpreter


@pytest.fixture
def _restored() -> Iterator[None]:
    threshold, turn = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(turn)


@pytest.mark.usefixtures("_restored")
def test_threads_give_way_sooner_and_what_the_start_made_is_not_looked_at_again() -> None:
    usual = sys.getswitchinterval()
    interpreter.settle()
    assert sys.getswitchinterval() < usual
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == interpreter.COLLECT_AFTER
