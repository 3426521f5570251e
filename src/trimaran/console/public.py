"""Which paths need no credentials.

Upstream compares prefixes, so a new route ``/api/v1/configuration`` would be
open to all without anybody noticing (spec/skyline.md F1).  Here a route is
public if it is on this list, and not otherwise.  A path that only looks like a
public one and is no route at all is let through to get its 404, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

API = "/api/v1"

PATHS = frozenset(
    {
        "/api/v1/login",
        "/api/v1/login/totp",
        "/api/v1/websso",
        "/api/v1/sso",
        "/api/v1/config",
        "/api/v1/openapi.json",
        "/api/v1/contrib/keystone_endpoints",
        "/api/v1/contrib/regions",
    }
)

# What upstream lets through; a path that begins so and is no route is 404.
LOOKALIKES = (
    "/api/v1/login",
    "/api/v1/websso",
    "/api/v1/openapi.json",
    "/api/v1/sso",
    "/api/v1/config",
    "/api/v1/contrib/keystone_endpoints",
    "/api/v1/contrib/regions",
)


# Public too when the operator says so (spec/skyline.md F50).
DOMAINS = "/api/v1/contrib/domains"


def needs_credentials(
    scope: Scope, routes: Iterable[BaseRoute], paths: frozenset[str] = PATHS
) -> bool:
    """Tells whether a request must be authenticated.

    Args:
        scope: the request.
        routes: the application's routes.
        paths: the public paths.
    """
    path = scope["path"]
    if not path.startswith(API) or path in paths:
        return False
    if path.startswith(LOOKALIKES):
        return any(route.matches(scope)[0] is not Match.NONE for route in routes)
    return True
