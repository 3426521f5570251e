"""Policy rules of the Magnum API, under upstream's names.

The rules are data: one row says the name, the check, who may use it by scope,
what it permits and which requests ask for it.  Operators' override files
written for upstream keep working because names, checks, scopes and the
deprecated rules are the same (spec section 3).
"""

from __future__ import annotations

from trimaran.magnum.policies.base import RULES as BASE_RULES
from trimaran.magnum.policies.clusters import RULES as CLUSTER_RULES
from trimaran.magnum.policies.others import RULES as OTHER_RULES
from trimaran.magnum.policies.templates import RULES as TEMPLATE_RULES
from trimaran.policy import Rule

__all__ = ["ADMIN", "all_rules"]

#: the rule that makes a caller an administrator, asked once per request
ADMIN = "context_is_admin"


def all_rules() -> tuple[Rule, ...]:
    """Every rule of the service, base rules first."""
    return (*BASE_RULES, *CLUSTER_RULES, *TEMPLATE_RULES, *OTHER_RULES)
