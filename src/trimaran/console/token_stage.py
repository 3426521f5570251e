"""Who may pass: from cookie or header to a validated caller, and the renewal on the way back.

A pure ASGI stage.  The signature, the look-up by primary key and Keystone's
answer (remembered for seconds) are blocking work and run on the server's
threads, never on the event loop, where one slow Keystone call would stop all
requests of the process (spec/skyline.md F21).
"""

from __future__ import annotations

import logging

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimaran.console import faults, public
from trimaran.console.caller import STATE, Caller
from trimaran.console.parts import Parts
from trimaran.console.sessions import Session, token_key
from trimaran.db.queries import console as queries
from trimaran.errors import Unauthenticated
from trimaran.identity import NoEndpoint, Token

LOG = logging.getLogger(__name__)

TOKEN_HEADER = "x-auth-token"  # noqa: S105 - a header's name


class TokenStage:
    """Authenticates every request that is not public.

    Args:
        app: the next stage.
        parts: database, Keystone and the sessions.
    """

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self.app = app
        self.parts = parts
        self.public = public.PATHS
        if parts.settings.trimaran.anonymous_domains:
            self.public |= {public.DOMAINS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or not public.needs_credentials(
            scope, scope["app"].routes, self.public
        ):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        cookie = connection.cookies.get(self.parts.sessions.cookie)
        header = connection.headers.get(TOKEN_HEADER)
        try:
            caller = await run_in_threadpool(self.authenticate, cookie, header)
        except Unauthenticated as error:
            await faults.unauthorized(error.message)(scope, receive, send)
            return
        renewed = self.parts.sessions.renewed(caller.session) if caller.by_cookie else None
        if renewed is not None:
            caller = Caller(caller.token, renewed, by_cookie=True)
            send = self._renewing(connection, renewed, send)
        scope.setdefault("state", {})[STATE] = caller
        await self.app(scope, receive, send)

    def authenticate(self, cookie: str | None, header: str | None) -> Caller:
        """Finds out who calls; blocks.

        Args:
            cookie: value of the session cookie; a bad one is not rescued by a
                good header (spec/skyline.md 2.1).
            header: value of X-Auth-Token.

        Raises:
            Unauthenticated: the message is the reason.
            Unavailable: database or Keystone do not answer.
        """
        if cookie:
            session = self.parts.sessions.decode(cookie)
        elif header:
            region = self.parts.settings.openstack.default_region
            session = self.parts.sessions.new(header, region)
        else:
            raise Unauthenticated("Token not found")
        keys = [token_key(session.keystone_token)]
        if cookie:
            keys.append(session.uuid)
        if self._revoked(keys):
            raise Unauthenticated("Token revoked")
        token = self._validate(session)
        if token.project_id is None:
            raise Unauthenticated("'project'")
        return Caller(token, session, by_cookie=bool(cookie))

    def _revoked(self, keys: list[str]) -> bool:
        # Never remembered: a logout must be felt by every process at once.
        return self.parts.db.read(lambda session: queries.is_revoked(session, *keys))

    def _validate(self, session: Session) -> Token:
        identity = self.parts.identity
        try:
            return identity.validate(session.keystone_token, region=session.region)
        except Unauthenticated as error:
            status = getattr(error.__cause__, "remote_status", 0) or 404
            raise Unauthenticated(f"401: Failed to validate token (HTTP {status})") from error
        except NoEndpoint:
            if session.region not in identity.service_regions():
                raise Unauthenticated("401: Endpoint not found") from None
        # The region lives but has no Keystone of its own (F18).
        LOG.debug("region %s has no identity endpoint, asking the default one", session.region)
        return identity.validate(session.keystone_token)

    def _renewing(self, connection: HTTPConnection, session: Session, send: Send) -> Send:
        """Appends the cookies, unless the handler has set the session itself.

        Two session cookies in one answer, the old one last, would undo a
        switch of the project or a logout (F11, F12).
        """
        sessions = self.parts.sessions
        own = f"{sessions.cookie}=".encode("latin-1")

        async def renewing(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if not any(
                    name == b"set-cookie" and value.startswith(own) for name, value in headers.raw
                ):
                    carrier = Response()
                    sessions.set_cookies(carrier, session, connection)
                    for cookie in carrier.headers.getlist("set-cookie"):
                        headers.append("set-cookie", cookie)
            await send(message)

        return renewing
