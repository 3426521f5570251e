"""Filters of a Describe (spec 1.11): names checked first, values compared by type.

A kind declares a table ``{filter name: where the value is}``; the place is a
dotted path into the dict that the action renders (lists on the way fan out) or
a function.  Names are validated before anything is listed, so an unknown one
fails on an empty project too (F11).  Wildcards are ``*`` and ``?`` with ``\\``
as escape, nothing else (F13), matched in time linear in text and pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trimaran.ec2.protocol.errors import EC2Error, invalid_value

Accessor = str | Callable[[Any], Any]
Table = Mapping[str, Accessor]

MOST_PATTERNS = 200

TAG_KEY: Accessor = "Tags.Key"
TAG_VALUE: Accessor = "Tags.Value"


def values_at(item: Any, path: str) -> Iterator[Any]:
    """The values at a dotted path; lists fan out, absent steps and None yield nothing."""
    return _walk(item, path.split("."), 0)


def _walk(node: Any, steps: Sequence[str], depth: int) -> Iterator[Any]:
    if node is None:
        return
    if isinstance(node, list | tuple):
        for entry in node:
            yield from _walk(entry, steps, depth)
    elif depth == len(steps):
        yield node
    elif isinstance(node, Mapping):
        yield from _walk(node.get(steps[depth]), steps, depth + 1)


class Pattern:
    """One filter value: literal text, or text with wildcards."""

    __slots__ = ("literal", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        wild = False
        pieces: list[str | None] = []  # a character, "" for ?, None for *
        position = 0
        while position < len(text):
            char = text[position]
            if char == "\\" and position + 1 < len(text):
                position += 1
                pieces.append(text[position])
            elif char == "*":
                wild = True
                if not pieces or pieces[-1] is not None:
                    pieces.append(None)
            elif char == "?":
                wild = True
                pieces.append("")
            else:
                pieces.append(char)
            position += 1
        self.tokens = pieces if wild else None
        self.literal = None if wild else "".join(piece or "" for piece in pieces)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches, case-sensitively."""
        if self.tokens is None:
            return text == self.literal
        return _glob(self.tokens, text)


def _glob(tokens: Sequence[str | None], text: str) -> bool:
    # The greedy two-pointer match: on a mismatch only the last star is widened,
    # so the cost is bounded by len(text) * len(tokens), whatever the pattern.
    if sum(token is not None for token in tokens) > len(text):
        return False
    t = p = 0
    star = resume = -1
    while t < len(text):
        if p < len(tokens) and tokens[p] is not None and tokens[p] in ("", text[t]):
            t += 1
            p += 1
        elif p < len(tokens) and tokens[p] is None:
            star, resume = p, t
            p += 1
        elif star >= 0:
            resume += 1
            t, p = resume, star + 1
        else:
            return False
    return all(token is None for token in tokens[p:])


