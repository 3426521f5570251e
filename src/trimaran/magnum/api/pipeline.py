"""What happens to a request between the router and its handler.

The order is upstream's and clients can see it: token (401), version header
(406), method at this version (406), query arguments (400), media type (415),
body (400), handler.  A path that does not exist is told only to who shows a
token, so unknown paths go the same way, by a last route that takes everything.
Spec sections 1.1, 1.3 and 1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Match, compile_path

from trimaran import web
from trimaran.errors import BadRequest, TrimaranError, Unauthenticated
from trimaran.magnum.api import fields, microversions
from trimaran.magnum.api.errors import (
    InvalidInput,
    MethodNotAllowed,
    NoRoute,
    NotAcceptable,
    UnsupportedMediaType,
    render,
)
from trimaran.magnum.api.microversions import Version
from trimaran.magnum.api.parts import Parts
from trimaran.policy import Context

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(frozen=True)
class Exposure:
    """At which microversions a handler, and some of its query arguments, exist.

    Attributes:
        name: the method's name as the 406 says it.
        since: first version.
        query: query arguments that came later, by name.
    """

    name: str
    since: Version = microversions.MIN
    query: dict[str, Version] = field(default_factory=dict)


def since(version: str, name: str, **query: str) -> Callable[[Any], Any]:
    """Marks a handler that is not there at every microversion.

    Args:
        version: the first one that has it, such as ``1.9``.
        name: the method's name as the 406 says it.
        query: query arguments that came later, with their version.
    """

    def mark(handler: Any) -> Any:
        handler.exposure = Exposure(
            name,
            microversions.parse(version),
            {argument: microversions.parse(text) for argument, text in query.items()},
        )
        return handler

    return mark


class PublicRoute(APIRoute):
    """A route below ``/v1`` that needs no token."""

    async def admit(self, request: Request) -> None:
        """Looks at the caller before anything else of the request."""

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()
        exposure: Exposure = getattr(self.endpoint, "exposure", Exposure(self.name))
        known = set(_query_names(self.dependant))
        argument = next((item.name for item in self.dependant.body_params), "")

        async def handle(request: Request) -> Response:
            try:
                await self.admit(request)
                version = microversions.requested(request.headers.get(microversions.HEADER))
                request.state.version = version
                _check_version(exposure, version)
                _check_query(request, known, exposure, version)
                await _check_media_type(request)
                response = await inner(request)
            except RequestValidationError as error:
                return render(fields.translate(error.errors(), argument), request)
            except HTTPException:
                # FastAPI's own, for a body that is not UTF-8 or too deep.
                return render(BadRequest("Request is not in valid JSON format"), request)
            except TrimaranError as error:
                return render(error, request)
            response.headers.update(microversions.headers(version))
            return response

        return handle


class TokenRoute(PublicRoute):
    """A route that needs a token."""

    async def admit(self, request: Request) -> None:
        """Puts the caller into ``request.state.context``.

        Raises:
            Unauthenticated: no valid token.
            Unavailable: Keystone does not answer.
        """
        token_id = request.headers.get("x-auth-token")
        if not token_id:
            raise Unauthenticated
        parts: Parts = request.app.state.parts
        token = parts.identity.known(token_id)
        if token is None:
            # Validation asks Keystone: never on the event loop.
            token = await run_in_threadpool(parts.identity.validate, token_id)
        request.state.context = Context(
            token, request_id=web.request_id(), remote_address=web.remote_address(request)
        )


def _query_names(dependant: Dependant) -> Iterator[str]:
    for item in dependant.query_params:
        yield item.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _check_version(exposure: Exposure, version: Version) -> None:
    if version < exposure.since:
        raise NotAcceptable(
            f"Version {version} was requested but the requested API {exposure.name} "
            "is not supported for this version."
        )


def _check_query(request: Request, known: set[str], exposure: Exposure, version: Version) -> None:
    hidden = {name for name, first in exposure.query.items() if version < first}
    unknown = sorted(set(request.query_params) - (known - hidden))
    if unknown:
        raise BadRequest(f'Unknown argument: "{", ".join(unknown)[:255]}"')


async def _check_media_type(request: Request) -> None:
    # An empty body may carry any type: python-magnumclient sends octet-stream.
    if not await request.body():
        return
    media_type = request.headers.get("content-type", "").split(";", 1)[0].strip()
    if media_type.lower() != "application/json":
        raise UnsupportedMediaType(media_type[:255])


def nowhere(request: Request) -> Response:
    """The last route: tells why no other took the request.

    DELETE and PATCH of a collection miss an argument, and POST to an item has
    one too many; the argument's name is that of the neighbouring handler.

    Raises:
        BadRequest, MethodNotAllowed, NoRoute: always one of them.
    """
    routes: list[APIRoute] = request.app.state.api_routes
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    longer = _match(routes, f"{path}/x", request.method)
    if longer and longer.path.endswith("}"):
        *before, missing = longer.param_convertors
        # A GET of a collection asks for a list, which this one does not have.
        if before or request.method != "GET":
            raise BadRequest(f'Missing argument: "{missing}"')
    parent, _, extra = path.rpartition("/")
    shorter = _match(routes, parent, request.method) if request.method == "POST" else None
    if shorter and shorter.dependant.body_params:
        name = shorter.dependant.body_params[0].name
        raise InvalidInput(name, extra, f"unable to convert to {name}.")
    if _match(routes, path, None) or _within(routes, parent):
        raise MethodNotAllowed
    raise NoRoute


def _match(routes: list[APIRoute], path: str, method: str | None) -> APIRoute | None:
    """The route that takes this path, with this method or (None) with any."""
    wanted = Match.FULL if method else Match.PARTIAL
    scope = {"type": "http", "path": path, "method": method or "-", "root_path": ""}
    return next((route for route in routes if route.matches(scope)[0] is wanted), None)


def _within(routes: list[APIRoute], parent: str) -> bool:
    """Whether this is a collection, or the place of a cluster's actions."""
    known = {route.path for route in routes} | {route.path.rpartition("/")[0] for route in routes}
    return any(
        compile_path(path)[0].match(parent)
        for path in known
        if path != "/v1" and not path.endswith("}")
    )
