"""What an action is given besides its request: who asks, and what it may use.

One object per request, made by ``dispatch``; nothing global.  ``once`` keeps a
listing of this request, so that kinds which look at each other (an instance at
its images) share one backend call; ``commit_point`` is the one place that
knows about DryRun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from trimaran.ec2.protocol import errors

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.cloud import CloudSession
    from trimaran.db import Database
    from trimaran.ec2.on_behalf import Deputies
    from trimaran.identity import Token
    from trimaran.policy import Context as PolicyContext
    from trimaran.policy import Enforcer

T = TypeVar("T")


@dataclass(eq=False)
class Context:
    """One EC2 request's context.

    Attributes:
        token: the Keystone token that the caller's signature was worth; scoped
            to the credential's project.  It may call no Keystone API (spec 11.1).
        request_id: ``req-<uuid4>``, also in the answer.
        action: the action's EC2 name.
        region: the region's name on the wire.
        user: the cloud as the caller.
        admin: the cloud as the service user, for what only an administrator is
            shown; every use filters by ``project_id`` itself.
        db: the database.
        conf: the loaded ``ec2api.conf``.
        enforcer: the policy of this service.
        policy_context: the caller as policy sees it.
        api_version: the client's ``Version``; echoed, never interpreted.
        dry_run: the caller's ``DryRun``.
        remote_address: the client's address.
        access_key: the EC2 access key that signed the request; no secret.
        deputies: acts for the caller when the request is over.
        now: when the request came, aware UTC.
    """

    token: Token
    request_id: str
    action: str
    region: str
    user: CloudSession
    admin: CloudSession
    db: Database
    conf: cfg.ConfigOpts
    enforcer: Enforcer
    policy_context: PolicyContext
    api_version: str = "2016-11-15"
    dry_run: bool = False
    remote_address: str = ""
    access_key: str = ""
    deputies: Deputies | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _kept: dict[Hashable, Future[Any]] = field(default_factory=dict, repr=False)

    @property
    def project_id(self) -> str:
        """The project whose resources these are; the account id on the wire (spec 2.4)."""
        return self.token.project_id or ""

    @property
    def user_id(self) -> str:
        """The caller's Keystone user id."""
        return self.token.user_id

    def once(self, key: Hashable, thunk: Callable[[], T]) -> T:
        """The thunk's result, computed once per request, also when threads ask together.

        A failure is kept as well: a listing that failed has failed for this
        request.  A thunk must not wait for a thread that asks for the same key,
        nor fan out itself (the waiters may hold the pool's threads).
        """
        with self._lock:
            future = self._kept.get(key)
            mine = future is None
            if future is None:
                future = self._kept[key] = Future()
        if mine:
            try:
                future.set_result(thunk())
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()

    def forget(self, key: Hashable) -> None:
        """Drop a kept result after a change that makes it stale."""
        with self._lock:
            self._kept.pop(key, None)

    def commit_point(self) -> None:
        """Mutating actions call this after all checks, right before the first side effect.

        Raises:
            EC2Error: ``DryRunOperation`` 412 when the caller asked for a dry run.
        """
        if self.dry_run:
            raise errors.dry_run()

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Check one more policy rule than the action's own (which dispatch has checked).

        Raises:
            Forbidden: rendered as ``UnauthorizedOperation`` 403.
        """
        self.enforcer.authorize(rule, self.policy_context, target)
