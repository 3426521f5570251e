"""What handlers of several resources share."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from sqlalchemy.orm import Session

from trimaran.db.queries.magnum import Scope
from trimaran.magnum.api.call import Call
from trimaran.magnum.api.schemas.common import Errors

R_co = TypeVar("R_co", covariant=True)

#: every error of every route, for the OpenAPI document
ERRORS: dict[int | str, dict[str, Any]] = {"default": {"model": Errors}}


class LookUp(Protocol[R_co]):
    """A query that finds one row by UUID or name."""

    def __call__(self, session: Session, scope: Scope, ident: str) -> R_co: ...


def found(call: Call, look_up: LookUp[R_co], scope: Scope, ident: str) -> R_co:
    """One row that the scope shows.

    Args:
        call: the request.
        look_up: the query.
        scope: which rows the caller may see.
        ident: UUID or name.

    Raises:
        NotFound: there is none.
        Conflict: several have the name.
    """
    return call.parts.db.read(lambda session: look_up(session, scope, ident))
