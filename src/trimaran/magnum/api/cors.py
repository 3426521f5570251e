"""Cross-origin requests of browsers, under oslo.middleware's options.

It stands before the token stage, because a preflight carries no token.  An
OPTIONS request is answered with 200 in any case, as upstream's stage does.
Spec sections 1.1 and 9.
"""

from __future__ import annotations

from oslo_config import cfg
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

_HEADERS = [
    "X-Auth-Token",
    "X-Identity-Status",
    "X-Roles",
    "X-Service-Catalog",
    "X-User-Id",
    "X-Tenant-Id",
    "X-OpenStack-Request-ID",
    "X-Server-Management-Url",
]
_OPTIONS = [
    cfg.ListOpt("allowed_origin", default=[], help="Origins that may read answers."),
    cfg.BoolOpt("allow_credentials", default=True, help="Whether credentials may be sent."),
    cfg.ListOpt("expose_headers", default=_HEADERS, help="Headers that scripts may read."),
    cfg.IntOpt("max_age", default=3600, help="Seconds that a preflight may be remembered."),
    cfg.ListOpt(
        "allow_methods",
        default=["GET", "PUT", "POST", "DELETE", "PATCH"],
        help="Methods that scripts may use.",
    ),
    cfg.ListOpt("allow_headers", default=_HEADERS, help="Headers that scripts may send."),
]


class AnswerOptions:
    """Answers OPTIONS with 200 and nothing else.

    Args:
        app: the next stage.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            await Response(status_code=200)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def stages(conf: cfg.ConfigOpts) -> list[Middleware]:
    """The stages that the configuration asks for, outermost first.

    Args:
        conf: loaded ``magnum.conf``; group ``cors`` is registered here.
    """
    conf.register_opts(_OPTIONS, group="cors")
    options = conf.cors
    found = [Middleware(AnswerOptions)]
    if options.allowed_origin:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=options.allowed_origin,
            allow_credentials=options.allow_credentials,
            allow_methods=options.allow_methods,
            allow_headers=options.allow_headers,
            expose_headers=options.expose_headers,
            max_age=options.max_age,
        )
        found.insert(0, cors)
    return found
