"""Asks for names while the rows that need them are still on their way.

Which names a page needs is known from its rows, so it would take the time of two
calls, one after the other.  But the front end asks for the same page again and
again: what a listing needed the last time is asked for along with it, and only
what is new costs a second round.  Nothing but ids is remembered, and a name is
never shown that was not fetched for this very answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache
from pydantic import BaseModel

from trimaran.cloud import Row, gather

if TYPE_CHECKING:
    from trimaran.console.listings.view import View

# Listings that are remembered, and ids of each; more than that comes in a second round.
LISTINGS = 500
IDS = 1000

Ids = Iterable[str | None]
Needed = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Join:
    """What rows are joined with.

    Attributes:
        ids: which things the rows name.
        ask: fetches them, by id; no ids, no call.
    """

    ids: Callable[[list[Row]], Ids]
    ask: Callable[[Ids], Mapping[str, Any]]


class Foresight:
    """Ids that listings needed the last time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRUCache[Hashable, Needed] = LRUCache(LISTINGS)

    def of(self, key: Hashable) -> Needed:
        """Returns what was needed, by the name of the join; nothing when it is not known."""
        with self._lock:
            return self._known.get(key, {})

    def keep(self, key: Hashable, needed: Needed) -> None:
        """Remembers what was needed."""
        with self._lock:
            if sum(map(len, needed.values())) <= IDS:
                self._known[key] = needed
            else:
                self._known.pop(key, None)


def joined(
    view: View,
    name: str,
    asked: BaseModel,
    listed: Callable[[], tuple[int, list[Row]]],
    **joins: Join,
) -> tuple[int, list[Row], dict[str, dict[str, Any]]]:
    """Reads a listing and what its rows are joined with.

    Args:
        view: whose eyes.
        name: of the listing.
        asked: the question, which with the view tells listings apart.
        listed: reads how many there are, and the rows.
        joins: by name.

    Returns:
        The count, the rows, and what was found by the join's name and by id.

    Raises:
        errors.TrimaranError: ``listed`` failed.
    """
    memory = view.parts.foresight
    key = (
        name,
        view.project_id,
        view.all_projects,
        view.is_admin,
        view.caller.region,
        asked.model_dump_json(),
    )
    foreseen = memory.of(key)
    first: dict[str, Any] = gather(
        listed=listed,
        **{each: partial(join.ask, foreseen.get(each, ())) for each, join in joins.items()},
    )
    count, rows = first.pop("listed")
    needed = {
        each: tuple(dict.fromkeys(found for found in join.ids(rows) if found))
        for each, join in joins.items()
    }
    memory.keep(key, needed)
    asked_for = {each: set(ids) for each, ids in foreseen.items()}
    missing = {
        each: [one for one in ids if one not in asked_for.get(each, ())]
        for each, ids in needed.items()
    }
    later: dict[str, Any] = gather(
        **{each: partial(joins[each].ask, ids) for each, ids in missing.items() if ids}
    )
    return count, rows, {each: {**found, **later.get(each, {})} for each, found in first.items()}
