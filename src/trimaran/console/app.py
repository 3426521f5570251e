"""The console's application.

The order of the stages, outermost first: the deck's (see ``web.app``), then
CORS, because a browser asks for permission without credentials, with a renderer
of errors inside it, so that scripts may read those too, then the rewriting of
redirects, then the limit of the time, then the token stage, which asks Keystone
already.
"""

from __future__ import annotations

import logging

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from trimaran import web
from trimaran.config.console import Settings
from trimaran.console import faults, parts, public
from trimaran.console.redirects import RelativeRedirectStage
from trimaran.console.routers import (
    contrib,
    extension,
    login,
    policies,
    prometheus,
    settings,
    sso,
    switch,
)
from trimaran.console.time_stage import TimeStage
from trimaran.console.token_stage import TokenStage
from trimaran.web.faults import ErrorStage

LOG = logging.getLogger(__name__)


def build(options: Settings) -> FastAPI:
    """Builds the application.

    Args:
        options: skyline.yaml.

    Returns:
        The application; its lifespan starts the background work and closes
        the parts.

    Raises:
        ConfigError: the database URL cannot be used.
    """
    built = parts.build(options)
    app = web.create_app(
        "console",
        own=built.own,
        title="Skyline API",
        version="0.1.0",
        render_error=faults.render,
        probes={"database": built.db.ping, "identity": built.identity.ping},
        stages=_stages(options, built),
        start=[built.runner.start],
        stop=[
            built.runner.stop,
            built.identity.close,
            built.prometheus.close,
            built.db.dispose,
        ],
        openapi_url=f"{public.API}/openapi.json",
        docs_url="/docs",
        redoc_url="/redoc",
        # Upstream sends none, and a client must notice no difference.
        request_id_header=None,
        address_header=options.default.secure_proxy_addr_header,
    )
    app.state.parts = built
    app.add_exception_handler(RequestValidationError, faults.validation)
    for group in (login, sso, switch, extension, prometheus, contrib, policies, settings):
        app.include_router(group.router, prefix=public.API)
    return app


def _stages(settings: Settings, built: parts.Parts) -> list[Middleware]:
    stages = [
        Middleware(RelativeRedirectStage),
        Middleware(TimeStage),
        Middleware(TokenStage, parts=built),
    ]
    origins = settings.default.cors_allow_origins
    if origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_credentials=True,
            allow_methods=["*"],
            allow_headers=["*"],
        )
        stages = [cors, Middleware(ErrorStage, render=faults.render), *stages]
    return stages
