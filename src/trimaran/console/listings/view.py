"""Whose eyes a listing is read with (spec/skyline.md 1.5).

Upstream takes a new token for each listing, and shows a reader only what his
own project's token shows (F22, F35).  Here the session's token is used as it
is, and readers see all projects through the system account.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import HTTPException

from trimaran.cloud import CloudSession, NoEndpoint
from trimaran.console import faults, roles
from trimaran.console.caller import Caller
from trimaran.console.parts import Parts
from trimaran.errors import (
    BadRequest,
    Forbidden,
    NotFound,
    TrimaranError,
    Unauthenticated,
    Unavailable,
)

# Services keep sizes of pages in 32 or 64 bits and fail beyond (second section 10, row 3).
LARGEST_PAGE = 2**31 - 1
# As the front end's; the fields of the answers are those of these versions.
VOLUME_VERSION = "3.59"


class View:
    """The caller's sight of the cloud.

    Args:
        parts: the cloud and the options.
        caller: whose.
        what: plural of the things listed, for the refusal.
        all_projects: what the caller asked for.

    Raises:
        errors.Forbidden: all projects, and the caller may not.

    Attributes:
        user: clients that act as the caller; as the system for a reader of all projects.
        system: clients that act as the service account.
    """

    def __init__(self, parts: Parts, caller: Caller, what: str, *, all_projects: bool) -> None:
        options = parts.settings.openstack
        self.parts = parts
        self.caller = caller
        self.all_projects = all_projects
        self.is_admin = roles.is_admin(caller.token, options)
        self.sees_all = roles.sees_all(caller.token, options)
        if all_projects and not self.sees_all:
            raise Forbidden(f"Not allowed to get {what} for all projects.")
        self.system: CloudSession = parts.cloud.as_service(region=caller.region)
        self.user: CloudSession = (
            self.system
            if all_projects and not self.is_admin
            else parts.cloud.as_user(caller.token, region=caller.region)
        )

    @property
    def project_id(self) -> str:
        """The project of the caller's token."""
        return self.caller.token.project_id or ""

    def scoped(self, wanted: str | None) -> str | None:
        """Returns the project to filter by: the wanted one of all, or the caller's own."""
        return wanted if self.all_projects else self.project_id


def page_size(limit: int | None) -> int | None:
    """Returns a limit that every service can read."""
    return None if limit is None else min(limit, LARGEST_PAGE)


def origin(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Returns exactly these members of a row, null where the service sent none."""
    return dict(zip(keys, map(row.get, keys), strict=True))


@contextmanager
def refusals(marker: str | None = None) -> Iterator[None]:
    """Turns what a service said about the listing itself into the wire's errors.

    A mistake of the caller is 400 from whichever service it comes; upstream
    has 500 for some (second section 10, rows 2 and 3; F53).

    Args:
        marker: as asked; with one, "not found" is about it.
    """
    try:
        yield
    except TrimaranError as error:
        raise _refusal(error, marker) from error


def _refusal(error: TrimaranError, marker: str | None) -> Exception:
    if isinstance(error, NoEndpoint):
        return HTTPException(500, "Endpoint not found")
    if isinstance(error, Unavailable) and error.service in ("identity", "database"):
        return error
    status = 500
    if isinstance(error, BadRequest) or (isinstance(error, NotFound) and marker is not None):
        status = 400
    elif isinstance(error, Unauthenticated | Forbidden):
        status = error.status
    return HTTPException(status, faults.text(error))
