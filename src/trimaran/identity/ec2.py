"""EC2 signatures, checked by Keystone.

Only Keystone knows the secret keys.  Since CVE-2025-65073 it answers callers
with the role ``service`` or ``admin`` only, so our own token goes along, and a
refusal may be about either of us (spec/ec2.md 2.2 and 11).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import requests

from trimaran.identity import remote
from trimaran.identity.rest import Rest, our_fault, read_token
from trimaran.identity.token import Token

LOG = logging.getLogger(__name__)

# Keystone 30 answers 500 with this text to parameters of no signature version.
_NONSENSE = "Unexpected signature format"
# The policy's name in the text of a 403 says that *we* are the one refused.
_POLICY = "ec2tokens_validate"


def check(rest: Rest, url: str, credentials: Mapping[str, Any]) -> Token:
    """Asks Keystone to verify a signature.

    Args:
        rest: sends the call.
        url: ec2-api's option ``keystone_ec2_tokens_url``.
        credentials: access, signature, host, verb, path, params, headers, body_hash.

    Returns:
        The token that Keystone minted for the credential's project.

    Raises:
        remote.RemoteUnauthenticated: the caller's fault; ``remote_status`` tells which.
        errors.Unavailable: Keystone's fault or ours.
    """
    body: dict[str, Any] = {"ec2Credentials": dict(credentials)}
    if "ec2" not in url:
        # An s3tokens-like endpoint of the v2 days, as ec2-api addresses it.
        body = {"auth": {"OS-KSEC2:ec2Credentials": dict(credentials)}}
    # Minting a token twice does no harm, so a broken connection may be tried again.
    response = rest.with_service_token(
        lambda mine: rest.call("POST", url, token=mine, json=body, repeatable=True)
    )
    if response.status_code in (200, 201):
        return read_token(response)
    error = remote.error_from(response, service="identity")
    if _is_callers_fault(response, error):
        refused = remote.RemoteUnauthenticated()
        refused.service = "identity"
        refused.remote_status = response.status_code
        refused.remote_code = error.remote_code
        refused.remote_message = error.remote_message
        refused.request_id = error.request_id
        raise refused
    if response.status_code == 403:
        LOG.error(
            "identity: our service user may not check EC2 signatures "
            "(identity:ec2tokens_validate); give it the role service"
        )
    elif response.status_code == 503 and "ec2credential" in error.remote_message:
        LOG.error("identity: add ec2credential to [auth] methods in keystone.conf")
    raise our_fault(error)


def _is_callers_fault(response: requests.Response, error: remote.RemoteError) -> bool:
    if response.status_code in (400, 401, 404):
        return True
    if response.status_code == 403:
        return _POLICY not in error.remote_message
    return response.status_code == 500 and _NONSENSE in error.remote_message
