"""The metadata service as an ASGI application.

Any method is answered like GET (spec ec2.md 6.2), but for the PUT of a session
token, which is not offered: 404 makes guests fall back to plain requests,
where anything else would make them give up (6.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trimaran import __version__, web
from trimaran.ec2 import parts
from trimaran.ec2.metadata import tree
from trimaran.ec2.metadata.caller import caller_of
from trimaran.ec2.metadata.lookup import Lookup
from trimaran.ec2.routing import Everything
from trimaran.errors import NotFound, TrimaranError

if TYPE_CHECKING:
    from oslo_config import cfg

_PLAIN = "text/plain; charset=utf-8"


class Endpoint:
    """Answers paths.

    Args:
        lookup: finds what is known of the server that asks.
        secret: ``metadata_proxy_shared_secret``.
    """

    def __init__(self, lookup: Lookup, secret: str) -> None:
        self._lookup = lookup
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        web.name_operation(scope, "metadata")
        found = await run_in_threadpool(self.answer, request)
        response = Response(found, headers={"content-type": _PLAIN})
        await response(scope, receive, send)

    def answer(self, request: Request) -> tree.Leaf:
        """The text at the request's path.

        Raises:
            BadRequest, Forbidden: the agent's headers (see ``caller``).
            NotFound: no such path, or no such server in the project.
        """
        steps = tree.steps_of(request.scope["path"])
        if not steps:
            return tree.versions()
        version, *rest = steps
        if not tree.is_version(version):
            raise NotFound()
        if rest[:1] == ["api"]:
            raise NotFound()
        caller = caller_of(request.headers, self._secret)
        facts = self._lookup.facts(caller, web.request_id())
        return tree.look_up(tree.tree(facts, version), rest)


def render_error(error: TrimaranError, request: Request) -> Response:
    """Errors as plain text; guests look at the status alone."""
    return Response(error.message, error.status, headers={"content-type": _PLAIN})


def build(conf: cfg.ConfigOpts) -> FastAPI:
    """The application that a loaded ``ec2api.conf`` describes.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    made = parts.assemble(conf)
    app = web.create_app(
        "ec2-metadata",
        own=made.own,
        title="EC2 metadata",
        version=__version__,
        render_error=render_error,
        probes={"database": made.db.ping, "identity": made.identity.ping},
        stop=(made.close,),
        request_id_header="X-Request-Id",
    )
    endpoint = Endpoint(Lookup(made), conf.metadata.metadata_proxy_shared_secret)
    app.router.routes.append(Everything(endpoint))
    return app
