"""EC2 signatures, checked by Keystone.

Only Keystone knows the secret keys.  Since CVE-2025-65073 it answers callers
with the role ``service`` or ``admin`` only, so our own token goes along, and a
refusal may be about either of us (spec/ec2.md 2.2 and 11).
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from typing import Any, TypeGuard
from urllib.parse import quote

from trimaran.identity import remote
from trimaran.identity.rest import Rest, our_fault, read_token
from trimaran.identity.token import Token

LOG = logging.getLogger(__name__)

_V4 = "AWS4-HMAC-SHA256"
# The names under which Keystone's signer looks for two headers; HTTP does not
# care about their case, the signer does.
_EXACT_HEADERS = {name.lower(): name for name in ("Authorization", "X-Amz-Date")}
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
    sent = dict(credentials)
    if isinstance(sent.get("headers"), Mapping):
        headers = sent["headers"].items()
        sent["headers"] = {_EXACT_HEADERS.get(str(name).lower(), name): v for name, v in headers}
    flaw = malformed(sent)
    if flaw is not None:
        refused = remote.RemoteUnauthenticated()
        refused.service, refused.remote_status, refused.remote_message = "identity", 401, flaw
        raise refused
    body: dict[str, Any] = {"ec2Credentials": sent}
    if "ec2" not in url:
        # An s3tokens-like endpoint of the v2 days, as ec2-api addresses it.
        body = {"auth": {"OS-KSEC2:ec2Credentials": sent}}
    # Minting a token twice does no harm, so a broken connection may be tried again.
    response = rest.with_service_token(
        lambda mine: rest.call("POST", url, token=mine, json=body, repeatable=True)
    )
    if response.status_code in (200, 201):
        return read_token(response)
    error = remote.error_from(response, service="identity")
    if response.status_code in (400, 401, 404) or (
        response.status_code == 403 and _POLICY not in error.remote_message
    ):
        raise remote.as_unauthenticated(error)
    if response.status_code == 403:
        LOG.error(
            "identity: our service user may not check EC2 signatures "
            "(identity:ec2tokens_validate); give it the role service"
        )
    elif response.status_code == 503 and "ec2credential" in error.remote_message:
        LOG.error("identity: add ec2credential to [auth] methods in keystone.conf")
    raise our_fault(error)


def check_s3(rest: Rest, url: str, access: str, to_sign: str, signature: str) -> Token:
    """Asks Keystone whether a text was signed with the secret of an access key (``s3tokens``).

    Args:
        rest: sends the call.
        url: ec2-api's option ``keystone_ec2_tokens_url``; ``s3tokens`` lies beside it.
        access: the access key.
        to_sign: SigV4's string to sign.
        signature: hex.

    Returns:
        Who signed; this token has no id, since Keystone tells none.

    Raises:
        remote.RemoteUnauthenticated: the caller's fault.
        errors.Unavailable: Keystone's fault or ours.
    """
    there = url.removesuffix("ec2tokens")
    where = f"{there}s3tokens" if there != url else f"{rest.auth_url}/s3tokens"
    text = base64.urlsafe_b64encode(to_sign.encode()).decode()
    body = {"credentials": {"access": access, "token": text, "signature": signature}}
    response = rest.with_service_token(
        lambda mine: rest.call("POST", where, token=mine, json=body, repeatable=True)
    )
    if response.status_code in (200, 201):
        return read_token(response, "none")
    error = remote.error_from(response, service="identity")
    if response.status_code == 403 and "s3tokens_validate" in error.remote_message:
        LOG.error(
            "identity: our service user may not check S3 signatures "
            "(identity:s3tokens_validate); give it the role service"
        )
    elif response.status_code in (400, 401, 403, 404):
        raise remote.as_unauthenticated(error)
    raise our_fault(error)


def credential(rest: Rest, user_id: str, access: str) -> Mapping[str, Any]:
    """Reads one credential of a user with our service user's rights.

    Raises:
        remote.RemoteUnauthenticated: it is not there.
        errors.Unavailable: Keystone's fault or ours.
    """
    path = f"users/{quote(user_id, safe='')}/credentials/OS-EC2/{quote(access, safe='')}"
    response = rest.with_service_token(
        lambda mine: rest.call("GET", f"{rest.endpoint()}/{path}", token=mine)
    )
    if response.status_code == 200:
        row = response.json().get("credential")
        if isinstance(row, Mapping):
            return row
        raise remote.unreachable("identity", "the answer has no credential")
    error = remote.error_from(response, service="identity")
    if response.status_code == 404:
        raise remote.as_unauthenticated(error)
    if response.status_code == 403:
        LOG.error(
            "identity: our service user may not read EC2 credentials "
            "(identity:ec2_get_credential); give it the role admin"
        )
    raise our_fault(error)


def malformed(credentials: Mapping[str, Any]) -> str | None:
    """Looks for what makes Keystone's signer crash instead of refuse.

    Keystone 30 answers 500 to a signature of no known version, without a text
    that tells it from a failure of its own.  A caller's nonsense must not look
    like an outage, nor an outage like nonsense, so it is found here.

    Args:
        credentials: what Keystone would get.

    Returns:
        What is wrong, or None.
    """
    texts = ("access", "host", "verb", "path")
    if not all(isinstance(credentials.get(name), str) for name in texts):
        return "The request is incomplete."
    if not isinstance(credentials.get("signature") or "", str):
        return "The signature is no text."
    params, headers = credentials.get("params"), credentials.get("headers")
    if not _are_texts(params) or not _are_texts(headers):
        return "Parameters or headers are no texts."
    version = params.get("SignatureVersion")
    if version in ("1", "2"):
        return None
    if version == "0":
        known = "Action" in params and "Timestamp" in params
        return None if known else "Action or Timestamp is missing."
    authorization = headers.get("Authorization")
    algorithm = params.get("X-Amz-Algorithm") if authorization is None else authorization
    if not str(algorithm).startswith(_V4) or (authorization is None and algorithm != _V4):
        return "The signature is of no known version."
    return _malformed_v4(authorization, params, headers, credentials.get("body_hash"))


def _malformed_v4(
    authorization: str | None, params: Mapping[str, str], headers: Mapping[str, str], body: object
) -> str | None:
    if authorization is None:
        credential = params.get("X-Amz-Credential", "")
        signed = params.get("X-Amz-SignedHeaders")
    else:
        credential = authorization.partition("Credential=")[2].split(",")[0]
        signed = authorization
    scope = credential.split("/")
    date = headers.get("X-Amz-Date", params.get("X-Amz-Date"))
    if len(scope) < 4 or signed is None or not isinstance(body, str):
        return "The signature is incomplete."
    if date is None or not date.startswith(scope[1]):
        return "The date is not the one in the credential scope."
    return None


def _are_texts(values: object) -> TypeGuard[Mapping[str, str]]:
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and isinstance(value, str) for name, value in values.items()
    )
