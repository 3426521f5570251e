"""What all lists have in common: paging, sorting and the address of the next page.

Spec section 1.5; fault F-45.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Query

from trimaran.db.queries.magnum import Page
from trimaran.errors import BadRequest
from trimaran.magnum.api import links
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.fields import Uuid

_DIRECTIONS = ("asc", "desc")


def page(call: Call, marker: Any, limit: int | None, sort_key: str, sort_dir: str) -> Page:
    """The page that a request asks for.

    Args:
        call: the request.
        marker: last resource of the page before.
        limit: rows wanted; None or too many: ``[api] max_limit``.
        sort_key: column.
        sort_dir: ``asc`` or ``desc``.

    Raises:
        BadRequest: limit or direction cannot be used.
    """
    if limit is not None and limit <= 0:
        raise BadRequest("Limit must be positive")
    if sort_dir not in _DIRECTIONS:
        raise BadRequest(
            f"Invalid sort direction: {sort_dir[:255]}. Acceptable values are 'asc' or 'desc'"
        )
    largest = call.parts.conf.api.max_limit
    return Page(
        limit=min(limit or largest, largest), marker=marker, sort_key=sort_key, sort_dir=sort_dir
    )


async def _page(
    call: Authenticated,
    marker: Annotated[Uuid | None, Query(description="UUID of the last one seen.")] = None,
    limit: Annotated[int | None, Query()] = None,
    sort_key: Annotated[str, Query()] = "id",
    sort_dir: Annotated[str, Query()] = "asc",
) -> Page:
    # It waits for nothing, so it needs no thread of its own.
    return page(call, marker or None, limit, sort_key, sort_dir)


#: the page of a list whose marker is a UUID
Paged = Annotated[Page, Depends(_page)]


def body(
    call: Call,
    plural: str,
    resource: str,
    shown: Sequence[dict[str, Any]],
    page: Page,
    **filters: Any,
) -> dict[str, Any]:
    """The body of a list.

    Args:
        call: the request.
        plural: member that holds the list.
        resource: path below ``/v1``, for the next page's address.
        shown: the resources as answers show them.
        page: what was asked for; ``next`` is there exactly when the page is full.
        filters: other query arguments to carry on.
    """
    answer: dict[str, Any] = {plural: list(shown)}
    if shown and len(shown) == page.limit:
        last = shown[-1]
        query = {
            **filters,
            "sort_key": page.sort_key,
            "sort_dir": page.sort_dir,
            "limit": page.limit,
            "marker": last.get("uuid") or last["id"],
        }
        answer["next"] = links.next_page(call.app_url, resource, query)
    return answer
