"""Queries, links and ids as the services write them.

The small differences between the services' listings are kept in one place, so
that the clients above are one line a method.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from trimaran import errors

Row = dict[str, Any]
Query = Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A part of a listing; ``next`` is the query of the following part, or None."""

    rows: list[Row]
    next: dict[str, Any] | None


def segment(text: str) -> str:
    """Quotes an id for a path.

    Raises:
        errors.NotFound: no id of anything ("", "..").
    """
    if text in ("", ".", ".."):
        raise errors.NotFound()
    return quote(text, safe="")


def wrap(key: str, body: Query) -> Query:
    """Puts the attributes of a thing under its name, unless that was done already."""
    return body if isinstance(body.get(key), dict) else {key: body}


def parameters(query: Query) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None:
            continue
        values: Collection[Any] = value if isinstance(value, list | tuple | set) else (value,)
        pairs.extend((name, str(item)) for item in values)
    return pairs


def next_query(body: Row, collection: str, query: Query) -> dict[str, Any] | None:
    """The query of the next part: from a ``next`` member or from ``<collection>_links``.

    Only the query is taken.  The rest of the link is what the service believes
    its own address to be, and behind a proxy it is often wrong.
    """
    link = body.get("next")
    if not link:
        for entry in body.get(f"{collection}_links") or ():
            if isinstance(entry, dict) and entry.get("rel") == "next":
                link = entry.get("href")
    if not isinstance(link, str) or not link:
        return None
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(urlsplit(link).query, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    # Barbican's links forget the filters of the question.
    return {**query, **found} if found else None
