"""Raw parameters of a request: query string and form body merged, transport names set apart.

Everything a hostile sender controls is bounded here, before the model is asked:
the number of parameters, their encoding and what a multipart body may hold
(spec ec2.md 1.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import create_form_parser

from trimaran.ec2.protocol.errors import EC2Error

MOST_PARAMETERS = 10_000
LONGEST_QUERY = 16_384
_TRANSPORT = frozenset(
    {
        "Action", "Version", "AWSAccessKeyId", "Signature", "SignatureMethod",
        "SignatureVersion", "Timestamp", "Expires", "SecurityToken",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Parameters:
    """What a request carried.

    Attributes:
        query: parameters of the query string.
        form: parameters of the body.
        merged: both; the query string wins, the last of a repeated name wins.
    """

    query: Mapping[str, str]
    form: Mapping[str, str]
    merged: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """A parameter's text, None when absent."""
        return self.merged.get(name)

    @property
    def arguments(self) -> dict[str, str]:
        """What belongs to the action: all but the transport's own names."""
        return {name: text for name, text in self.merged.items() if not is_transport(name)}


def is_transport(name: str) -> bool:
    """Whether a name belongs to signing and dispatch, so that no action sees it (F4)."""
    return name in _TRANSPORT or name[:6].lower() == "x-amz-"


def collect(query_string: bytes, content_type: str, body: bytes) -> Parameters:
    """Take the parameters from a request.

    Args:
        query_string: as sent, without the question mark.
        content_type: the header's value, empty when absent (a form is assumed).
        body: the whole body; a type that is no form adds nothing.

    Raises:
        EC2Error: 414 for a long query, ``InvalidRequest`` for broken encoding,
            too many parameters or a broken multipart body.
    """
    if len(query_string) > LONGEST_QUERY:
        raise EC2Error("InvalidRequest", "The request line is too long.", 414)
    query = _urlencoded(query_string)
    media = content_type.partition(";")[0].strip().lower()
    if not body:
        form: dict[str, str] = {}
    elif media in ("", "application/x-www-form-urlencoded"):
        form = _urlencoded(body)
    elif media == "multipart/form-data":
        form = _multipart(content_type, body)
    else:
        form = {}
    merged = {**form, **query}
    if len(merged) > MOST_PARAMETERS:
        raise _too_many()
    return Parameters(query, form, merged)


def _urlencoded(raw: bytes) -> dict[str, str]:
    if raw.count(b"&") >= MOST_PARAMETERS:
        raise _too_many()
    try:
        return dict(parse_qsl(raw.decode().rstrip("\r\n"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise _broken_encoding() from None


def _multipart(content_type: str, body: bytes) -> dict[str, str]:
    found: dict[str, str] = {}

    def on_field(field: object) -> None:
        name = getattr(field, "field_name", None) or b""
        value = getattr(field, "value", None) or b""
        found[name.decode()] = value.decode()
        if len(found) > MOST_PARAMETERS:
            raise _too_many()

    ignore_file: Callable[[object], None] = lambda _file: None  # noqa: E731
    try:
        parser = create_form_parser({"Content-Type": content_type.encode()}, on_field, ignore_file)
        parser.write(body)
        parser.finalize()
        parser.close()
    except UnicodeDecodeError:
        raise _broken_encoding() from None
    except (FormParserError, ValueError):
        raise EC2Error("InvalidRequest", "The multipart body is malformed.") from None
    return found


def _too_many() -> EC2Error:
    return EC2Error("InvalidRequest", f"The request holds more than {MOST_PARAMETERS} parameters.")


def _broken_encoding() -> EC2Error:
    return EC2Error("InvalidRequest", "The parameters are not valid UTF-8.")
