"""The application of magnum-api: its parts, stages and routes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from oslo_config import cfg
from starlette.convertors import Convertor, register_url_convertor
from starlette.middleware import Middleware

from trimaran import web
from trimaran.config import common
from trimaran.magnum.api import cors, microversions, parts
from trimaran.magnum.api.controllers import (
    actions,
    certificates,
    cluster_templates,
    clusters,
    federations,
    mservices,
    nodegroups,
    quotas,
    root,
    stats,
)
from trimaran.magnum.api.errors import render
from trimaran.magnum.api.parts import Parts
from trimaran.magnum.api.paths import OnePath
from trimaran.magnum.api.pipeline import TokenRoute, nowhere

#: what needs no token, exactly; a test walks all routes and compares
PUBLIC = ("/", "/v1", "/healthcheck", "/metrics", "/openapi.json")
#: oslo.middleware's file that takes a service out of its load balancer
_DISABLE_FILE = "/etc/magnum/healthcheck_disable"
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"]


class _Anything(Convertor[str]):
    """Every rest of a path; Starlette's own ``path`` ends at a line feed."""

    regex = "[\\s\\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())

#: tried one after the other, so those that are asked most stand first
ROUTERS = (
    nodegroups.router,
    clusters.router,
    actions.router,
    cluster_templates.router,
    root.router,
    certificates.router,
    quotas.router,
    stats.router,
    mservices.router,
    federations.router,
)


def build(conf: cfg.ConfigOpts, transport: Any = None) -> FastAPI:
    """The API for a configuration.

    Args:
        conf: loaded ``magnum.conf``.
        transport: an oslo.messaging transport shared with a conductor in this
            process; None: the configuration's.
    """
    return assemble(conf, parts.build(conf, transport))


def assemble(conf: cfg.ConfigOpts, held: Parts) -> FastAPI:
    """The API on parts that exist already.

    Args:
        conf: loaded ``magnum.conf``.
        held: what handlers use; closed when the application ends.
    """
    app = web.create_app(
        "magnum-api",
        own=common.own(conf),
        title="Container Infrastructure Management",
        version=str(microversions.MAX),
        render_error=render,
        probes={
            "database": held.db.ping,
            "identity": held.identity.ping,
            "broker": held.conductor.ping,
        },
        stages=[*cors.stages(conf), Middleware(OnePath, untouched=PUBLIC)],
        stop=[held.close],
        openapi_url="/openapi.json",
        trust_forwarded=conf.oslo_middleware.enable_proxy_headers_parsing,
        health_disable_file=_DISABLE_FILE,
        redirect_slashes=False,
    )
    app.state.parts = held
    app.state.challenge = _challenge(conf)
    app.include_router(root.root)
    for router in ROUTERS:
        app.include_router(router)
    app.state.api_routes = [
        route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)
    ]
    rest = APIRouter(route_class=TokenRoute)
    rest.add_api_route("/{path:anything}", nowhere, methods=_METHODS, include_in_schema=False)
    app.include_router(rest)
    return app


def _challenge(conf: cfg.ConfigOpts) -> str:
    """The ``WWW-Authenticate`` of keystonemiddleware: where to get a token."""
    group = conf.keystone_authtoken
    uri = getattr(group, "www_authenticate_uri", None) or getattr(group, "auth_url", None)
    return f'Keystone uri="{uri}"'
