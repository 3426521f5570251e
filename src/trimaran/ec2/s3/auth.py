"""Who signed an S3 request: SigV4 in the header or in the query, verified by Keystone.

Keystone's ``ec2tokens`` computes the same canonical request for S3 as for EC2,
given the path as sent and, for the payload, what the client declared of it:
the body is compared with that declaration while it streams, not here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trimaran import errors
from trimaran.ec2 import auth
from trimaran.ec2.auth import Signed
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.s3.errors import S3Error, access_denied

if TYPE_CHECKING:
    from trimaran.identity import Identity, Token

UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMING = "STREAMING-"


def declared_hash(request: Signed) -> str:
    """What the client says its payload hashes to, or one of S3's words for "not hashed"."""
    return request.headers.get("x-amz-content-sha256") or UNSIGNED


def authenticate(request: Signed, identity: Identity) -> Token:
    """The token that the request's signature is worth.

    Raises:
        S3Error: ``AccessDenied`` unsigned, ``InvalidAccessKeyId``,
            ``SignatureDoesNotMatch``, ``RequestTimeTooSkewed``.
        errors.Unavailable: Keystone does not answer.
    """
    if "X-Amz-Signature" not in request.parameters.query and request.v4_header is None:
        raise access_denied()
    try:
        sent = auth.credentials(request)
        # Not one of the form's parameters: SigV2's times mean nothing to S3.
        auth.check_time(request, datetime.now(UTC), 0)
    except EC2Error as error:
        if error.code == "RequestExpired":
            raise S3Error(
                "RequestTimeTooSkewed", "The time difference is too large.", 403
            ) from None
        raise access_denied(error.message) from None
    sent["path"] = request.path
    sent["body_hash"] = declared_hash(request)
    try:
        token = identity.ec2(sent)
    except errors.Unauthenticated as error:
        if getattr(error, "remote_status", 401) == 404:
            raise S3Error("InvalidAccessKeyId", "The access key does not exist.", 403) from error
        raise S3Error("SignatureDoesNotMatch", "The signature does not match.", 403) from error
    if not token.project_id:
        raise access_denied()
    return token
