"""The EC2 API as an ASGI application.

Any path and any method belong to the one endpoint (spec ec2.md 1.1); only the
exact health and metrics paths, which ``web.create_app`` registers first, are
answered without a signature.  The endpoint reads the body on the event loop
and hands everything else to a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trimaran import __version__, web
from trimaran.ec2 import actions, parts
from trimaran.ec2.dispatch import Dispatcher, Incoming
from trimaran.ec2.jobs import Crew
from trimaran.ec2.protocol import errors
from trimaran.ec2.routing import Everything
from trimaran.errors import TrimaranError
from trimaran.policy import Enforcer

if TYPE_CHECKING:
    from oslo_config import cfg

_XML = {"content-type": "text/xml"}
REQUEST_ID_HEADER = "x-amzn-RequestId"
_NO_ACTION = "none"


class Endpoint:
    """Feeds requests to the dispatcher."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        incoming = incoming_of(request, await request.body())
        answer = await run_in_threadpool(self._dispatcher.answer, incoming)
        web.name_operation(scope, answer.action or _NO_ACTION)
        response = Response(answer.body, answer.status, headers={**_XML, **answer.headers})
        await response(scope, receive, send)


def incoming_of(request: Request, body: bytes) -> Incoming:
    """What the dispatcher is told of an HTTP request."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Incoming(
        method=request.method,
        path=request.scope["raw_path"].decode("latin-1") or "/",
        query=request.scope["query_string"],
        headers=headers,
        body=body,
        request_id=web.request_id(),
        remote_address=web.remote_address(request),
    )


def render_error(error: TrimaranError, request: Request) -> Response:
    """Errors from outside the dispatcher (limits, broken HTTP) in EC2's XML."""
    told = errors.to_ec2(error)
    return Response(errors.error_xml(told, web.request_id()), told.status, headers=_XML)


def build(conf: cfg.ConfigOpts) -> FastAPI:
    """The application that a loaded ``ec2api.conf`` describes.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    made = parts.assemble(conf)
    dispatcher = Dispatcher(
        actions.implemented(),
        identity=made.identity,
        cloud=made.cloud,
        db=made.db,
        enforcer=Enforcer.from_conf("ec2", actions.rules(), conf),
        conf=conf,
        region=made.region,
    )
    crew = Crew(made)
    app = web.create_app(
        "ec2-api",
        own=made.own,
        title="EC2 API",
        version=__version__,
        render_error=render_error,
        probes={"database": made.db.ping, "identity": made.identity.ping},
        start=(crew.start,),
        stop=(crew.stop, made.close),
        request_id_header=REQUEST_ID_HEADER,
        trust_forwarded=bool(conf.use_forwarded_for),
    )
    app.router.routes.append(Everything(Endpoint(dispatcher)))
    return app
