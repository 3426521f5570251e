"""One EC2 request from bytes to bytes, in the order that the wire promises.

Parameters are collected, the signature is checked, the action is found and
authorised, its arguments are typed, it runs, its result is rendered.  Whatever
is raised on the way becomes an EC2 error document with the request's id; what
nobody expected is logged with its trace and told as ``InternalError``.  All of
it is blocking work for a thread of the server's pool.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trimaran import errors as deck
from trimaran import policy
from trimaran.ec2 import auth, sts
from trimaran.ec2.actions import Action
from trimaran.ec2.auth import Signed
from trimaran.ec2.context import Context
from trimaran.ec2.on_behalf import Deputies
from trimaran.ec2.protocol import errors, parameters, parse, render
from trimaran.ec2.protocol.errors import EC2Error

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.cloud import Cloud
    from trimaran.db import Database
    from trimaran.identity import Identity, Token

LOG = logging.getLogger(__name__)

DEFAULT_VERSION = "2016-11-15"
_LONGEST_VERSION = 64


@dataclass(frozen=True)
class Incoming:
    """What arrived.

    Attributes:
        headers: names lower case; repeated ones joined by commas.
        path: percent-encoded as sent.
    """

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes
    request_id: str
    remote_address: str = ""


@dataclass(frozen=True)
class Answer:
    """What goes back; ``action`` is a name that we offer, or empty."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    action: str = ""


class Dispatcher:
    """Answers EC2 requests; one per application, shared by all threads.

    Args:
        actions: the actions offered, by EC2 name.
        identity: Keystone.
        cloud: the OpenStack services.
        db: the database.
        enforcer: the policy with the rules of ``actions.rules()``.
        conf: the loaded ``ec2api.conf``.
        region: the region's name.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        *,
        identity: Identity,
        cloud: Cloud,
        db: Database,
        enforcer: policy.Enforcer,
        conf: cfg.ConfigOpts,
        region: str,
    ) -> None:
        self._actions = actions
        self._identity = identity
        self._cloud = cloud
        self._db = db
        self._enforcer = enforcer
        self._conf = conf
        self._region = region
        self._deputies = Deputies(identity, cloud, region)

    def answer(self, incoming: Incoming) -> Answer:
        """Answers one request; never raises."""
        action = version = None
        try:
            sent = parameters.collect(
                incoming.query, incoming.headers.get("content-type", ""), incoming.body
            )
            action, version = sent.get("Action"), sent.get("Version")
            body = self._run(incoming, sent, action, version or DEFAULT_VERSION)
            status, headers = 200, {}
        except Exception as error:  # noqa: BLE001 - the wire's last line
            told = self._told(error, action, incoming)
            status, headers = told.status, told.headers
            if sts.is_sts(action, version):
                body = sts.error_xml(told, incoming.request_id)
            else:
                body = errors.error_xml(told, incoming.request_id)
        known = action if action and self._knows(action) else ""
        return Answer(status, body, headers, known)

    def _knows(self, action: str) -> bool:
        return action in self._actions or action == sts.ACTION

    def _run(
        self,
        incoming: Incoming,
        sent: parameters.Parameters,
        name: str | None,
        version: str,
    ) -> bytes:
        now = datetime.now(UTC)
        signed = Signed(incoming.method, incoming.path, incoming.headers, sent, incoming.body)
        token = auth.authenticate(signed, self._identity, now, self._conf.ec2_timestamp_expiry)
        if not name:
            raise EC2Error("MissingAction", "The request is missing the parameter Action.")
        if name == sts.ACTION:
            return sts.caller_identity(token, incoming.request_id)
        action = self._actions.get(name)
        if action is None:
            raise errors.invalid_action(name)
        if len(version) > _LONGEST_VERSION:
            raise errors.invalid_value("Version", version)
        context = self._context(incoming, token, name, version, now)
        context.access_key = auth.access_key(signed)
        context.authorize(action.rule)
        request = parse.parse(action.operation, sent.arguments)
        context.dry_run = bool(request.pop("DryRun", False))
        result = action.function(context, request)
        # An action that changes things has raised this before its first change.
        context.commit_point()
        return render.render(
            action.operation, result, version=version, request_id=incoming.request_id
        )

    def _context(
        self, incoming: Incoming, token: Token, name: str, version: str, now: datetime
    ) -> Context:
        return Context(
            token=token,
            request_id=incoming.request_id,
            action=name,
            region=self._region,
            user=self._cloud.as_user(token),
            admin=self._cloud.as_service(),
            db=self._db,
            conf=self._conf,
            enforcer=self._enforcer,
            policy_context=policy.Context(
                token=token,
                request_id=incoming.request_id,
                remote_address=incoming.remote_address,
            ),
            api_version=version,
            remote_address=incoming.remote_address,
            deputies=self._deputies,
            now=now,
        )

    def _told(self, error: Exception, action: str | None, incoming: Incoming) -> EC2Error:
        # A client's own text never reaches the log: it could forge lines.
        shown = action if action and self._knows(action) else "-"
        if not isinstance(error, deck.TrimaranError):
            LOG.error("%s %s failed", incoming.request_id, shown, exc_info=error)
        elif isinstance(error, deck.Unavailable):
            LOG.warning(
                "%s %s: %s does not answer: %s",
                incoming.request_id,
                shown,
                error.service or "a service",
                error.message,
            )
        return errors.to_ec2(error)
