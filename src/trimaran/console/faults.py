"""The console's error shapes (spec/skyline.md 1.1), one place for each.

Handlers answer ``{"detail"}``, the token stage ``{"message"}``, unexpected
errors plain text.  A part that is down is none of these upstream, where it
became a 401 that threw users out: here it is 503 ``{"message"}`` (F20).
"""

from __future__ import annotations

import json
from typing import Any

from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import HTTPException, RequestValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from trimaran.errors import TrimaranError, Unavailable
from trimaran.identity import RemoteError

# Of a validation: a body may have a hundred thousand, and nobody reads on.
FAULTS = 100


def render(error: TrimaranError, request: Request) -> Response:
    """Renders an error of the tree."""
    if isinstance(error, Unavailable):
        return JSONResponse({"message": error.message}, error.status)
    if error.status == 500:
        return PlainTextResponse("Internal Server Error", 500)
    return JSONResponse({"detail": error.message}, error.status)


def unauthorized(reason: str) -> Response:
    """The token stage's 401."""
    return JSONResponse({"message": f"Unauthorized: {reason}"}, 401)


def refused(error: TrimaranError) -> TrimaranError | HTTPException:
    """What a login answers to an error: whatever the caller caused is 401 with the reason."""
    if isinstance(error, Unavailable):
        return error
    return HTTPException(401, text(error))


def text(error: TrimaranError) -> str:
    """The error in the words of OpenStack's client library, which the front end searches."""
    if not isinstance(error, RemoteError) or not error.remote_status:
        return error.message
    request_id = f" (Request-ID: {error.request_id})" if error.request_id else ""
    return f"{error.remote_message or error.message} (HTTP {error.remote_status}){request_id}"


def validation(request: Request, error: Exception) -> Response:
    """Renders failed validation as FastAPI does, also when the input cannot be JSON."""
    assert isinstance(error, RequestValidationError)
    # A body of a type that is not read here is in the errors as its bytes.
    faults = jsonable_encoder(error.errors()[:FAULTS], custom_encoder={bytes: _text})
    try:
        return JSONResponse({"detail": faults}, 422)
    except (ValueError, RecursionError):
        # NaN, lone surrogates: accepted by the parser, refused by the renderer.
        return JSONResponse({"detail": [_without_input(fault) for fault in faults]}, 422)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _without_input(fault: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fault.items() if name not in {"input", "ctx"}}
    clean: dict[str, Any] = json.loads(json.dumps(kept).encode("ascii", "replace"))
    return clean | {"input": None}
