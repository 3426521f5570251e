"""Errors that cross the queue.

Both ends know an error by the name of upstream's exception class: it is what
an upstream peer raises and what it can restore.  Ours carry that name in
``code``; here it becomes a class of that name on the way out, and one of our
error tree on the way in.
"""

from __future__ import annotations

from typing import Any

from trimaran import errors
from trimaran.magnum.rpc.threads import oslo_messaging

MODULE = "magnum.common.exception"

#: upstream's class → ours, for those that a synchronous call may end with
KNOWN: dict[str, type[errors.TrimaranError]] = {
    "NotSupported": errors.BadRequest,
    "Invalid": errors.BadRequest,
    "InvalidParameterValue": errors.BadRequest,
    "InvalidCsr": errors.BadRequest,
    "CertificateValidationError": errors.BadRequest,
    "InvalidClusterTemplateForUpgrade": errors.Conflict,
    "OperationInProgress": errors.Conflict,
    "MasterNGResizeNotSupported": errors.BadRequest,
    "MasterNGSizeInvalid": errors.BadRequest,
    "ClusterDriverNotSupported": errors.BadRequest,
    "ClusterTypeNotSupported": errors.BadRequest,
    "NodeGroupInvalidInput": errors.Conflict,
    "UnsupportedObjectError": errors.BadRequest,
    "IncompatibleObjectVersion": errors.BadRequest,
    "ObjectNotUnique": errors.Conflict,
    "Conflict": errors.Conflict,
    "ClusterAlreadyExists": errors.Conflict,
    "NodeGroupAlreadyExists": errors.Conflict,
    "ClusterNotFound": errors.NotFound,
    "ClusterTemplateNotFound": errors.NotFound,
    "NodeGroupNotFound": errors.NotFound,
    "FederationNotFound": errors.NotFound,
    "X509KeyPairNotFound": errors.NotFound,
    "NotAuthorized": errors.Forbidden,
    "PolicyNotAuthorized": errors.Forbidden,
    "ResourceLimitExceeded": errors.QuotaExceeded,
    "CertificateStorageException": errors.TrimaranError,
    # What a driver said, or a text of ours.
    "MagnumException": errors.TrimaranError,
}

#: ours → upstream's class where the error names none
_NAMES = {
    400: "Invalid",
    403: "NotAuthorized",
    404: "ResourceNotFound",
    409: "Conflict",
}


def outgoing(error: errors.TrimaranError) -> Exception:
    """Returns the exception that oslo.messaging sends for one of our errors.

    Args:
        error: what a handler raised.
    """
    name = error.code or _NAMES.get(error.status, "MagnumException")
    made = type(name, (Exception,), {"__module__": MODULE, "code": error.status})
    return made(error.message)


def incoming(error: Exception) -> errors.TrimaranError:
    """Returns our error for what a call ended with.

    Args:
        error: of oslo.messaging: a time-out, a lost broker or a remote error.
    """
    if isinstance(error, oslo_messaging.RemoteError):
        return _named(str(error.exc_type or ""), str(error.value or ""))
    if isinstance(error, errors.TrimaranError):
        return error
    if type(error).__module__ == MODULE:
        # The in-process transport hands the exception over as it is.
        return _named(type(error).__name__, str(error))
    if isinstance(error, (oslo_messaging.MessagingException, OSError)) or type(
        error
    ).__module__.startswith(("kombu.", "amqp.")):
        return errors.Unavailable(
            "The conductor does not answer; try again later.", service="conductor"
        )
    return errors.TrimaranError("The conductor could not do this.")


def _named(name: str, text: str) -> errors.TrimaranError:
    name = name.removesuffix("_Remote")
    cls = KNOWN.get(name)
    for status, fallback in _NAMES.items():
        if cls is None and name == fallback:
            cls = BY_STATUS[status]
    if cls is None:
        return errors.TrimaranError("The conductor could not do this.", code=name)
    return cls(text, code=name)


BY_STATUS: dict[int, Any] = {
    400: errors.BadRequest,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
}
