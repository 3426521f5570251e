"""A small application on the deck's stages, for tests of the web layer."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse

from trimaran import errors, web
from trimaran.config.common import defaults
from trimaran.identity import outgoing_headers


def render(error: errors.TrimaranError, request: Request) -> PlainTextResponse:
    """A wire of its own, to see who rendered."""
    return PlainTextResponse(f"wire:{type(error).__name__}:{error.message}", error.status)


def make(**options: Any) -> FastAPI:
    """Builds the application; options are ``create_app``'s."""
    values: dict[str, Any] = {
        "own": defaults(max_body=1000, max_header=4000),
        "title": "t",
        "version": "1",
        "render_error": render,
    }
    app = web.create_app("test", **{**values, **options})

    @app.get("/boom")
    def boom() -> None:
        raise ValueError("inner secret")

    @app.get("/known")
    def known() -> None:
        raise errors.Conflict("taken", headers={"Retry-After": "7"})

    @app.get("/gone")
    def gone() -> None:
        raise errors.Unavailable(service="compute")

    @app.post("/echo")
    def echo(body: dict[str, Any]) -> dict[str, Any]:
        return body

    @app.get("/who")
    def who(request: Request) -> dict[str, Any]:
        return {
            "id": web.request_id(),
            "address": web.remote_address(request),
            "out": dict(outgoing_headers.get()),
            "url": str(request.url),
        }

    return app
