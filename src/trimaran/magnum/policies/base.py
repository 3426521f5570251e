"""The rules that other rules are made of, and the shape of a row.

Since 17.0.0 upstream's defaults are the personas project reader and project
member; each still carries the older, wider check, which counts only while
``[oslo_policy] enforce_new_defaults`` is off.  ``deny_cluster_user`` and
``cluster_user`` in the names are left from trust users, which are gone; the
names stay because override files speak them.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimaran.policy import DeprecatedRule, Rule

ADMIN = "rule:context_is_admin"
READER = "rule:admin_or_project_reader"
MEMBER = "rule:admin_or_project_member"
READER_D = "rule:admin_or_project_reader_deny_cluster_user"
MEMBER_D = "rule:admin_or_project_member_deny_cluster_user"
READER_USER = "rule:admin_or_project_reader_user"
MEMBER_USER = "rule:admin_or_project_member_user"
MEMBER_OR_CLUSTER_USER = "rule:admin_or_project_member_user_or_cluster_user"
PROJECT_MEMBER_D = "rule:project_member_deny_cluster_user"

_REASON = "Tokens are scoped and the default roles reader and member are used."
_SINCE = "17.0.0"
_OLD_OWNER = DeprecatedRule(
    name="rule:admin_or_owner",
    check="is_admin:True or project_id:%(project_id)s",
    reason=_REASON,
    since=_SINCE,
)
_OLD_USER = DeprecatedRule(
    name="rule:admin_or_user",
    check="((rule:context_is_admin) or (rule:is_user))",
    reason=_REASON,
    since=_SINCE,
)


def rule(name: str, check: str, description: str, operations: Sequence[str]) -> Rule:
    """One API rule.

    Args:
        name: upstream's name, ``resource:action``.
        check: the default check; an :data:`ADMIN` rule is open to every scope,
            all others want a project (spec section 3).
        description: what the rule permits.
        operations: requests that ask for it, ``"METHOD /path"``.
    """
    return Rule(
        name=name,
        check=check,
        description=description,
        scopes=() if check == ADMIN else ("project",),
        operations=tuple(operations),
    )


def _shared(name: str, check: str, deprecated: DeprecatedRule | None = None) -> Rule:
    return Rule(name=name, check=check, description="", deprecated=deprecated)


_ADMIN_OR = "(rule:context_is_admin) or "
_MEMBER_AND_USER = _ADMIN_OR + "((rule:project_member) and (rule:is_user))"
_READER_AND_USER = _ADMIN_OR + "((rule:project_reader) and (rule:is_user))"

RULES: tuple[Rule, ...] = (
    _shared("context_is_admin", "role:admin"),
    _shared("admin_or_owner", "is_admin:True or project_id:%(project_id)s"),
    _shared("admin_or_user", "is_admin:True or user_id:%(user_id)s"),
    _shared("is_user", "user_id:%(user_id)s"),
    _shared("project_member", "role:member and project_id:%(project_id)s"),
    _shared("project_reader", "role:reader and project_id:%(project_id)s"),
    _shared("admin_or_project_reader", _ADMIN_OR + "(rule:project_reader)", _OLD_OWNER),
    _shared("admin_or_project_member", _ADMIN_OR + "(rule:project_member)", _OLD_OWNER),
    _shared("admin_or_project_member_user", _MEMBER_AND_USER, _OLD_USER),
    _shared("admin_or_project_member_user_or_cluster_user", _MEMBER_AND_USER, _OLD_USER),
    _shared("project_member_deny_cluster_user", "(rule:project_member)", _OLD_OWNER),
    _shared(
        "admin_or_project_member_deny_cluster_user", _ADMIN_OR + "(rule:project_member)", _OLD_OWNER
    ),
    _shared("project_reader_deny_cluster_user", "(rule:project_reader)", _OLD_OWNER),
    _shared(
        "admin_or_project_reader_deny_cluster_user", _ADMIN_OR + "(rule:project_reader)", _OLD_OWNER
    ),
    _shared("admin_or_project_reader_user", _READER_AND_USER, _OLD_USER),
)
