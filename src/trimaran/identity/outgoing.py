"""Headers that follow a request into every OpenStack call made for it.

A contextvar and not an argument: a hull's handler is five calls away from the
HTTP request that it causes, and none of the layers between has a use for the
request id or the caller's address.  ``cloud.gather`` copies the context into
its threads, so a fan-out carries them too.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

USER_AGENT = "trimaran"
REQUEST_ID_HEADER = "X-OpenStack-Request-ID"

# oslo.middleware takes a caller's id only in this form, and so do we: whatever
# else a client may have sent must not become a header of ours.
_REQUEST_ID = re.compile(r"\Areq-[a-zA-Z0-9-]{1,64}\Z")

outgoing_headers: ContextVar[Mapping[str, str]] = ContextVar(
    "outgoing_headers", default=MappingProxyType({})
)


def headers_for(*, request_id: str = "", remote_address: str = "") -> dict[str, str]:
    """Builds the headers of one incoming request.

    Args:
        request_id: ``req-<uuid>``; anything else is left out.
        remote_address: the client's IP address; anything else is left out.

    Returns:
        ``X-OpenStack-Request-ID`` (the services log it as global request id)
        and ``Forwarded`` (RFC 7239; Keystone's audit and lockout see the real
        client, spec/skyline.md 1.4 step 2).
    """
    headers = {}
    if _REQUEST_ID.match(request_id):
        headers[REQUEST_ID_HEADER] = request_id
    forwarded = _forwarded(remote_address) if remote_address else ""
    if forwarded:
        headers["Forwarded"] = forwarded
    return headers


# The same few clients and proxies come again and again.
@functools.lru_cache(maxsize=1024)
def _forwarded(remote_address: str) -> str:
    try:
        address = ipaddress.ip_address(remote_address)
    except ValueError:
        return ""
    # RFC 7239 section 6: an IPv6 address is bracketed and quoted.
    node = str(address) if address.version == 4 else f'"[{address}]"'
    return f"for={node};by={USER_AGENT}"


@contextmanager
def sending(*, request_id: str = "", remote_address: str = "") -> Iterator[None]:
    """Sends ``headers_for(...)`` with every OpenStack call made inside the block."""
    mark = outgoing_headers.set(headers_for(request_id=request_id, remote_address=remote_address))
    try:
        yield
    finally:
        outgoing_headers.reset(mark)
