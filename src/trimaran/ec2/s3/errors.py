"""S3 errors: the code that SDKs read, in S3's own document.

Statuses are those that the stub always answered; codes are AWS's, so that a
client can tell a missing key from a missing bucket (spec ec2.md 7, 11.20).
"""

from __future__ import annotations

from trimaran import errors
from trimaran.ec2.protocol.errors import xml_text


class S3Error(errors.TrimaranError):
    """An error with its S3 code and HTTP status."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message, code=code)
        self.code: str = code
        # One class carries many statuses, where the tree has one a class.
        self.__dict__["status"] = status


def no_such_bucket() -> S3Error:
    return S3Error("NoSuchBucket", "The specified bucket does not exist", 404)


def no_such_key() -> S3Error:
    return S3Error("NoSuchKey", "The specified key does not exist.", 404)


def not_implemented() -> S3Error:
    return S3Error(
        "NotImplemented",
        "A header or parameter you provided implies functionality that is not implemented",
        501,
    )


def access_denied(message: str = "Access Denied") -> S3Error:
    return S3Error("AccessDenied", message, 403)


def to_s3(error: errors.TrimaranError) -> S3Error:
    """The S3 error that a client is told for any error of the deck."""
    if isinstance(error, S3Error):
        return error
    if isinstance(error, errors.Unavailable):
        return S3Error("ServiceUnavailable", "Reduce your request rate.", 503)
    if isinstance(error, errors.Unauthenticated | errors.Forbidden):
        return access_denied()
    if error.status < 500:
        return S3Error(error.code or "InvalidRequest", error.message, error.status)
    return S3Error("InternalError", "We encountered an internal error. Please try again.", 500)


def error_xml(error: S3Error, request_id: str) -> bytes:
    """S3's error document."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{xml_text(error.code)}</Code><Message>{xml_text(error.message)}</Message>"
        f"<RequestId>{xml_text(request_id)}</RequestId></Error>"
    ).encode("ascii", "xmlcharrefreplace")
