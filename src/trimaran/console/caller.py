"""Who calls: the one object that the token stage hands to the handlers.

A route shows in its signature that it needs a caller.  Were such a route to
become public by mistake, it would answer 401 all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from trimaran.console.sessions import Session
from trimaran.errors import Unauthenticated
from trimaran.identity import Token

STATE = "caller"


@dataclass(frozen=True)
class Caller:
    """An authenticated request.

    Attributes:
        token: the validated, project-scoped Keystone token.
        session: region, end and uuid; made up for a caller with X-Auth-Token.
        by_cookie: the session came as a cookie, so it can be renewed and revoked.
    """

    token: Token
    session: Session
    by_cookie: bool

    @property
    def region(self) -> str:
        """The region of the session."""
        return self.session.region


async def current_caller(request: Request) -> Caller:
    """Returns the caller that the token stage found.

    Asynchronous, because a plain function would wait for a free thread.
    """
    caller = getattr(request.state, STATE, None)
    if not isinstance(caller, Caller):
        raise Unauthenticated("Unauthorized: Token not found")
    return caller


CurrentCaller = Annotated[Caller, Depends(current_caller)]
