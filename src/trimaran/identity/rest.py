"""Calls to Keystone's v3 REST interface.

No discovery, one pooled session, and the difference between "your token is
bad", "our own token is bad" and "Keystone is away" in one place: the first is
the caller's error, the second is repaired by one retry with a fresh service
token, the third is Unavailable and heals by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from urllib.parse import urlsplit

import requests
from keystoneauth1.identity.base import BaseIdentityPlugin

from trimaran import errors
from trimaran.config.common import Own
from trimaran.identity import catalog as catalogs
from trimaran.identity import remote, transport
from trimaran.identity.auth import ServiceAuth, TokenAuth
from trimaran.identity.exchange import exchange
from trimaran.identity.token import Token

LOG = logging.getLogger(__name__)


class Rest:
    """Keystone over HTTP: our own token, the endpoint, one call.

    Args:
        auth: keystoneauth plugin with the service user's credentials.
        own: the deck's options (time-outs and pool size).
        region: region whose identity endpoint is used; None takes any.
        interface: public, internal or admin.
        verify: True, False or the path of a CA bundle.
        cert: client certificate, or (certificate, key).
    """

    def __init__(
        self,
        auth: BaseIdentityPlugin,
        *,
        own: Own,
        region: str | None = None,
        interface: str = "public",
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
    ) -> None:
        self.region = region
        self.interface = interface
        self.own = own
        self._verify = verify
        self._cert = cert
        self._auth = ServiceAuth(auth)
        self._transport = transport.shared(own.http_pool_size)
        self._anonymous = self._session(None)

    @property
    def auth_url(self) -> str:
        """Keystone's v3 URL as configured, without trailing slash."""
        return v3_url(self._auth.auth_url)

    @cached_property
    def service_session(self) -> transport.Session:
        """The service user's session: pooled, with time-outs, re-authenticating."""
        return self._session(self._auth)

    @property
    def service_auth(self) -> ServiceAuth:
        """The plugin of ``service_session``."""
        return self._auth

    def service_token(self) -> str:
        """Returns our service user's token, authenticating when needed.

        Raises:
            errors.Unavailable: Keystone cannot be reached or refuses our user.
        """
        return self._auth.get_token(self._anonymous)

    def endpoint(self, region: str | None = None) -> str:
        """Returns Keystone's v3 URL by our own catalog, for our interface.

        Args:
            region: another region than the configured one.

        Raises:
            NoEndpoint: a region was named that has no identity endpoint.
        """
        wanted = region or self.region
        url = catalogs.find_url(
            self.service_catalog(), "identity", region=wanted, interface=self.interface
        )
        if url is None:
            if region is None:
                return self.auth_url
            raise remote.NoEndpoint("Endpoint not found", service="identity")
        return v3_url(url)

    def service_catalog(self) -> catalogs.Catalog:
        """Returns the v3 catalog of our service token; do not change it.

        Raises:
            errors.Unavailable: see ``service_token``.
        """
        catalog: catalogs.Catalog = self._auth.access(self._anonymous).service_catalog.catalog
        return catalog

    def service_regions(self, service_type: str | None = None) -> list[str]:
        """Returns the sorted regions of our own catalog for our interface."""
        return catalogs.regions(
            self.service_catalog(), interface=self.interface, service_type=service_type
        )

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()

    def call(
        self,
        method: str,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        repeatable: bool | None = None,
    ) -> requests.Response:
        """Sends one request to Keystone; the answer comes back whatever its status.

        Args:
            method: HTTP method.
            url: absolute URL.
            token: for ``X-Auth-Token``; None sends none.
            headers: more headers.
            json: body.
            repeatable: see ``exchange``.

        Raises:
            errors.Unavailable: no answer.
        """
        sent = dict(headers or {})
        if token is not None:
            sent["X-Auth-Token"] = token
        return exchange(
            self._anonymous,
            method,
            url,
            service="identity",
            repeatable=repeatable,
            authenticated=False,
            headers=sent,
            json=json,
        )

    def with_service_token(self, send: Callable[[str], requests.Response]) -> requests.Response:
        """Runs a call that uses our service token, once more when that token is the problem.

        A 401 may mean the caller's credentials or ours, Keystone words both
        alike.  Ours is checked by itself before the blame goes to the caller.

        Args:
            send: sends the request with the token given.

        Returns:
            The answer; a 401 in it is not about our token.

        Raises:
            errors.Unavailable: our token cannot be had, or is refused when fresh.
        """
        mine = self.service_token()
        response = send(mine)
        if response.status_code != 401 or self._still_valid(mine):
            return response
        LOG.info("identity: our service token is no longer accepted, taking a new one")
        self._auth.discard(mine)
        mine = self.service_token()
        response = send(mine)
        if response.status_code == 401 and not self._still_valid(mine):
            LOG.error("identity: Keystone refuses the service token that it has just given us")
            raise remote.unreachable("identity", "a fresh service token is refused")
        return response

    def _still_valid(self, mine: str) -> bool:
        answer = self.call(
            "GET",
            f"{self.endpoint()}/auth/tokens?nocatalog",
            token=mine,
            headers={"X-Subject-Token": mine},
        )
        if answer.status_code in (401, 404):
            return False
        if answer.status_code >= 500:
            raise remote.error_from(answer, service="identity")
        return True

    def _session(self, auth: ServiceAuth | TokenAuth | None) -> transport.Session:
        return transport.Session(
            auth=auth,
            transport=self._transport,
            timeouts=(self.own.connect_timeout, self.own.read_timeout),
            verify=self._verify,
            cert=self._cert,
        )


def our_fault(error: remote.RemoteError) -> remote.RemoteError:
    """The same report as Unavailable: what Keystone holds against *us* is not the caller's."""
    if isinstance(error, errors.Unavailable):
        return error
    ours = remote.unreachable("identity", error.remote_message)
    ours.remote_status = error.remote_status
    ours.remote_code = error.remote_code
    ours.request_id = error.request_id
    return ours


def read_token(response: requests.Response, token_id: str = "") -> Token:
    """Reads a token out of Keystone's answer.

    Args:
        response: an answer of 200 or 201.
        token_id: its id; taken from ``X-Subject-Token`` when empty.

    Raises:
        errors.Unavailable: not Keystone's format.
    """
    token_id = token_id or response.headers.get("X-Subject-Token", "")
    try:
        if not token_id:
            raise ValueError("no X-Subject-Token")
        return Token.from_body(token_id, response.json())
    except ValueError as failure:
        LOG.error("identity: the answer of %s is no v3 token: %r", response.url, failure)
        raise remote.unreachable("identity", "not a v3 token document") from failure


def v3_url(url: str) -> str:
    """Returns Keystone's v3 URL for what operators write: bare, with /v3, with /v2.0."""
    url = url.rstrip("/")
    path = urlsplit(url).path
    if path.endswith("/v3"):
        return url
    return f"{url.removesuffix('/v2.0')}/v3"
