"""Rules of clusters, node groups, certificates and credentials.

``*_all_projects`` rules are asked only when the caller is an administrator
already: they can narrow an administrator's reach, never widen a member's.
"""

from __future__ import annotations

from trimaran.magnum.policies.base import (
    ADMIN,
    MEMBER,
    MEMBER_D,
    MEMBER_OR_CLUSTER_USER,
    MEMBER_USER,
    PROJECT_MEMBER_D,
    READER,
    READER_D,
    READER_USER,
    rule,
)
from trimaran.policy import Rule

_LIST = ["GET /v1/clusters"]
_DETAIL = ["GET /v1/clusters/detail"]
_ONE = "/v1/clusters/{cluster_ident}"
_GROUPS = f"{_ONE}/nodegroups"
_GROUP = f"{_GROUPS}/{{nodegroup}}"
_RESIZE = [f"POST {_ONE}/actions/resize"]
_UPGRADE = [f"POST {_ONE}/actions/upgrade"]

RULES: tuple[Rule, ...] = (
    rule("cluster:create", MEMBER_D, "Create a cluster.", ["POST /v1/clusters"]),
    rule("cluster:delete", MEMBER_D, "Delete a cluster.", [f"DELETE {_ONE}"]),
    rule("cluster:delete_all_projects", ADMIN, "Delete any project's cluster.", [f"DELETE {_ONE}"]),
    rule("cluster:detail", READER_D, "List clusters with detail.", _DETAIL),
    rule("cluster:detail_all_projects", ADMIN, "List all projects' clusters, detailed.", _DETAIL),
    rule("cluster:get", READER_D, "Show a cluster.", [f"GET {_ONE}"]),
    rule("cluster:get_one_all_projects", ADMIN, "Show any project's cluster.", [f"GET {_ONE}"]),
    rule("cluster:get_all", READER_D, "List clusters.", _LIST),
    rule("cluster:get_all_all_projects", ADMIN, "List all projects' clusters.", _LIST),
    rule("cluster:update", MEMBER_D, "Change a cluster.", [f"PATCH {_ONE}"]),
    rule(
        "cluster:update_health_status",
        MEMBER_OR_CLUSTER_USER,
        "Report a cluster's health.",
        [f"PATCH {_ONE}"],
    ),
    rule("cluster:update_all_projects", ADMIN, "Change any project's cluster.", [f"PATCH {_ONE}"]),
    rule("cluster:resize", MEMBER_D, "Resize a cluster.", _RESIZE),
    rule("cluster:upgrade", MEMBER_D, "Upgrade a cluster.", _UPGRADE),
    rule("cluster:upgrade_all_projects", ADMIN, "Upgrade any project's cluster.", _UPGRADE),
    rule("nodegroup:get", READER, "Show a node group.", [f"GET {_GROUP}"]),
    rule("nodegroup:get_all", READER, "List a cluster's node groups.", [f"GET {_GROUPS}"]),
    rule(
        "nodegroup:get_all_all_projects",
        ADMIN,
        "List node groups of any project's cluster.",
        [f"GET {_GROUPS}"],
    ),
    rule("nodegroup:get_one_all_projects", ADMIN, "Show any node group.", [f"GET {_GROUP}"]),
    rule("nodegroup:create", MEMBER, "Create a node group.", [f"POST {_GROUPS}"]),
    rule("nodegroup:delete", MEMBER, "Delete a node group.", [f"DELETE {_GROUP}"]),
    rule("nodegroup:update", MEMBER, "Change a node group.", [f"PATCH {_GROUP}"]),
    rule(
        "certificate:create",
        MEMBER_USER,
        "Have a certificate signed by a cluster's CA.",
        ["POST /v1/certificates"],
    ),
    rule(
        "certificate:get",
        READER_USER,
        "Read a cluster's CA certificate.",
        ["GET /v1/certificates/{cluster_uuid}"],
    ),
    rule(
        "certificate:rotate_ca",
        MEMBER,
        "Rotate a cluster's CA.",
        ["PATCH /v1/certificates/{cluster_uuid}"],
    ),
    rule(
        "credential:rotate",
        PROJECT_MEMBER_D,
        "Rotate a cluster's credential.",
        ["PATCH /v1/credentials/{cluster_uuid}"],
    ),
)
