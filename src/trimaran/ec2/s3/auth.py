"""Who signed an S3 request: SigV4 in the header or in the query, verified by Keystone.

The canonical request is made here, of what came and will be acted upon, and
Keystone's ``s3tokens`` says whose secret signed it.  (``ec2tokens`` would leave
the query of a POST out, which multipart uploads need.)  For the payload stands
what the client declared of it: the body is compared with that declaration
while it streams.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from trimaran import errors
from trimaran.ec2 import auth
from trimaran.ec2.auth import Signed
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.s3.errors import S3Error, access_denied

if TYPE_CHECKING:
    from trimaran.identity import Identity, Token

UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMING = "STREAMING-"

_ALGORITHM = "AWS4-HMAC-SHA256"
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_DATE = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_SPACES = re.compile(r"\s+")


def declared_hash(request: Signed) -> str:
    """What the client says its payload hashes to, or one of S3's words for "not hashed"."""
    return request.headers.get("x-amz-content-sha256") or UNSIGNED


def authenticate(request: Signed, query: bytes, identity: Identity) -> Token:
    """Who signed a request.

    Args:
        request: what came.
        query: the query string as sent.
        identity: Keystone.

    Raises:
        S3Error: ``AccessDenied`` unsigned or half signed, ``InvalidAccessKeyId``,
            ``SignatureDoesNotMatch``, ``RequestTimeTooSkewed``.
        errors.Unavailable: Keystone does not answer.
    """
    parameters = request.parameters.query
    header = request.v4_header
    if "X-Amz-Signature" in parameters:
        told = {name: parameters.get(f"X-Amz-{name}", "") for name in _PARTS}
        date = parameters.get("X-Amz-Date", "")
        if parameters.get("X-Amz-Algorithm") != _ALGORITHM or header is not None:
            raise access_denied("The signature is incomplete.")
    elif header is not None:
        told = {name: header.get(name, "") for name in _PARTS}
        date = request.headers.get("x-amz-date", "")
    else:
        raise access_denied()
    access, scope = _scope(told["Credential"], date)
    if not _SIGNATURE.fullmatch(told["Signature"]):
        raise _mismatch()
    _check_time(request)
    canonical = _canonical(request, query, told["SignedHeaders"].split(";"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join((_ALGORITHM, date, scope, digest))
    try:
        token = identity.s3(access, to_sign, told["Signature"])
    except errors.Unauthenticated as error:
        if getattr(error, "remote_status", 401) == 404:
            raise S3Error("InvalidAccessKeyId", "The access key does not exist.", 403) from error
        raise _mismatch() from error
    if not token.project_id:
        raise access_denied()
    return token


_PARTS = ("Credential", "SignedHeaders", "Signature")


def _scope(credential: str, date: str) -> tuple[str, str]:
    """(access key, scope) of ``<access>/<date>/<region>/s3/aws4_request``."""
    access, *scope = credential.split("/")
    fits = len(scope) == 4 and scope[2:] == ["s3", "aws4_request"] and scope[0]
    if not access or not access.isalnum() or not access.isascii() or not fits:
        raise access_denied("The credential scope is malformed.")
    if not _DATE.fullmatch(date) or not date.startswith(scope[0]):
        raise access_denied("The credential scope and X-Amz-Date do not fit.")
    return access, "/".join(scope)


def _check_time(request: Signed) -> None:
    try:
        # Not one of the form's parameters: SigV2's times mean nothing to S3.
        auth.check_time(request, datetime.now(UTC), 0)
    except EC2Error as error:
        if error.code == "RequestExpired":
            raise S3Error(
                "RequestTimeTooSkewed", "The time difference is too large.", 403
            ) from None
        raise access_denied(error.message) from None


def _canonical(request: Signed, query: bytes, signed: list[str]) -> str:
    """SigV4's canonical request of S3, whose path is encoded once."""
    unsigned = {name for name in request.headers if name.startswith("x-amz-")} - set(signed)
    if unsigned or "host" not in signed or not set(signed) <= set(request.headers):
        raise access_denied("There were headers present in the request which were not signed")
    headers = "".join(
        f"{name}:{_SPACES.sub(' ', request.headers[name].strip())}\n" for name in sorted(signed)
    )
    return "\n".join(
        (
            request.method,
            quote(unquote_to_bytes(request.path), safe="/~"),
            _canonical_query(query),
            headers,
            ";".join(sorted(signed)),
            declared_hash(request),
        )
    )


def _canonical_query(query: bytes) -> str:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    encoded = (
        (quote(name, safe="~", encoding="latin-1"), quote(value, safe="~", encoding="latin-1"))
        for name, value in pairs
        if name != "X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def _mismatch() -> S3Error:
    return S3Error("SignatureDoesNotMatch", "The signature does not match.", 403)
