"""JSON patches of clusters, cluster templates and node groups.

Upstream takes a part of RFC 6902 (add, replace, remove) with rules of its own,
and values of maps as Python literals in text.  Here such values may also be
JSON text or native objects, paths may be any JSON pointer, so that label keys
with dots can be named, and the first segment of a path decides whether it may
be touched.  Spec section 1.14; faults F-28, F-42, F-46, F-48.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import jsonpatch
from pydantic import Field, ValidationError

from trimaran.errors import BadRequest
from trimaran.magnum.api import fields
from trimaran.magnum.api.fields import Storable
from trimaran.magnum.api.schemas.common import Body

B = TypeVar("B", bound=Body)

#: attributes whose values may come as text
_LITERALS = frozenset({"labels", "health_status_reason", "node_labels", "node_taints"})
_INTERNAL = frozenset({"created_at", "id", "links", "updated_at", "uuid", "project_id", "user_id"})
#: longest text that is parsed as a literal; more fits no column
_LONGEST = fields.MAX_TEXT

Path = Annotated[Storable, Field(pattern=r"^(/([^/~]|~[01])*)+$", max_length=1024)]


class Operation(Body):
    """One step of a patch."""

    path: Path
    op: Literal["add", "replace", "remove"]
    value: Any = None

    @property
    def attribute(self) -> str:
        """The attribute of the resource that the path is about."""
        return self.path.split("/")[1].replace("~1", "/").replace("~0", "~")

    @property
    def whole(self) -> bool:
        """Whether the path is an attribute itself, not something inside it."""
        return self.path.count("/") == 1


Patch = list[Operation]


@dataclass(frozen=True)
class Rules:
    """What patches of one kind of resource may not do.

    Attributes:
        internal: attributes that are never touched, beside those of all kinds.
        mandatory: attributes that are not removed.
    """

    internal: frozenset[str] = frozenset()
    mandatory: frozenset[str] = frozenset()

    def check(self, operations: Iterable[Operation]) -> None:
        """Refuses a patch that breaks the rules.

        Raises:
            BadRequest: upstream's texts.
        """
        for step in operations:
            if step.attribute in _INTERNAL | self.internal:
                raise BadRequest(
                    f"'/{step.attribute}' is an internal attribute and can not be updated"
                )
            if step.op == "remove" and step.whole and step.attribute in self.mandatory:
                raise BadRequest(f"'{step.path}' is a mandatory attribute and can not be removed")
            if step.op != "remove" and step.value is None:
                raise BadRequest("'add' and 'replace' operations needs value")


def apply(document: Mapping[str, Any], operations: Sequence[Operation]) -> dict[str, Any]:
    """The document after a patch; the given one is not changed.

    Args:
        document: attributes of the resource.
        operations: steps that passed ``Rules.check``.

    Raises:
        BadRequest: a step cannot be done.
    """
    result: Any = deepcopy(dict(document))
    steps = [step.model_dump(exclude_unset=True) for step in operations]
    for step, plain in zip(operations, steps, strict=True):
        if step.op == "add" and step.whole:
            if step.attribute not in result:
                raise BadRequest(
                    f"Adding a new attribute {step.path} to the root of the resource "
                    "is not allowed."
                )
            if result[step.attribute] is not None:
                raise BadRequest(
                    f"The attribute {step.path} has existed, please use 'replace' operation "
                    "instead."
                )
        try:
            if step.op != "remove" and step.whole and step.attribute in _LITERALS:
                plain["value"] = _literal(step.value)
            result = jsonpatch.apply_patch(result, [plain])
        except (
            jsonpatch.JsonPatchException,
            jsonpatch.JsonPointerException,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            raise BadRequest(
                f"Couldn't apply patch '{str(steps)[:2048]}'. Reason: {str(error)[:2048]}"
            ) from None
    return dict(result)


def _literal(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if len(value) > _LONGEST:
        raise ValueError(f"the value is longer than {_LONGEST} characters")
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(value)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error) or "the value is nested too deeply") from None


def validated(model: type[B], document: Mapping[str, Any], *names: str) -> B:
    """Checks a patched document as a body of its kind would be checked.

    Args:
        model: the body's model.
        document: the patched attributes.
        names: those to look at; read-only ones are not among them.

    Raises:
        BadRequest: an attribute has a wrong value now.
    """
    values = {name: document[name] for name in names if document.get(name) is not None}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise fields.translate(found, "patch") from None
