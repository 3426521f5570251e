"""Rules of cluster templates."""

from __future__ import annotations

from trimaran.magnum.policies.base import ADMIN, MEMBER, MEMBER_D, READER_D, rule
from trimaran.policy import Rule

_LIST = ["GET /v1/clustertemplates"]
_DETAIL = ["GET /v1/clustertemplates/detail"]
_ONE = "/v1/clustertemplates/{cluster_template_ident}"
_POST = "POST /v1/clustertemplates"

RULES: tuple[Rule, ...] = (
    rule("clustertemplate:create", MEMBER_D, "Create a cluster template.", [_POST]),
    rule("clustertemplate:delete", MEMBER, "Delete a cluster template.", [f"DELETE {_ONE}"]),
    rule(
        "clustertemplate:delete_all_projects",
        ADMIN,
        "Delete any project's cluster template.",
        [f"DELETE {_ONE}"],
    ),
    rule("clustertemplate:detail", READER_D, "List cluster templates with detail.", _DETAIL),
    rule(
        "clustertemplate:detail_all_projects",
        ADMIN,
        "List all projects' cluster templates with detail.",
        _DETAIL,
    ),
    rule("clustertemplate:get", READER_D, "Show a cluster template.", [f"GET {_ONE}"]),
    rule(
        "clustertemplate:get_one_all_projects",
        ADMIN,
        "Show any project's cluster template.",
        [f"GET {_ONE}"],
    ),
    rule("clustertemplate:get_all", READER_D, "List cluster templates.", _LIST),
    rule(
        "clustertemplate:get_all_all_projects",
        ADMIN,
        "List all projects' cluster templates.",
        _LIST,
    ),
    rule("clustertemplate:update", MEMBER, "Change a cluster template.", [f"PATCH {_ONE}"]),
    rule(
        "clustertemplate:update_all_projects",
        ADMIN,
        "Change any project's cluster template.",
        [f"PATCH {_ONE}"],
    ),
    rule(
        "clustertemplate:publish",
        ADMIN,
        "Make a cluster template public or hidden.",
        [_POST, f"PATCH {_ONE}"],
    ),
)