def _texts(value: Any) -> tuple[str, ...]:
    """The text forms under which a value can be named."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        seconds = moment.strftime("%Y-%m-%dT%H:%M:%S")
        exact = f"{seconds}.{moment.microsecond // 1000:03d}Z"
        return (exact, f"{seconds}Z") if moment.microsecond < 1000 else (exact,)
    return (str(value),)


class _Condition:
    """One filter: any of its values matches any value at its place."""

    __slots__ = ("accessor", "exact", "folded", "numbers", "patterns")

    def __init__(self, accessor: Callable[[Any], Iterable[Any]], values: Sequence[str]) -> None:
        self.accessor = accessor
        compiled = [Pattern(value) for value in values]
        self.exact = {p.literal for p in compiled if p.literal is not None}
        self.folded = {literal.lower() for literal in self.exact if literal}
        self.numbers = {
            number for literal in self.exact if (number := _number(literal)) is not None
        }
        self.patterns = [p for p in compiled if p.literal is None]

    def matches(self, item: Any) -> bool:
        return any(self._accepts(value) for value in self.accessor(item))

    def _accepts(self, value: Any) -> bool:
        if value is None:
            return False
        texts = _texts(value)
        if isinstance(value, bool):
            if texts[0] in self.folded:
                return True
        elif isinstance(value, int):
            if value in self.numbers:
                return True
        elif not self.exact.isdisjoint(texts):
            return True
        return any(pattern.matches(text) for pattern in self.patterns for text in texts)


def _number(text: str | None) -> int | None:
    if not text or len(text) > 20:
        return None
    digits = text[1:] if text[0] in "+-" else text
    return int(text) if digits.isascii() and digits.isdigit() else None


class Matcher:
    """The filters of one request: all of them must match (AND), any value will do (OR)."""

    __slots__ = ("_conditions", "names")

    def __init__(self, conditions: Sequence[_Condition], names: frozenset[str]) -> None:
        self._conditions = conditions
        self.names = names

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def __call__(self, item: Any) -> bool:
        """Whether an item (the dict that the action renders) passes."""
        return all(condition.matches(item) for condition in self._conditions)

    def apply(self, items: Iterable[Any]) -> list[Any]:
        """The items that pass, in their order."""
        return [item for item in items if self(item)] if self._conditions else list(items)


def compile_filters(
    filters: Sequence[Mapping[str, Any]] | None,
    table: Table,
    *,
    taggable: bool = True,
) -> Matcher:
    """Check the filters of a request and make them ready to apply.

    Args:
        filters: the request's ``Filters``, ``[{"Name": str, "Values": [str]}]`` or None.
        table: the kind's filter names, each with a dotted path into the rendered
            item (``"BlockDeviceMappings.Ebs.VolumeId"``) or a function from the
            item to one value or a list of values.
        taggable: also accept ``tag:KEY``, ``tag-key`` and ``tag-value``, which
            look at the item's ``Tags``.

    Raises:
        EC2Error: ``InvalidFilter`` for an entry without name or values,
            ``InvalidParameterValue`` for a name that the table does not have.
    """
    conditions: list[_Condition] = []
    names: set[str] = set()
    patterns = 0
    for entry in filters or ():
        name = entry.get("Name")
        values = [value for value in entry.get("Values") or () if value is not None]
        if not name or not values:
            raise EC2Error("InvalidFilter", "Each filter needs a name and at least one value.")
        condition = _Condition(_reader(name, table, taggable), [str(value) for value in values])
        patterns += len(condition.patterns)
        if patterns > MOST_PATTERNS:
            raise EC2Error(
                "FilterLimitExceeded",
                f"The filters hold more than {MOST_PATTERNS} values with wildcards.",
            )
        names.add(name)
        conditions.append(condition)
    return Matcher(conditions, frozenset(names))


def _reader(name: str, table: Table, taggable: bool) -> Callable[[Any], Iterable[Any]]:
    accessor = table.get(name)
    if accessor is None and taggable:
        if name.startswith("tag:"):
            return _tag_reader(name.split(":", 1)[1])
        accessor = {"tag-key": TAG_KEY, "tag-value": TAG_VALUE}.get(name)
    if accessor is None:
        raise invalid_value("Filter.Name", name, f"The filter '{name[:255]}' is invalid")
    if callable(accessor):
        return _call_reader(accessor)
    path = accessor.split(".")
    return lambda item: _walk(item, path, 0)


def _tag_reader(key: str) -> Callable[[Any], Iterable[Any]]:
    # A resource has few tags: a scan is cheaper than a dict per item.
    return lambda item: [
        tag.get("Value") or "" for tag in item.get("Tags") or () if tag.get("Key") == key
    ]


def _call_reader(function: Callable[[Any], Any]) -> Callable[[Any], Iterable[Any]]:
    def read(item: Any) -> Iterable[Any]:
        found = function(item)
        if found is None:
            return ()
        return found if isinstance(found, list | tuple | set | frozenset) else (found,)

    return read
