"""EC2 errors: the codes clients match on, and the one mapping from the deck's error tree.

Actions raise :class:`EC2Error` (or a deck error with ``code=``) and never build
XML.  Whatever else escapes is mapped here to a code that AWS documents; the
name of a class, a backend's text or a stack trace never reaches the wire
(spec ec2.md 1.4-1.6, faults F5-F8).
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from trimaran import errors

_CONTROL = {c: "\ufffd" for c in range(0x20) if c not in (0x09, 0x0A, 0x0D)}
_QUOTES = {'"': "&quot;", "'": "&apos;"}


class EC2Error(errors.TrimaranError):
    """An error with its EC2 code.

    Args:
        code: the text of ``<Code>``, such as ``InvalidInstanceID.NotFound``.
        message: text for the caller.
        status: HTTP status; 400 for nearly all (spec 1.5).
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int = 400,
        *,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, headers=headers)
        self.code: str = code
        # One EC2 class carries many statuses, where the tree has one a class.
        self.__dict__["status"] = status


def invalid_value(parameter: str, value: object, reason: str = "") -> EC2Error:
    """``InvalidParameterValue`` in the words AWS uses; ``parameter`` is the wire name."""
    shown = str(value)
    if len(shown) > 255:
        shown = shown[:252] + "..."
    text = f"Value ({shown}) for parameter {parameter} is invalid."
    return EC2Error("InvalidParameterValue", f"{text} {reason}".rstrip())


def check_length(parameter: str, text: str, most: int) -> None:
    """Refuse a text that is longer than its parameter may be (spec 1.7).

    Raises:
        EC2Error: ``ValidationError``.
    """
    if len(text) > most:
        raise EC2Error(
            "ValidationError",
            f"Value ({text[:252]}...) for parameter {parameter} is longer than {most} characters.",
        )


def invalid_combination(message: str) -> EC2Error:
    """``InvalidParameterCombination``: parameters that exclude each other, or none of a set."""
    return EC2Error("InvalidParameterCombination", message)


def missing(parameter: str) -> EC2Error:
    """``MissingParameter``; ``parameter`` is the wire name."""
    return EC2Error("MissingParameter", f"The request must contain the parameter {parameter}")


def unknown_parameter(name: str) -> EC2Error:
    """``UnknownParameter``: a name that the action's model does not have (spec 1.7)."""
    return EC2Error("UnknownParameter", f"The parameter {name[:255]} is not recognized")


def unsupported(message: str) -> EC2Error:
    """``UnsupportedOperation``: known to the model, not offered here (spec 9.3)."""
    return EC2Error("UnsupportedOperation", message)


def not_found(code: str, noun: str, ids: Iterable[str]) -> EC2Error:
    """A kind's ``*.NotFound``.

    Args:
        code: the whole code, such as ``InvalidInstanceID.NotFound``.
        noun: how AWS calls the thing in the text, such as ``instance ID``.
        ids: what was not found; shown in the text, shortened when long.
    """
    names = sorted(ids)
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    if len(names) == 1:
        return EC2Error(code, f"The {noun} '{shown}' does not exist")
    return EC2Error(code, f"The {noun}s '{shown}' do not exist")


def invalid_action(action: str) -> EC2Error:
    """``InvalidAction`` with AWS's very text, which terraform tolerates for probes (spec 1.1)."""
    return EC2Error(
        "InvalidAction", f"The action {action[:255]} is not valid for this web service."
    )


def dry_run() -> EC2Error:
    """The answer to ``DryRun=true`` when the call would have been done (spec 1.9)."""
    return EC2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)


_TEXT_INTERNAL = "An internal error has occurred."
_TEXT_UNAVAILABLE = "The service is temporarily unavailable. Please try again later."


def to_ec2(error: BaseException) -> EC2Error:
    """The EC2 error that a client is told for whatever was raised.

    A deck error that carries a code keeps it with status 400, except where its
    class says "try later" or "broken" (5xx), whose status SDKs act on.
    Exceptions from outside the tree become ``InternalError`` 500 without their
    text; log those before calling this.
    """
    if isinstance(error, EC2Error):
        return error
    if not isinstance(error, errors.TrimaranError):
        return EC2Error("InternalError", _TEXT_INTERNAL, 500)
    if isinstance(error, errors.Unauthenticated):
        # Keystone's own status is part of the upstream wire (spec 1.5).
        made = EC2Error(
            error.code or "AuthFailure",
            "AWS was not able to validate the provided access credentials",
            error.status,
        )
    elif isinstance(error, errors.Unavailable):
        made = EC2Error(error.code or "Unavailable", _TEXT_UNAVAILABLE, 503)
    elif isinstance(error, errors.TooManyRequests):
        made = EC2Error(error.code or "RequestLimitExceeded", "Request limit exceeded.", 503)
    elif isinstance(error, errors.TooLarge):
        made = EC2Error(error.code or "RequestEntityTooLarge", error.message, error.status)
    elif error.code:
        made = EC2Error(error.code, error.message, error.status if error.status >= 500 else 400)
    else:
        made = _uncoded(error)
    made.headers.update(error.headers)
    return made


def _uncoded(error: errors.TrimaranError) -> EC2Error:
    """Deck errors that no action gave a code: the meaning of the class (spec 1.5)."""
    message = error.message
    if isinstance(error, errors.QuotaExceeded):
        return EC2Error("ResourceLimitExceeded", message)
    if isinstance(error, errors.Forbidden):
        return EC2Error(
            "UnauthorizedOperation", "You are not authorized to perform this operation.", 403
        )
    if isinstance(error, errors.NotFound):
        return EC2Error("InvalidParameterValue", message)
    if isinstance(error, errors.Conflict):
        return EC2Error("IncorrectState", message)
    if isinstance(error, errors.BadRequest):
        return EC2Error("InvalidParameterValue", message)
    if error.status < 500:
        return EC2Error("InvalidRequest", message, error.status)
    return EC2Error("InternalError", _TEXT_INTERNAL, 500)


def xml_text(value: str) -> str:
    """Text safe inside an XML element: escaped, without characters that XML forbids."""
    clean = value.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")
    return escape(clean, _QUOTES)


def error_xml(error: EC2Error, request_id: str) -> bytes:
    """The error document of spec 1.4 (note ``RequestID``, where successes say ``requestId``)."""
    return (
        '<?xml version="1.0"?>\n'
        f"<Response><Errors><Error><Code>{xml_text(error.code)}</Code>"
        f"<Message>{xml_text(error.message)}</Message></Error></Errors>"
        f"<RequestID>{xml_text(request_id)}</RequestID></Response>"
    ).encode("ascii", "xmlcharrefreplace")
