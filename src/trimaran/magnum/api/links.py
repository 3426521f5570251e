"""Addresses of resources as answers give them.

They are built on the base that the client itself used; what a proxy says about
it was taken in by an outer stage, if the operator trusts the proxy.  Spec
section 1.2.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request


def base(request: Request) -> str:
    """The base URL of this request, without a slash at its end."""
    return str(request.base_url).rstrip("/")


def of(app_url: str, resource: str, ident: str) -> list[dict[str, str]]:
    """The two links of one resource.

    Args:
        app_url: see :func:`base`.
        resource: its collection, such as ``clusters``.
        ident: its UUID.
    """
    return [
        {"href": f"{app_url}/v1/{resource}/{ident}", "rel": "self"},
        {"href": f"{app_url}/{resource}/{ident}", "rel": "bookmark"},
    ]


def next_page(app_url: str, resource: str, query: dict[str, Any]) -> str:
    """The address of the next page.

    Args:
        app_url: see :func:`base`.
        resource: the collection.
        query: arguments in the order to write; empty ones are left out.
    """
    return f"{app_url}/v1/{resource}?{urlencode({k: v for k, v in query.items() if v})}"
