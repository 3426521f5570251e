"""The metadata service as an ASGI application.

Any method is answered like GET (spec ec2.md 6.2), but for the PUT of a session
token.  What is known needs neither database nor cloud and is answered on the
event loop; everything else goes to a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trimaran import __version__, web
from trimaran.ec2 import parts
from trimaran.ec2.metadata import nova, tree
from trimaran.ec2.metadata.admission import TTL_HEADER, Admission
from trimaran.ec2.metadata.caller import Caller, Provider, caller_of
from trimaran.ec2.metadata.lookup import Lookup
from trimaran.ec2.metadata.providers import Providers
from trimaran.ec2.metadata.tokens import Tokens
from trimaran.ec2.routing import Everything
from trimaran.errors import NotFound, TrimaranError

if TYPE_CHECKING:
    from oslo_config import cfg

_PLAIN = "text/plain; charset=utf-8"
_TOKEN = ["api", "token"]


@dataclass(frozen=True)
class Desk:
    """What answers.

    Attributes:
        secret: ``metadata_proxy_shared_secret``.
        lookup: finds what is known of the server that asks.
        providers: finds servers that NSX names.
        admission: the options and tokens.
        nova: passes ``/openstack`` on.
    """

    secret: str
    lookup: Lookup
    providers: Providers
    admission: Admission
    nova: nova.NovaMetadata

    def at_once(self, request: Request, steps: list[str]) -> Response | None:
        """The answer to a request, unless something has to be asked for.

        Raises:
            TrimaranError: what `answer` raises as well.
        """
        if not steps:
            return _plain(tree.versions())
        if steps[0] == nova.PREFIX or steps[1:2] == ["api"]:
            return None
        who = self._who(request, steps)
        caller = self.providers.at_hand(who) if isinstance(who, Provider) else who
        facts = self.lookup.at_hand(caller) if caller else None
        if caller is None or facts is None:
            return None
        self.admission.check(caller, facts.options, request.headers)
        try:
            return _plain(tree.look_up(facts.tree(steps[0]), steps[1:], wait=False))
        except tree.NotAtHand:
            return None

    def answer(self, request: Request, steps: list[str], body: bytes) -> Response:
        """The answer to a request.

        Args:
            request: method, query and headers.
            steps: the names in its path, at least one.
            body: for Nova.

        Raises:
            BadRequest, Forbidden: the proxy's headers (see ``caller``).
            Unauthenticated, Forbidden: see ``admission``.
            NotFound: no such path, or no such server in the project.
            Unavailable: a part does not answer.
        """
        who = self._who(request, steps)
        caller = self.providers.caller(who) if isinstance(who, Provider) else who
        version, *rest = steps
        if version == nova.PREFIX:
            self.admission.check(caller, self.lookup.options(caller), request.headers)
            query = request.scope["query_string"]
            content, kind = self.nova.ask(caller, request.method, steps, query, body)
            return Response(content, headers={"content-type": kind})
        if rest[:1] == ["api"]:
            return self._token(caller, request, steps)
        facts = self.lookup.facts(caller)
        self.admission.check(caller, facts.options, request.headers)
        return _plain(tree.look_up(facts.tree(version), rest))

    def _who(self, request: Request, steps: list[str]) -> Caller | Provider:
        if steps[0] != nova.PREFIX and not tree.is_version(steps[0]):
            raise NotFound()
        return caller_of(request.headers, self.secret)

    def _token(self, caller: Caller, request: Request, steps: list[str]) -> Response:
        if steps != [tree.LATEST, *_TOKEN]:
            raise NotFound()
        if request.method != "PUT":
            return Response(status_code=405, headers={"allow": "PUT", "content-type": _PLAIN})
        options = self.lookup.options(caller)
        token, seconds = self.admission.token(caller, options, request.headers)
        response = _plain(token)
        response.headers[TTL_HEADER] = str(seconds)
        return response


class Endpoint:
    """The application around the desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        steps = tree.steps_of(scope["path"])
        passed_on = steps[:1] == [nova.PREFIX]
        web.name_operation(scope, nova.PREFIX if passed_on else "metadata")
        response = self._desk.at_once(request, steps)
        if response is None:
            body = await request.body() if passed_on else b""
            response = await run_in_threadpool(self._desk.answer, request, steps, body)
        await response(scope, receive, send)


def _plain(text: tree.Leaf) -> Response:
    return Response(text, headers={"content-type": _PLAIN})


def render_error(error: TrimaranError, request: Request) -> Response:
    """Errors as plain text; guests look at the status alone."""
    return Response(error.message, error.status, headers={"content-type": _PLAIN})


def build(conf: cfg.ConfigOpts) -> FastAPI:
    """The application that a loaded ``ec2api.conf`` describes.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    made = parts.assemble(conf)
    secret = conf.metadata.metadata_proxy_shared_secret
    desk = Desk(
        secret=secret,
        lookup=Lookup(made),
        providers=Providers(made.cloud, conf.metadata.cache_expiration),
        admission=Admission(Tokens(secret)),
        nova=nova.NovaMetadata(conf, made.own),
    )
    app = web.create_app(
        "ec2-metadata",
        own=made.own,
        title="EC2 metadata",
        version=__version__,
        render_error=render_error,
        probes={"database": made.db.ping, "identity": made.identity.ping},
        stop=(desk.nova.close, made.close),
        request_id_header="X-Request-Id",
    )
    app.router.routes.append(Everything(Endpoint(desk)))
    return app
