"""Errors of this wire and their one renderer.

Answers carry a list with one error object, as the API guidelines of OpenStack
have it; python-magnumclient needs ``errors[0].title``.  Only a 401 keeps the
body of keystonemiddleware, which upstream sends from outside of its own
application.  Spec section 1.4; faults F-49 to F-51.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trimaran.errors import BadRequest, TrimaranError, Unauthenticated
from trimaran.web import request_id

if TYPE_CHECKING:
    from trimaran.magnum.api.microversions import Version

#: where a client reads about microversions (upstream's own link)
_HELP = "http://docs.openstack.org/api-guide/compute/microversions.html"


class NotAcceptable(TrimaranError):
    """The version header cannot be used, or the method is not in that version (406)."""

    status = 406
    default = "Not Acceptable"


class VersionUnsupported(NotAcceptable):
    """The version is outside of the range (406)."""

    def __init__(self, message: str, *, version: Version, low: Version, high: Version) -> None:
        super().__init__(message)
        self.version = version
        self.low = low
        self.high = high


class NoRoute(TrimaranError):
    """No such path (404), told without text as upstream's router does."""

    status = 404
    default = "Not Found"


class MethodNotAllowed(TrimaranError):
    """The path does not take this method (405), told without text."""

    status = 405
    default = "Method Not Allowed"


class UnsupportedMediaType(TrimaranError):
    """A body that is not JSON (415)."""

    status = 415

    def __init__(self, media_type: str) -> None:
        super().__init__(f"Unknown mimetype: {media_type}")


class InvalidInput(BadRequest):
    """One field of the request is wrong (400).

    Args:
        name: the field or argument.
        value: what was sent.
        reason: upstream's sentence.
    """

    #: longest part of a value that is sent back
    shown: ClassVar[int] = 1024

    def __init__(self, name: str, value: object, reason: str) -> None:
        text = str(value)[: self.shown]
        super().__init__(f"Invalid input for field/attribute {name}. Value: '{text}'. {reason}")


class _Answer(JSONResponse):
    """JSON in ASCII: an error may quote text that cannot be encoded otherwise."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode("ascii")


def _object(error: TrimaranError) -> dict[str, Any]:
    if isinstance(error, VersionUnsupported):
        return {
            "code": "magnum.microversion-unsupported",
            "title": "Requested microversion is unsupported",
            "description": error.message,
            "max_version": str(error.high),
            "min_version": str(error.low),
            "links": [{"rel": "help", "href": _HELP}],
        }
    code, title, detail = "", "", ""
    if isinstance(error, NotAcceptable):
        title, detail = NotAcceptable.default, error.message
    elif not isinstance(error, NoRoute | MethodNotAllowed):
        code = "client" if 400 <= error.status < 500 else "server"
        title, detail = error.message.split(".", 1)[0], error.message
    return {
        "request_id": request_id(),
        "code": code,
        "status": error.status,
        "title": title,
        "detail": detail,
        "links": [],
    }


def render(error: TrimaranError, request: Request) -> Response:
    """The answer that tells an error.

    Args:
        error: what happened.
        request: the request; its microversion goes into the headers when known.
    """
    if isinstance(error, Unauthenticated):
        challenge = getattr(request.app.state, "challenge", "Keystone")
        return JSONResponse(
            {"error": {"code": 401, "title": "Unauthorized", "message": Unauthenticated.default}},
            status_code=401,
            headers={"WWW-Authenticate": challenge, **error.headers},
        )
    return _Answer(
        {"errors": [_object(error)]},
        status_code=error.status,
        headers={**error.headers, **_version_headers(error, request)},
    )


def _version_headers(error: TrimaranError, request: Request) -> dict[str, str]:
    from trimaran.magnum.api import microversions  # it raises what is defined here

    version = getattr(request.state, "version", None) or microversions.MIN
    if isinstance(error, VersionUnsupported):
        version = error.version
    return microversions.headers(version)
