"""What an OpenStack service refused, in our error tree.

Each service words its errors in a shape of its own; here they become the one
tree that the hulls render.  What the service said stays on the exception for a
hull's logic and for the log.  It is not the message shown to the caller, who
must not see internal names or another service's wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import requests

from trimaran import errors


class RemoteError(errors.TrimaranError):
    """Mixed into every error that a service's answer caused.

    Attributes:
        service: catalog type of the service ("compute", "identity"…).
        remote_status: its HTTP status; 0 when there was no answer.
        remote_code: the name it gave the error ("itemNotFound", "OverQuota"), or "".
        remote_message: its text, or "".
        request_id: the service's request id, for the log.
    """

    service: str = ""
    remote_status: int = 0
    remote_code: str = ""
    remote_message: str = ""
    request_id: str = ""


class RemoteBadRequest(RemoteError, errors.BadRequest):
    """The service did not accept the input."""


class RemoteUnauthenticated(RemoteError, errors.Unauthenticated):
    """The service did not accept the token or the credentials."""


class RemoteForbidden(RemoteError, errors.Forbidden):
    """The service's policy refused."""


class RemoteNotFound(RemoteError, errors.NotFound):
    """The service does not know the thing."""


class RemoteConflict(RemoteError, errors.Conflict):
    """The thing's state does not permit it."""


class RemoteQuotaExceeded(RemoteError, errors.QuotaExceeded):
    """A quota of the project is reached."""


class RemoteTooManyRequests(RemoteError, errors.TooManyRequests):
    """The service limits the rate."""


class RemoteUnavailable(RemoteError, errors.Unavailable):
    """The service failed, did not answer, or could not be reached."""


class NoEndpoint(RemoteUnavailable):
    """The catalog has no endpoint of the service in the region and interface asked for."""


# Statuses whose text may speak of a quota: Nova and Barbican use 403, Neutron
# 409 (OverQuota), Cinder and Glance 413.
_QUOTA_STATUSES = frozenset({403, 409, 413})
_QUOTA_WORDS = re.compile(r"quota|limit\s?exceeded|maximum number of", re.IGNORECASE)


def describe(response: requests.Response) -> tuple[str, str]:
    """Reads code and text out of an error answer.

    Knows the shapes of Nova and Cinder (``{"itemNotFound": {"message"}}``),
    Neutron (``{"NeutronError": {"type", "message"}}``), Keystone (``{"error":
    {"title", "message"}}``), Glance (``{"title", "message"}`` or an HTML
    page), Barbican (``{"title", "description"}``) and the errors list of
    newer APIs.

    Returns:
        (code, text), either may be "".
    """
    try:
        body = response.json()
    except (ValueError, requests.RequestException):
        return "", _html_text(response.text)
    if not isinstance(body, dict):
        return "", ""
    listed = body.get("errors")
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        return str(listed[0].get("code") or ""), _text_of(listed[0])
    if any(isinstance(body.get(name), str) for name in ("message", "description")):
        return str(body.get("title") or ""), _text_of(body)
    for code, value in body.items():
        if isinstance(value, dict):
            return str(
                value.get("type") or (value.get("title") if code == "error" else code) or ""
            ), _text_of(value)
        if isinstance(value, str):
            return str(code), value
    return "", ""


def error_from(response: requests.Response, *, service: str) -> RemoteError:
    """Makes the exception for an answer of 3xx, 4xx or 5xx.

    Args:
        response: the answer.
        service: catalog type of the service.
    """
    code, text = describe(response)
    error = _class_for(response, code, text)()
    error.service = service
    error.remote_status = response.status_code
    error.remote_code = code
    error.remote_message = text
    error.request_id = request_id_of(response.headers)
    # For tracebacks in the log; str(error) is what the caller is told.
    error.add_note(f"{service} answered {response.status_code} {code}: {text[:500]}")
    return error


def as_unauthenticated(error: RemoteError, message: str = "") -> RemoteUnauthenticated:
    """The same report as a refusal of the caller's credentials."""
    same = RemoteUnauthenticated(message)
    for name in ("service", "remote_status", "remote_code", "remote_message", "request_id"):
        setattr(same, name, getattr(error, name))
    return same


def unreachable(service: str, reason: str) -> RemoteUnavailable:
    """Makes the exception for a request that got no answer that can be used."""
    error = RemoteUnavailable(service=service)
    error.remote_message = reason
    return error


def request_id_of(headers: Mapping[str, str]) -> str:
    """Returns the service's own request id (old Nova has a header of its own)."""
    return headers.get("x-openstack-request-id") or headers.get("x-compute-request-id") or ""


def _class_for(response: requests.Response, code: str, text: str) -> type[RemoteError]:
    status = response.status_code
    if status in _QUOTA_STATUSES and _QUOTA_WORDS.search(f"{code} {text}"):
        return RemoteQuotaExceeded
    if status == 413:
        # Nova and Cinder once limited the rate with 413 and a waiting time.
        waits = response.headers.get("Retry-After", "0").strip() not in ("", "0")
        return RemoteTooManyRequests if waits else RemoteQuotaExceeded
    exact: dict[int, type[RemoteError]] = {
        401: RemoteUnauthenticated,
        403: RemoteForbidden,
        404: RemoteNotFound,
        409: RemoteConflict,
        410: RemoteNotFound,
        412: RemoteConflict,
        429: RemoteTooManyRequests,
    }
    if status in exact:
        return exact[status]
    return RemoteBadRequest if 400 <= status < 500 else RemoteUnavailable


def _text_of(value: Mapping[str, Any]) -> str:
    for name in ("message", "description", "detail"):
        text = value.get(name)
        if isinstance(text, str) and text:
            # Glance ends its texts with line breaks meant for a browser.
            return re.sub(r"<br\s*/?>", " ", text).strip()
        if text:
            return json.dumps(text)
    return ""


def _html_text(page: str) -> str:
    """The words of an HTML error page, short enough for a log line."""
    return " ".join(re.sub(r"<[^>]*>", " ", page[:4000]).split())[:500]
