"""The application that every hull starts from.

All stages are composed here and nowhere else, because their order is the
design.  The stages do no I/O of their own, so they are the only asynchronous
code; handlers are plain functions on the server's threads.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trimaran.config.common import Own
from trimaran.errors import TrimaranError
from trimaran.web import metrics
from trimaran.web.access import AccessLogStage
from trimaran.web.context import RequestIdStage, new_request_id
from trimaran.web.faults import ErrorStage, Render, respond
from trimaran.web.health import Health, Probe, Probes
from trimaran.web.limits import LimitStage
from trimaran.web.metrics import MetricsStage
from trimaran.web.proxy import ProxyStage

LOG = logging.getLogger(__name__)

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
Step = Callable[[], object]


def create_app(
    name: str,
    *,
    own: Own,
    title: str,
    version: str,
    render_error: Render,
    probes: Mapping[str, Probe] | None = None,
    stages: Sequence[Middleware] = (),
    start: Sequence[Step] = (),
    stop: Sequence[Step] = (),
    lifespan: Lifespan | None = None,
    openapi_url: str | None = None,
    docs_url: str | None = None,
    redoc_url: str | None = None,
    request_id_header: str | None = "X-Openstack-Request-Id",
    trust_forwarded: bool = False,
    address_header: str | None = None,
    health_path: str = "/healthcheck",
    health_disable_file: str | None = None,
    metrics_path: str = "/metrics",
    unlimited_bodies: tuple[str, ...] = (),
    **fastapi: Any,
) -> FastAPI:
    """Builds a hull's application with everything but its own routes.

    Args:
        name: the service in metrics.
        own: the deck's options; ``max_header`` and ``max_body`` are used here.
        title: title of the OpenAPI document.
        version: version in the OpenAPI document.
        render_error: turns an error into an answer of the hull's wire; also
            called for unexpected exceptions, with a plain ``TrimaranError``.
        probes: part to a callable that raises when the part is away.
        stages: the hull's own stages, inside all of ours.
        start: called in order, on a thread, before the first request.
        stop: called in order, on a thread, after the last request; one that
            fails is logged and the next is called.
        lifespan: an asynchronous alternative to start and stop.
        openapi_url: path of the OpenAPI document; None for none.
        docs_url: path of the interactive documentation; None for none.
        redoc_url: path of the reference; None for none.
        request_id_header: response header with the request id; None for none.
        trust_forwarded: believe ``X-Forwarded-*``.
        address_header: believe this header's single address.
        health_path: exact path of the health check.
        health_disable_file: see ``Health``.
        metrics_path: exact path of the metrics.
        unlimited_bodies: see ``LimitStage``.
        fastapi: further arguments for FastAPI.

    Returns:
        The application; its routes for health and metrics come first, so that
        a catch-all route does not hide them.
    """

    async def refuse(error: TrimaranError, scope: Scope, receive: Receive, send: Send) -> None:
        response = respond(render_error, error, Request(scope))
        await response(scope, receive, send)

    # Outermost first:
    composed = [
        # The client's address is in the log line and in outgoing calls.
        Middleware(ProxyStage, trust_forwarded=trust_forwarded, header=address_header),
        # Every later line of log can name the request.
        Middleware(RequestIdStage, header=request_id_header),
        # Sees the final status and size, refusals and rendered errors included.
        Middleware(AccessLogStage, quiet=frozenset({health_path, metrics_path})),
        # Counts what the log shows; inside it so that the log's work is not measured.
        Middleware(MetricsStage, service=name),
        # Before anything reads the body or looks at a header.
        Middleware(
            LimitStage,
            refuse=refuse,
            max_header=own.max_header,
            max_body=own.max_body,
            unlimited=unlimited_bodies,
        ),
        # Innermost of ours: nothing between it and the application may fail unseen.
        Middleware(ErrorStage, render=render_error),
        *stages,
    ]
    app = FastAPI(
        title=title,
        version=version,
        middleware=composed,
        lifespan=_lifespan(start, stop, lifespan),
        openapi_url=openapi_url,
        docs_url=docs_url,
        redoc_url=redoc_url,
        **fastapi,
    )

    def trimaran_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, TrimaranError)
        return respond(render_error, error, request)

    def scrape(request: Request) -> Response:
        return Response(metrics.text(), media_type=metrics.CONTENT_TYPE)

    app.add_exception_handler(TrimaranError, trimaran_error)

    def refuse_unread(error: TrimaranError, request: Request) -> Response:
        # No stage has seen the request, but its answer can be named as any other.
        with new_request_id() as identifier:
            response = respond(render_error, error, request)
        if request_id_header is not None:
            response.headers[request_id_header] = identifier
        return response

    app.state.refuse_unread = refuse_unread
    health = Health(Probes(probes or {}), health_disable_file)
    app.add_route(health_path, health.__call__, methods=["GET"], include_in_schema=False)
    app.add_route(metrics_path, scrape, methods=["GET"], include_in_schema=False)
    return app


def _lifespan(start: Sequence[Step], stop: Sequence[Step], inner: Lifespan | None) -> Lifespan:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(_stop, stop)
            for step in start:
                await run_in_threadpool(step)
            if inner is not None:
                await stack.enter_async_context(inner(app))
            yield

    return lifespan


async def _stop(steps: Sequence[Step]) -> None:
    for step in steps:
        try:
            await run_in_threadpool(step)
        except Exception:
            LOG.exception("a part did not stop cleanly")
