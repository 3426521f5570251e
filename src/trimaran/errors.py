"""The one error tree.

Every layer raises these; each hull renders them in its own wire's format, in
one place.  The tree stands below all layers so that the database, Keystone and
the cloud clients can raise what the hulls render without importing the web
layer.  A message is written for the caller: it never holds an internal name,
a secret or another project's data.  What operators need goes to the log.
"""

from __future__ import annotations

from typing import ClassVar


class TrimaranError(Exception):
    """Something that a caller is told about.

    Args:
        message: text for the caller, safe to show.
        code: the wire's own error code where it is already known (an EC2 code
            such as ``InvalidInstanceID.NotFound``); renderers fall back to the
            class's meaning when it is None.
        headers: extra response headers (``Retry-After``).
    """

    status: ClassVar[int] = 500
    default: ClassVar[str] = "Internal error."

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.message = message or self.default
        self.code = code
        self.headers = headers or {}
        super().__init__(self.message)


class BadRequest(TrimaranError):
    """The caller's input is wrong (400)."""

    status = 400
    default = "The request is not valid."


class Unauthenticated(TrimaranError):
    """No, wrong or ended credentials (401)."""

    status = 401
    default = "The request you have made requires authentication."


class Forbidden(TrimaranError):
    """Known caller, not allowed (403)."""

    status = 403
    default = "Not authorized."


class NotFound(TrimaranError):
    """What was named does not exist, or not for this caller (404)."""

    status = 404
    default = "The resource could not be found."


class Conflict(TrimaranError):
    """The state of the resource does not permit this (409)."""

    status = 409
    default = "The resource is in a conflicting state."


class TooLarge(TrimaranError):
    """Body, header or path beyond the limits (413)."""

    status = 413
    default = "The request is too large."


class QuotaExceeded(TrimaranError):
    """A quota or limit of the project is reached (403 on most wires)."""

    status = 403
    default = "Quota exceeded."


class TooManyRequests(TrimaranError):
    """Rate limited; try later (429)."""

    status = 429
    default = "Too many requests."


class Unavailable(TrimaranError):
    """A part that we depend on does not answer; retrying later may help (503).

    Args:
        service: which part, for the log and for metrics ("identity",
            "compute", "database", "broker"…).
    """

    status = 503
    default = "The service is temporarily unavailable."

    def __init__(
        self,
        message: str = "",
        *,
        service: str = "",
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, headers=headers)
        self.service = service


class ConfigError(Exception):
    """The configuration cannot be used: one sentence that names the option to fix.

    Raised at start only; the command line prints it and exits with 1.
    """
