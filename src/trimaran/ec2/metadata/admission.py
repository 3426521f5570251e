"""Whether a guest may read: the instance's metadata options and the session token.

``HttpEndpoint`` and ``HttpTokens`` hold for everything that the service hands
out, Nova's own metadata included: an owner who demands tokens means that no
request which a program on the guest was tricked into finds an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.metadata.caller import Caller
from trimaran.ec2.metadata.tokens import LONGEST, Tokens
from trimaran.errors import BadRequest, Forbidden, Unauthenticated

TOKEN_HEADER = "x-aws-ec2-metadata-token"  # noqa: S105 - a header's name
TTL_HEADER = "x-aws-ec2-metadata-token-ttl-seconds"


class Admission:
    """Lets guests in.

    Args:
        tokens: makes and checks session tokens.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def check(self, caller: Caller, options: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Lets a guest read, or not.

        Args:
            caller: who asks.
            options: the metadata options of its instance.
            headers: names lower case.

        Raises:
            Forbidden: the service is switched off for this instance.
            Unauthenticated: a token that is not good, or none where one is required.
        """
        self._check_endpoint(options)
        token = headers.get(TOKEN_HEADER)
        if token is None:
            if options.get("HttpTokens") == "required":
                raise Unauthenticated("A session token is required.")
        elif not self._tokens.accepts(token.strip(), caller.server_id):
            raise Unauthenticated("The session token is not valid.")

    def token(
        self, caller: Caller, options: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[str, int]:
        """A new token and its seconds.

        Raises:
            BadRequest: no time to live, or not 1 to 21600 seconds.
            Forbidden: the service is switched off for this instance, or the
                request came through another proxy than the agent, which names
                itself once: on AWS a forwarded request gets no token either.
        """
        self._check_endpoint(options)
        if not caller.direct:
            raise Forbidden("Session tokens are not given through proxies.")
        asked = headers.get(TTL_HEADER, "").strip()
        seconds = int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= 6 else 0
        if not 1 <= seconds <= LONGEST:
            raise BadRequest(f"{TTL_HEADER} must be 1 to {LONGEST}.")
        return self._tokens.make(caller.server_id, seconds), seconds

    @staticmethod
    def _check_endpoint(options: Mapping[str, Any]) -> None:
        if options.get("HttpEndpoint") == "disabled":
            raise Forbidden()
