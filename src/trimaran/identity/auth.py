"""The two ways our requests carry a token.

``TokenAuth`` is a caller's own token: fixed, with the catalog that came with
it.  ``ServiceAuth`` is our service user's: made at first need, renewed before
it ends, thrown away when a service refuses it.  Neither discovers versions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session
from keystoneauth1.access import AccessInfo
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.plugin import BaseAuthPlugin

from trimaran.identity import budget, remote
from trimaran.identity import catalog as catalogs
from trimaran.identity.token import Token

LOG = logging.getLogger(__name__)

# After a failed authentication the next tries fail at once for that long, so
# that a hundred waiting requests do not become a hundred tries in a row.
BACKOFF = 1.0
# A refusal of a token younger than this belongs to a request that was sent
# with the token before it; throwing the new one away would start a storm.
FRESH = 2.0
# keystoneauth renews a token two minutes before its end.  When Keystone is away
# just then, the old one still serves, but not for a call that may outlive it.
_LAST_SECONDS = 10


class TokenAuth(BaseAuthPlugin):
    """Sends a caller's token; endpoints come from that token's catalog.

    Args:
        token: the validated token.
        service_token: gives our own token for ``X-Service-Token``, which
            proves to a service that the caller comes through us; None sends none.
    """

    def __init__(self, token: Token, service_token: Callable[[], str] | None = None) -> None:
        super().__init__()
        self._token = token
        self._service_token = service_token

    def get_token(self, session: ks_session.Session, **_: Any) -> str:
        """Returns the token."""
        return self._token.id

    def get_headers(self, session: ks_session.Session, **_: Any) -> dict[str, str]:
        """Returns the headers that authenticate a request."""
        headers = {"X-Auth-Token": self._token.id}
        if self._service_token is not None:
            headers["X-Service-Token"] = self._service_token()
        return headers

    def get_endpoint(
        self,
        session: ks_session.Session,
        service_type: str | None = None,
        interface: Any = "public",
        region_name: str | None = None,
        **_: Any,
    ) -> str | None:
        """Returns the catalog's URL unchanged, or None."""
        return catalogs.find_url(
            self._token.catalog,
            service_type or "",
            region=region_name,
            interface=str(interface or "public"),
        )

    def get_user_id(self, session: ks_session.Session, **_: Any) -> str:
        """Returns the caller's user id."""
        return self._token.user_id

    def get_project_id(self, session: ks_session.Session, **_: Any) -> str | None:
        """Returns the caller's project id."""
        return self._token.project_id


class ServiceAuth(BaseAuthPlugin):
    """Our service user's token, shared by all threads.

    Args:
        inner: keystoneauth's plugin with the credentials.
    """

    def __init__(self, inner: BaseIdentityPlugin) -> None:
        super().__init__()
        self._inner = inner
        self._lock = threading.Lock()
        self._access: AccessInfo | None = None
        self._minted_at = 0.0
        self._good_until = 0.0
        self._failed_at: float | None = None
        self._reason = ""

    @property
    def auth_url(self) -> str:
        """Keystone's URL as configured."""
        return str(self._inner.auth_url or "")

    def access(self, session: ks_session.Session) -> AccessInfo:
        """Returns the current token with its catalog, authenticating when needed.

        Raises:
            RemoteUnavailable: Keystone cannot be reached or refuses our user.
        """
        with self._lock:
            known = self._access
            if (
                known is not None
                and self._inner.auth_ref is known
                and time.time() < self._good_until
            ):
                # keystoneauth would read the end of the token out of its text each time.
                return known
            if self._failed_at is not None and time.monotonic() - self._failed_at < BACKOFF:
                return self._old_one(remote.unreachable("identity", self._reason))
            try:
                # A request that has no time left must not fail this for all others.
                with budget.apart():
                    access = self._inner.get_access(session)
            except (ks_exceptions.ClientException, KeyError, TypeError, ValueError) as failure:
                self._failed_at = time.monotonic()
                self._reason = self._explain(failure)
                LOG.error("identity: no token for our service user: %s", self._reason)
                return self._old_one(remote.unreachable("identity", self._reason))
            self._failed_at = None
            if access is not self._access:
                self._access = access
                self._minted_at = time.monotonic()
                spare = self._inner.MIN_TOKEN_LIFE_SECONDS
                self._good_until = access.expires.timestamp() - spare
            return access

    def _old_one(self, failure: remote.RemoteUnavailable) -> AccessInfo:
        """The token that was to be renewed ahead of its end, while it lasts."""
        old = self._inner.auth_ref
        if old is None or old.will_expire_soon(_LAST_SECONDS):
            raise failure
        return old

    def invalidate(self) -> bool:
        """Throws the token away unless it is younger than the refusal can be.

        Returns:
            True: asking again is worth it.
        """
        with self._lock:
            if time.monotonic() - self._minted_at > FRESH:
                self._inner.invalidate()
        return True

    def discard(self, token_id: str) -> None:
        """Throws the token away if it is still the one named."""
        with self._lock:
            if self._access is not None and self._access.auth_token == token_id:
                self._inner.invalidate()

    def get_token(self, session: ks_session.Session, **_: Any) -> str:
        """Returns the token's id."""
        return str(self.access(session).auth_token)

    def get_headers(self, session: ks_session.Session, **_: Any) -> dict[str, str]:
        """Returns the headers that authenticate a request."""
        return {"X-Auth-Token": self.get_token(session)}

    def get_endpoint(
        self,
        session: ks_session.Session,
        service_type: str | None = None,
        interface: Any = "public",
        region_name: str | None = None,
        **_: Any,
    ) -> str | None:
        """Returns the catalog's URL unchanged, or None."""
        return catalogs.find_url(
            self.access(session).service_catalog.catalog,
            service_type or "",
            region=region_name,
            interface=str(interface or "public"),
        )

    def get_user_id(self, session: ks_session.Session, **_: Any) -> str | None:
        """Returns our user's id."""
        return _text(self.access(session).user_id)

    def get_project_id(self, session: ks_session.Session, **_: Any) -> str | None:
        """Returns our project's id."""
        return _text(self.access(session).project_id)

    def _explain(self, failure: Exception) -> str:
        if isinstance(failure, ks_exceptions.Unauthorized):
            return (
                f"Keystone at {self.auth_url} refuses the service user's credentials; "
                "check user, password, project and domains in the configuration"
            )
        if isinstance(failure, ks_exceptions.ConnectionError):
            return f"Keystone at {self.auth_url} does not answer: {failure}"
        return f"Keystone at {self.auth_url} failed: {failure}"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
