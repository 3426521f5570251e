"""Keystone, as the hulls need it.

The one object a service holds for identity: it validates callers' tokens
(remembered for a while), has EC2 signatures checked, logs console users in and
hands out sessions that act as a caller without asking Keystone again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from keystoneauth1.identity.base import BaseIdentityPlugin

from trimaran import errors
from trimaran.config.common import Own
from trimaran.identity import ec2, remote, transport
from trimaran.identity.auth import TokenAuth
from trimaran.identity.cache import TokenCache
from trimaran.identity.login import Login
from trimaran.identity.rest import our_fault, read_token
from trimaran.identity.token import Token

LOG = logging.getLogger(__name__)

# A token goes into a header: one line of visible ASCII.
_TOKEN_ID = re.compile(r"\A[\x21-\x7e]{1,32768}\Z")


class Identity(Login):
    """One Keystone, seen with our service user's credentials.

    Args:
        auth: keystoneauth plugin with the service user's credentials.
        own: the deck's options (time-outs, pool and cache sizes).
        region: region whose identity endpoint is used; None takes any.
        interface: public, internal or admin.
        verify: True, False or the path of a CA bundle.
        cert: client certificate, or (certificate, key).
        ec2_tokens_url: where EC2 signatures are checked (ec2-api's
            ``keystone_ec2_tokens_url``); None means ``<auth_url>/ec2tokens``.
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
        ec2_tokens_url: str | None = None,
    ) -> None:
        super().__init__(
            auth, own=own, region=region, interface=interface, verify=verify, cert=cert
        )
        self._cache = TokenCache(own.token_cache_seconds, own.token_cache_size)
        self._ec2_tokens_url = ec2_tokens_url or f"{self.auth_url}/ec2tokens"

    def validate(
        self,
        token_id: str,
        *,
        fresh: bool = False,
        allow_expired: bool = False,
        region: str | None = None,
    ) -> Token:
        """Asks Keystone whether a token is valid; answers are remembered for a while.

        Args:
            token_id: what the caller sent.
            fresh: ask in any case.
            allow_expired: also accept a token that ended within Keystone's
                ``[token] allow_expired_window``: services do, beside our
                ``X-Service-Token``.  Always asks.
            region: ask that region's Keystone.

        Raises:
            errors.Unauthenticated: unknown, ended or revoked.
            errors.Unavailable: Keystone fails, or refuses our service user.
        """
        if not _TOKEN_ID.match(token_id or ""):
            raise errors.Unauthenticated()
        if allow_expired:
            return self._ask(token_id, region, "?allow_expired=1")
        return self._cache.get(token_id, lambda: self._ask(token_id, region), fresh=fresh)

    def known(self, token_id: str) -> Token | None:
        """Returns a token that was validated a short while ago; asks nobody, so it never blocks.

        Args:
            token_id: what the caller sent.
        """
        return self._cache.known(token_id)

    def forget(self, token_id: str) -> None:
        """Drops a token from the cache; the next ``validate`` asks Keystone."""
        self._cache.forget(token_id)

    def revoke(self, token: Token | str, *, region: str | None = None) -> None:
        """Revokes a token and forgets it; one that is already gone is fine.

        Raises:
            errors.Unavailable: Keystone fails; the token may still be valid.
        """
        try:
            super().revoke(token, region=region)
        finally:
            self.forget(token if isinstance(token, str) else token.id)

    def ec2(self, credentials: Mapping[str, Any]) -> Token:
        """Has Keystone check an EC2 signature.

        Args:
            credentials: access, signature, host, verb, path, params, headers,
                body_hash (spec/ec2.md 2.2).

        Returns:
            The token that Keystone minted; it may call no Keystone API.

        Raises:
            errors.Unauthenticated: wrong key, signature or time; the exception
                has ``remote_status``.
            errors.Unavailable: Keystone fails, or refuses our service user.
        """
        return ec2.check(self, self._ec2_tokens_url, credentials)

    def s3(self, access: str, to_sign: str, signature: str) -> Token:
        """Has Keystone check the signature of a request to S3.

        Args:
            access: the access key.
            to_sign: SigV4's string to sign, made of the request that came.
            signature: hex.

        Returns:
            Who signed; it is no token to call anything with.

        Raises:
            errors.Unauthenticated: wrong key or signature.
            errors.Unavailable: Keystone fails, or refuses our service user.
        """
        return ec2.check_s3(self, self._ec2_tokens_url, access, to_sign, signature)

    def ec2_credential(self, user_id: str, access: str) -> Mapping[str, Any]:
        """Reads an EC2 credential with its secret.

        Args:
            user_id: its owner.
            access: the access key.

        Returns:
            Keystone's row: ``access``, ``secret``, ``tenant_id``, ``user_id``.

        Raises:
            errors.Unauthenticated: there is no such credential (any more).
            errors.Unavailable: Keystone fails, or refuses our service user.
        """
        return ec2.credential(self, user_id, access)

    def session_for(self, token: Token, *, service_token: bool = False) -> transport.Session:
        """Returns a session that acts as the token's owner and never calls Keystone.

        Args:
            token: a validated token.
            service_token: also send our own in ``X-Service-Token`` (this one
                may authenticate our service user).
        """
        return self._session(self.auth_for(token, service_token=service_token))

    def auth_for(self, token: Token, *, service_token: bool = False) -> TokenAuth:
        """Returns the plugin of ``session_for``."""
        return TokenAuth(token, self.service_token if service_token else None)

    def ping(self) -> None:
        """Checks that Keystone answers and takes our credentials.

        Raises:
            errors.Unavailable: it does not.
        """
        self.service_token()
        response = self.call("GET", self.auth_url)
        if response.status_code not in (200, 300):
            raise remote.error_from(response, service="identity")

    def _ask(self, token_id: str, region: str | None, query: str = "") -> Token:
        url = f"{self.endpoint(region)}/auth/tokens{query}"
        response = self.with_service_token(
            lambda mine: self.call("GET", url, token=mine, headers={"X-Subject-Token": token_id})
        )
        if response.status_code == 200:
            return read_token(response, token_id)
        error = remote.error_from(response, service="identity")
        if response.status_code in (400, 401, 404):
            raise errors.Unauthenticated() from error
        if response.status_code == 403:
            LOG.error(
                "identity: our service user may not validate tokens "
                "(identity:validate_token); give it the role service or admin"
            )
        raise our_fault(error)
