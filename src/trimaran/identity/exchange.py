"""One request and its answer, with the only repeats that are safe.

keystoneauth's own ``connect_retries`` repeats any method, also after a read
time-out, when the server may have done the work.  Here a request is repeated
only when it was never sent, or when doing it twice changes nothing.
"""

from __future__ import annotations

import logging
import random
import time
from typing import Any

import requests
from keystoneauth1 import exceptions as ks_exceptions
from urllib3 import exceptions as pool_exceptions

from trimaran.identity import remote
from trimaran.identity.transport import Session

LOG = logging.getLogger(__name__)

# Seconds before the second and the third try, each stretched by up to a half.
_DELAYS = (0.1, 0.4)
_PASSING = frozenset({502, 503, 504})


def exchange(
    session: Session,
    method: str,
    url: str,
    *,
    service: str,
    repeatable: bool | None = None,
    **kwargs: Any,
) -> requests.Response:
    """Sends a request and returns the answer, whatever its status.

    Args:
        session: sends it; ``auth=`` in kwargs may name another plugin.
        method: HTTP method.
        url: absolute URL.
        service: catalog type, for errors and the log.
        repeatable: may be sent twice; None means "GET and HEAD may".
        kwargs: for ``Session.request`` (json, params, headers, data, auth…).

    Raises:
        RemoteUnavailable: no answer.
        errors.Unavailable: the session's own token cannot be had.
    """
    if repeatable is None:
        repeatable = method in ("GET", "HEAD")
    kwargs.setdefault("endpoint_filter", {"service_type": service})
    for delay in (*_DELAYS, None):
        try:
            response = session.request(url, method, raise_exc=False, **kwargs)
        except ks_exceptions.ConnectionError as failure:
            if delay is None or not _may_repeat(failure, repeatable):
                reason = _reason(failure)
                LOG.warning("%s: %s %s got no answer: %s", service, method, _plain(url), reason)
                raise remote.unreachable(service, reason) from failure
        else:
            if delay is None or not repeatable or response.status_code not in _PASSING:
                LOG.debug(
                    "%s: %s %s -> %d %s",
                    service,
                    method,
                    _plain(url),
                    response.status_code,
                    remote.request_id_of(response.headers),
                )
                return response
            response.close()
        time.sleep(delay * random.uniform(1, 1.5))  # noqa: S311
    raise AssertionError("unreachable: the last try returns or raises")


def _may_repeat(failure: Exception, repeatable: bool) -> bool:
    cause = failure.__context__
    if isinstance(cause, requests.Timeout):
        # The time that a caller can be made to wait is spent; also a read
        # time-out does not tell whether the work was done.
        return False
    return repeatable or never_sent(cause)


def never_sent(cause: BaseException | None) -> bool:
    """Tells whether a ``requests`` failure happened before anything was sent."""
    if isinstance(cause, requests.ConnectTimeout):
        return True
    if not isinstance(cause, requests.ConnectionError) or not cause.args:
        return False
    inner = cause.args[0]
    reason = getattr(inner, "reason", inner)
    return isinstance(
        reason, pool_exceptions.NewConnectionError | pool_exceptions.ConnectTimeoutError
    )


def _reason(failure: Exception) -> str:
    cause = failure.__context__
    if isinstance(cause, requests.ConnectTimeout):
        return "no connection within the time-out"
    if isinstance(cause, requests.Timeout):
        return "no answer within the time-out"
    if isinstance(cause, requests.exceptions.SSLError):
        return f"TLS failed, check the CA file: {cause}"
    if never_sent(cause):
        return "connection refused or host not found"
    if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
        return str(cause)
    return f"connection broken ({type(cause).__name__})"


def _plain(url: str) -> str:
    return url.split("?", 1)[0]
