"""Which EC2 actions exist here, found by name, and the policy rule of each.

An action is a public function in a module below ``trimaran.ec2.kinds`` that is
called as boto3 calls its method: writing the function is all it takes to offer
the action.  Whatever the model knows but no function answers is, to a client,
the same as an action that does not exist: ``InvalidAction`` with AWS's text is
what terraform and others tolerate from optional probes (spec ec2.md 1.1, 9.2).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from trimaran.ec2 import kinds
from trimaran.ec2.context import Context
from trimaran.ec2.protocol import model
from trimaran.ec2.protocol.model import Operation
from trimaran.policy import Rule

Function = Callable[[Context, dict[str, Any]], Mapping[str, Any] | None]

# Upstream asks for no role but what the credential's project gives.  A pure
# reader (Keystone's default roles) may look only; who holds other roles that
# imply nothing of ours keeps what upstream gave.
OWN_PROJECT = "project_id:%(project_id)s"
LOOK = OWN_PROJECT
CHANGE = f"{OWN_PROJECT} and (not role:reader or role:member or role:manager or role:admin)"
_READS = ("Describe", "Get", "List", "Search")


@dataclass(frozen=True)
class Action:
    """One action that this service answers."""

    operation: Operation
    function: Function

    @property
    def name(self) -> str:
        """The EC2 name."""
        return self.operation.name

    @property
    def rule(self) -> str:
        """The name of its policy rule."""
        return f"ec2:{self.name}"


def find(package: ModuleType = kinds) -> dict[str, Action]:
    """All actions below a package by their EC2 names.

    Raises:
        TypeError: two modules define the same action.
    """
    wanted = {model.snake_case(name): name for name in model.load().names}
    found: dict[str, Action] = {}
    for module in _modules(package):
        for attribute, function in vars(module).items():
            name = wanted.get(attribute)
            # An imported helper keeps its own module and is no action.
            if name is None or getattr(function, "__module__", None) != module.__name__:
                continue
            if name in found:
                raise TypeError(f"{name} is defined in {module.__name__} and elsewhere")
            operation = model.load().operation(name)
            assert operation is not None
            found[name] = Action(operation, function)
    return found


def _modules(package: ModuleType) -> Sequence[ModuleType]:
    prefix = package.__name__ + "."
    names = sorted(info.name for info in pkgutil.walk_packages(package.__path__, prefix))
    return [package, *(importlib.import_module(name) for name in names)]


@cache
def implemented() -> Mapping[str, Action]:
    """The actions of this service, found once per process."""
    return find()


def reads(name: str) -> bool:
    """Whether an action only looks, by its name."""
    return name.startswith(_READS)


def rules() -> list[Rule]:
    """The default policy: one rule an action, ``ec2:<Action>``."""
    return [
        Rule(
            name=action.rule,
            check=LOOK if reads(name) else CHANGE,
            description=f"The EC2 action {name}.",
            scopes=("project",),
            operations=[{"path": "/", "method": f"POST (Action={name})"}],
        )
        for name, action in sorted(implemented().items())
    ]
