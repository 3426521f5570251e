"""From wire parameters to the typed request that boto3 would have been given.

The declared shape decides everything: where a name leads, and what its text
means.  Content never does: a tag value ``007``, a description ``true`` stay
text (spec ec2.md 1.2, faults F1-F3).  Names are split into a tree of bounded
depth first, so cost is linear in what was sent.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    unknown_parameter,
)
from trimaran.ec2.protocol.model import Operation, Shape

# The model's deepest input has 12 levels.
DEEPEST_NAME = 16
_LONGEST_INDEX = 9
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_RANGE = {"integer": 2**31, "long": 2**63}
_SPACE = str.maketrans("", "", " \t\r\n")
# Scalars that upstream also takes as a list of one (spec 1.2.6).
_SCALAR_OR_LIST = {
    "GetConsoleOutput": frozenset({"InstanceId"}),
    "GetPasswordData": frozenset({"InstanceId"}),
}

# Texts that upstream takes beside the model's members (spec 3.9).
_BESIDE_THE_MODEL = {"ResetNetworkInterfaceAttribute": ("Attribute",)}

Tree = dict[str, "str | Tree"]


def parse(operation: Operation, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The typed request.

    Args:
        operation: the action's model.
        arguments: the action's own parameters by wire name.

    Returns:
        What boto3's method takes: member names, ints, bools, bytes for blobs,
        aware UTC datetimes for timestamps.  What was not sent is absent.

    Raises:
        EC2Error: ``UnknownParameter``, ``MissingParameter``,
            ``InvalidParameterValue``, ``ValidationError`` (an int or a bool
            that is none), ``InvalidParameterCombination``.
    """
    shape = operation.input
    if shape is None:
        for name in arguments:
            raise unknown_parameter(name)
        return {}
    tree = _tree(arguments)
    for name in _SCALAR_OR_LIST.get(operation.name, ()):
        _unlist(tree, name)
    beside = {
        name: text
        for name in _BESIDE_THE_MODEL.get(operation.name, ())
        if isinstance(text := tree.pop(name, None), str)
    }
    return _structure(shape, tree, "", top=True) | beside


def _tree(arguments: Mapping[str, str]) -> Tree:
    root: Tree = {}
    for name, text in arguments.items():
        steps = name.split(".", DEEPEST_NAME)
        if len(steps) > DEEPEST_NAME:
            raise unknown_parameter(name)
        node = root
        for step in steps[:-1]:
            inner = node.setdefault(step, {})
            if isinstance(inner, str):
                raise _both(name)
            node = inner
        if node.setdefault(steps[-1], text) is not text:
            raise _both(name)
    return root


def _both(name: str) -> EC2Error:
    return EC2Error(
        "InvalidParameterValue",
        f"The parameter {name[:255]} is given both as a value and as a structure.",
    )


def _unlist(tree: Tree, name: str) -> None:
    node = tree.get(name)
    if isinstance(node, dict) and node and all(_is_index(key) for key in node):
        if len(node) > 1:
            raise invalid_combination(f"Only one {name} may be given.")
        tree[name] = next(iter(node.values()))


def _is_index(step: str) -> bool:
    return step.isascii() and step.isdigit() and len(step) <= _LONGEST_INDEX


def _value(shape: Shape, node: str | Tree, path: str, *, loose: bool) -> Any:
    """One value; None where what was sent counts as nothing.

    ``loose``: ``X=v`` and ``X.Value=v`` mean the same, at top level and as list
    elements only (spec 1.2.3).
    """
    if shape.kind == "structure":
        if isinstance(node, dict):
            return _structure(shape, node, path)
        if not node:
            return None
        if loose and "Value" in shape.members:
            return _structure(shape, {"Value": node}, path)
        raise invalid_value(path, node, "Expected a structure here")
    if shape.kind == "list":
        return _list(shape, node, path)
    if isinstance(node, dict):
        inner = node.get("Value") if loose and len(node) == 1 else None
        if not isinstance(inner, str):
            raise unknown_parameter(f"{path}.{_first_leaf(node)}")
        node = inner
    return _scalar(shape, node, path)


def _structure(shape: Shape, node: Tree, path: str, *, top: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = {}
    by_query = shape.by_query
    prefix = f"{path}." if path else ""
    for step, inner in node.items():
        member = by_query.get(step) or shape.by_folded_query.get(step.lower())
        if member is None:
            leaf = step if isinstance(inner, str) else f"{step}.{_first_leaf(inner)}"
            raise unknown_parameter(prefix + leaf)
        value = _value(member.shape, inner, prefix + member.query, loose=top)
        if value is not None:
            result[member.name] = value
    for name in sorted(shape.required):
        if result.get(name) in (None, "", b"", []):
            raise missing(prefix + shape.members[name].query)
    return result


def _list(shape: Shape, node: str | Tree, path: str) -> list[Any] | None:
    if isinstance(node, str):
        if not node:  # how some clients write an empty list, which is the same as none
            return None
        raise invalid_value(path, node, "Expected a list here")
    for step, inner in node.items():
        if not _is_index(step):
            leaf = step if isinstance(inner, str) else f"{step}.{_first_leaf(inner)}"
            raise unknown_parameter(f"{path}.{leaf}")
    values = (
        _value(shape.element, node[step], f"{path}.{step}", loose=True)
        for step in sorted(node, key=int)
    )
    return [value for value in values if value is not None]


def _first_leaf(tree: Tree) -> str:
    names = []
    node: str | Tree = tree
    while isinstance(node, dict) and node:
        step, node = next(iter(node.items()))
        names.append(step)
    return ".".join(names)


def _scalar(shape: Shape, text: str, path: str) -> Any:
    kind = shape.kind
    if kind == "string":
        if "\0" in text:
            raise invalid_value(path, _shown(shape, text), "It holds a NUL character.")
        return text
    if kind == "boolean":
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise _mistyped(shape, text, path, "a boolean")
        return lowered == "true"
    if kind in _RANGE:
        if not _INTEGER.fullmatch(text) or not -_RANGE[kind] <= int(text) < _RANGE[kind]:
            raise _mistyped(shape, text, path, "an integer")
        return int(text)
    if kind in ("float", "double"):
        if not _FLOAT.fullmatch(text) or not math.isfinite(float(text)):
            raise _mistyped(shape, text, path, "a number")
        return float(text)
    if kind == "timestamp":
        return _timestamp(shape, text, path)
    return _blob(shape, text, path)


def _timestamp(shape: Shape, text: str, path: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise invalid_value(path, _shown(shape, text), "Expected an ISO 8601 time.") from None


def _blob(shape: Shape, text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text.translate(_SPACE), validate=True)
    except (ValueError, binascii.Error):
        raise invalid_value(path, _shown(shape, text), "Expected base64.") from None


def _mistyped(shape: Shape, text: str, path: str, wanted: str) -> EC2Error:
    return EC2Error(
        "ValidationError",
        f"Value ({_shown(shape, text)}) for parameter {path[:255]} is not {wanted}.",
    )


def _shown(shape: Shape, text: str) -> str:
    if shape.sensitive:
        return "***"
    return text if len(text) <= 255 else text[:252] + "..."
