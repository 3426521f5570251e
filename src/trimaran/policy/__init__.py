"""Policy: rule sets, operators' override files, questions, the context object.

See ``enforcer`` for how a service asks, ``overrides`` for the files,
``compiler`` for why it is fast.
"""

from trimaran.policy.context import Context
from trimaran.policy.enforcer import Enforcer
from trimaran.policy.rules import DeprecatedRule, Rule

__all__ = ["Context", "DeprecatedRule", "Enforcer", "Rule"]
