"""Rules of quotas, statistics, services and federations."""

from __future__ import annotations

from trimaran.magnum.policies.base import ADMIN, MEMBER_D, READER, READER_D, rule
from trimaran.policy import Rule

_QUOTA = "/v1/quotas/{project_id}/{resource}"
_FEDERATION = "/v1/federations/{federation_ident}"

RULES: tuple[Rule, ...] = (
    rule("quota:create", ADMIN, "Set a project's quota.", ["POST /v1/quotas"]),
    rule("quota:delete", ADMIN, "Remove a project's quota.", [f"DELETE {_QUOTA}"]),
    rule("quota:get", READER, "Show a project's quota.", [f"GET {_QUOTA}"]),
    rule("quota:get_all", ADMIN, "List quotas.", ["GET /v1/quotas"]),
    rule("quota:update", ADMIN, "Change a project's quota.", [f"PATCH {_QUOTA}"]),
    rule("stats:get_all", READER, "Count clusters and nodes.", ["GET /v1/stats"]),
    rule("magnum-service:get_all", ADMIN, "List conductors.", ["GET /v1/mservices"]),
    rule("federation:create", MEMBER_D, "Create a federation.", ["POST /v1/federations"]),
    rule("federation:delete", MEMBER_D, "Delete a federation.", [f"DELETE {_FEDERATION}"]),
    rule(
        "federation:detail",
        READER_D,
        "List federations with detail.",
        ["GET /v1/federations/detail"],
    ),
    rule("federation:get", READER_D, "Show a federation.", [f"GET {_FEDERATION}"]),
    rule("federation:get_all", READER_D, "List federations.", ["GET /v1/federations"]),
    rule("federation:update", MEMBER_D, "Change a federation.", [f"PATCH {_FEDERATION}"]),
)
