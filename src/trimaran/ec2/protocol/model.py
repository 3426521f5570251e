"""botocore's EC2 service model as data: which parameters an action has, and how results look.

Only the JSON is taken, not botocore's classes: importing those costs more than
the file, and its loader would let a user's own ``~/.aws/models`` change our
wire.  Documentation is dropped while parsing (two thirds of the text), shapes
are resolved on first use, so a process keeps what its clients really call.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trimaran.errors import ConfigError

SERVICE = "ec2"
# What neither parsing nor rendering reads.
_DROPPED = frozenset(
    {
        "documentation", "documentationUrl", "enum", "pattern", "min", "max", "http", "errors",
        "deprecated", "deprecatedMessage", "deprecatedSince", "idempotencyToken",
    }
)  # fmt: skip
# What AWS came to demand and ec2-api never did (spec ec2.md 3.5): older clients leave it out.
_OPTIONAL = {"CreateImageRequest": {"Name"}, "RegisterImageRequest": {"Name"}}
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Shape:
    """One shape of the model.

    Attributes:
        name: the model's name of it.
        kind: ``structure``, ``list``, ``string``, ``integer``, ``long``,
            ``boolean``, ``double``, ``float``, ``blob`` or ``timestamp``.
        required: member names that a structure must have.
        sensitive: never to be logged.
    """

    def __init__(self, model: Model, name: str, raw: Mapping[str, Any]) -> None:
        self._model = model
        self._raw = raw
        self.name = name
        self.kind: str = raw["type"]
        self.required = frozenset(raw.get("required", ())) - _OPTIONAL.get(name, set())
        self.sensitive = bool(raw.get("sensitive"))
        self.location: str | None = raw.get("locationName")
        self.query: str | None = raw.get("queryName")

    @cached_property
    def members(self) -> Mapping[str, Member]:
        """A structure's members by the name boto3 uses."""
        return {
            name: Member(self._model, name, ref)
            for name, ref in self._raw.get("members", {}).items()
        }

    @cached_property
    def element(self) -> Shape:
        """What a list holds."""
        return self._model.shape(self._raw["member"]["shape"])

    @cached_property
    def by_query(self) -> Mapping[str, Member]:
        """A structure's members by their name in a request."""
        return {member.query: member for member in self.members.values()}

    @cached_property
    def by_folded_query(self) -> Mapping[str, Member]:
        """The same without regard to case, which older clients relied on."""
        return {name.lower(): member for name, member in self.by_query.items()}


class Member:
    """A member of a structure: its shape and its two names on the wire.

    Attributes:
        name: what boto3 calls it.
        query: name in a request (the ``ec2`` protocol's rule: queryName, else
            locationName with a capital, else the name).
        xml: element name in an answer.
    """

    __slots__ = ("_model", "_shape", "name", "query", "xml")

    def __init__(self, model: Model, name: str, ref: Mapping[str, Any]) -> None:
        self._model = model
        self._shape: str = ref["shape"]
        self.name = name
        target = model.shape(self._shape)
        location = ref.get("locationName") or target.location
        self.xml: str = location or name
        query = ref.get("queryName") or target.query
        self.query: str = query or (location[0].upper() + location[1:] if location else name)

    @property
    def shape(self) -> Shape:
        return self._model.shape(self._shape)


class Operation:
    """One action: its typed input and output."""

    __slots__ = ("_input", "_model", "_output", "name")

    def __init__(self, model: Model, name: str, raw: Mapping[str, Any]) -> None:
        self._model = model
        self.name = name
        self._input: str | None = (raw.get("input") or {}).get("shape")
        self._output: str | None = (raw.get("output") or {}).get("shape")

    @property
    def input(self) -> Shape | None:
        return self._model.shape(self._input) if self._input else None

    @property
    def output(self) -> Shape | None:
        return self._model.shape(self._output) if self._output else None

    @property
    def method(self) -> str:
        """The name of the function that implements it, which is boto3's method name."""
        return snake_case(self.name)


class Model:
    """The whole service; use :func:`load` for the process's one instance."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.api_version: str = raw["metadata"]["apiVersion"]
        self._operations: Mapping[str, Any] = raw["operations"]
        self._raw: Mapping[str, Any] = raw["shapes"]
        self._shapes: dict[str, Shape] = {}
        self._made: dict[str, Operation] = {}

    @property
    def names(self) -> Iterable[str]:
        """Names of all operations."""
        return self._operations.keys()

    def operation(self, name: str) -> Operation | None:
        """The operation of that exact name, or None."""
        made = self._made.get(name)
        if made is None and (raw := self._operations.get(name)) is not None:
            made = self._made.setdefault(name, Operation(self, name, raw))
        return made

    def shape(self, name: str) -> Shape:
        """A shape by the model's name; each is made once."""
        made = self._shapes.get(name)
        if made is None:
            made = self._shapes.setdefault(name, Shape(self, name, self._raw[name]))
        return made


def snake_case(name: str) -> str:
    """``DescribeVpcs`` → ``describe_vpcs``, as boto3 names its methods."""
    return _WORD.sub("_", name).lower()


@cache
def load() -> Model:
    """The EC2 model of the installed botocore, read once per process.

    Raises:
        ConfigError: botocore is not installed or has no such model.
    """
    return Model(json.loads(_read(), object_pairs_hook=_lean))


def _read() -> bytes:
    spec = find_spec("botocore")
    if spec is None or spec.origin is None:
        raise ConfigError("The package botocore, which describes the EC2 API, is not installed.")
    versions = sorted((Path(spec.origin).parent / "data" / SERVICE).glob("*/service-2.json*"))
    if not versions:
        raise ConfigError("The installed botocore has no model of the EC2 API.")
    data = versions[-1].read_bytes()
    return gzip.decompress(data) if versions[-1].suffix == ".gz" else data


def _lean(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A *member* may be named like a trait ("Min", "Max" are capitalised, but
    # "errors" might come): member tables hold dicts only, traits that we drop
    # from shapes never have a "shape" of their own.
    return {
        key: value
        for key, value in pairs
        if key not in _DROPPED or (isinstance(value, dict) and "shape" in value)
    }
