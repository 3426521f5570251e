"""What a listing was joined with the last time is asked for along with it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from trimaran.console.listings.foresight import IDS, Foresight, Join, joined
from trimaran.errors import BadRequest


class Question(BaseModel):
    limit: int = 10


class Names:
    """A join that notes what it was asked, and when it was."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.called = threading.Event()

    def ask(self, ids: Iterable[str | None]) -> dict[str, str]:
        wanted = [each for each in ids if each]
        if wanted:
            self.asked.append(wanted)
            self.called.set()
        return {each: f"name-{each}" for each in wanted}


def view(foresight: Foresight, project: str = "p1") -> Any:
    return SimpleNamespace(
        parts=SimpleNamespace(foresight=foresight),
        project_id=project,
        all_projects=False,
        is_admin=False,
        caller=SimpleNamespace(region="RegionOne"),
    )


def listing(
    names: Names, foresight: Foresight, ids: list[Any], *, waits: bool = False, **more: Any
) -> dict[str, Any]:
    def listed() -> tuple[int, list[dict[str, Any]]]:
        if waits:
            assert names.called.wait(30), "the names were not asked for meanwhile"
        return 7, [{"id": each} for each in ids]

    join = Join(lambda rows: (row["id"] for row in rows), names.ask)
    question = Question(limit=more.get("limit", 10))
    who = view(foresight, more.get("project", "p1"))
    count, rows, found = joined(who, "things", question, listed, names=join)
    assert count == 7
    assert [row["id"] for row in rows] == ids
    return found["names"]


def test_known_ids_are_asked_for_with_the_rows_and_new_ones_after() -> None:
    names, foresight = Names(), Foresight()
    assert listing(names, foresight, ["b", None, "a", "b"]) == {"a": "name-a", "b": "name-b"}
    assert names.asked == [["b", "a"]]
    names.called.clear()
    assert listing(names, foresight, ["b", "a"], waits=True) == {"a": "name-a", "b": "name-b"}
    assert names.asked == [["b", "a"], ["b", "a"]]
    # One is gone, one is new.
    names.called.clear()
    found = listing(names, foresight, ["a", "c"], waits=True)
    assert found["c"] == "name-c"
    assert names.asked[2:] == [["b", "a"], ["c"]]
    listing(names, foresight, ["a", "c"])
    assert names.asked[4:] == [["a", "c"]]


def test_other_questions_and_projects_are_others() -> None:
    names, foresight = Names(), Foresight()
    listing(names, foresight, ["a"])
    listing(names, foresight, [], limit=11)
    listing(names, foresight, [], project="p2")
    assert names.asked == [["a"]]


def test_too_many_ids_are_not_remembered() -> None:
    names, foresight = Names(), Foresight()
    many = [f"i{number}" for number in range(IDS + 1)]
    listing(names, foresight, many)
    listing(names, foresight, [])
    assert len(names.asked) == 1


def test_a_listing_that_fails_says_so() -> None:
    def refused() -> tuple[int, list[dict[str, Any]]]:
        raise BadRequest("no such marker")

    join = Join(lambda rows: [], lambda ids: {})
    with pytest.raises(BadRequest, match="no such marker"):
        joined(view(Foresight()), "things", Question(), refused, names=join)
