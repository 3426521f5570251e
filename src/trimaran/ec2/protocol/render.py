"""From the dict that boto3 will hand its user to the XML that makes it do so.

For each output shape a writer is compiled on first use: a table from member
name to its ready-made tags and the writer of its value.  Rendering is then one
pass that appends strings to a list, cheap enough for thousands of instances.
Elements are the ``ec2`` protocol's (spec ec2.md 1.3): lists hold ``item``,
None is left out, booleans are lower case, times carry milliseconds and Z, and
the document is ASCII with numeric references.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from trimaran.ec2.protocol.model import Operation, Shape

LOG = logging.getLogger(__name__)

Append = Callable[[str], None]
Writer = Callable[[Any, Append], None]

# What must not stand in element text as it is: markup, what XML 1.0 forbids,
# and the carriage return, which parsers would turn into a newline.
_SPECIAL = re.compile("[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
# Say ``return`` beside what the model knows of their answers (spec ec2.md 3.1, 3.9, 3.11).
_ALSO_TRUE = frozenset({"AssignPrivateIpAddresses", "AssociateAddress", "CreateSecurityGroup"})
_ATTRIBUTE = re.compile("[&<>\"'\r\n\t\x00-\x1f\ud800-\udfff\ufffe\uffff]")


def render(
    operation: Operation, result: Mapping[str, Any] | None, *, version: str, request_id: str
) -> bytes:
    """The success document.

    Args:
        operation: the action's model.
        result: boto3's dict without ``ResponseMetadata``; None values are left out.
        version: the client's ``Version``, echoed in the namespace.
        request_id: becomes the first child.

    Returns:
        ASCII bytes.  Actions that answer with a plain "done" (no output shape,
        or one with ``Return`` that the result leaves out) say ``<return>true``,
        and some that tell more as well.
    """
    out: list[str] = [
        f'<{operation.name}Response xmlns="http://ec2.amazonaws.com/doc/{_attribute(version)}/">'
        f"<requestId>{text(request_id)}</requestId>"
    ]
    shape = operation.output
    result = result or {}
    if shape is None:
        out.append("<return>true</return>")
    else:
        writer(shape)(result, out.append)
        done = "Return" in shape.members or operation.name in _ALSO_TRUE
        if done and result.get("Return") is None:
            out.append("<return>true</return>")
    out.append(f"</{operation.name}Response>")
    return "".join(out).encode("ascii", "xmlcharrefreplace")


def text(value: str) -> str:
    """Element text: markup escaped, characters that XML forbids replaced by U+FFFD."""
    return _SPECIAL.sub(_replace, value) if _SPECIAL.search(value) else value


def timestamp(value: datetime | str) -> str:
    """``YYYY-MM-DDTHH:MM:SS.mmmZ`` of a datetime (naive is UTC) or of OpenStack's ISO text.

    Text that is no time is given back as it is: better an odd value in one
    field than no listing.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return text(value)
        value = moment
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    return (
        f"{value.year:04d}-{value.month:02d}-{value.day:02d}T{value.hour:02d}:{value.minute:02d}:"
        f"{value.second:02d}.{value.microsecond // 1000:03d}Z"
    )


def _replace(match: re.Match[str]) -> str:
    return _NAMED.get(match[0], "\ufffd")


def _attribute(value: str) -> str:
    quoted = {**_NAMED, '"': "&quot;", "'": "&apos;", "\n": "&#10;", "\t": "&#9;"}
    return _ATTRIBUTE.sub(lambda match: quoted.get(match[0], "\ufffd"), value)


@cache
def writer(shape: Shape) -> Writer:
    """The compiled writer of a shape (the model's shapes do not refer to themselves)."""
    if shape.kind == "structure":
        return _structure(shape)
    if shape.kind == "list":
        return _list(shape)
    return _SCALARS.get(shape.kind, _string)


def _structure(shape: Shape) -> Writer:
    members = shape.members
    # Writers of members are compiled when first met: a result uses few of the
    # hundreds that a shape reaches.
    table: dict[str, tuple[str, str, str, Writer, bool]] = {}

    def entry(name: str) -> tuple[str, str, str, Writer, bool] | None:
        member = members.get(name)
        if member is None:
            # A slip of an action, not of the caller: keep the answer, tell the log.
            LOG.error("%s has no member %s; it is left out of the answer", shape.name, name)
            return None
        tag = member.xml
        compiled = (
            f"<{tag}>",
            f"</{tag}>",
            f"<{tag}/>",
            writer(member.shape),
            member.shape.kind in ("structure", "list"),
        )
        table[name] = compiled
        return compiled

    def write(value: Any, append: Append) -> None:
        for name, inner in value.items():
            if inner is None:
                continue
            found = table.get(name) or entry(name)
            if found is None:
                continue
            opening, closing, empty, inner_writer, nested = found
            if nested and not inner:
                append(empty)
                continue
            append(opening)
            inner_writer(inner, append)
            append(closing)

    return write


def _list(shape: Shape) -> Writer:
    element = writer(shape.element)

    def write(value: Any, append: Append) -> None:
        for inner in value:
            if inner is not None:
                append("<item>")
                element(inner, append)
                append("</item>")

    return write


def _string(value: Any, append: Append) -> None:
    if value.__class__ is not str:
        value = _plain(value)
    append(_SPECIAL.sub(_replace, value) if _SPECIAL.search(value) else value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return timestamp(value) if isinstance(value, datetime) else str(value)


def _boolean(value: Any, append: Append) -> None:
    append("true" if value else "false")


def _integer(value: Any, append: Append) -> None:
    append(str(int(value)))


def _float(value: Any, append: Append) -> None:
    append(repr(float(value)))


def _time(value: Any, append: Append) -> None:
    append(timestamp(value))


def _blob(value: Any, append: Append) -> None:
    raw = value.encode() if isinstance(value, str) else value
    append(base64.b64encode(raw).decode("ascii"))


_SCALARS: dict[str, Writer] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "timestamp": _time,
    "blob": _blob,
}
