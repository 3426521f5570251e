"""Field types of request bodies and query arguments.

pydantic checks and documents them; what it finds wrong is told in upstream's
sentences by ``translate`` and nowhere else.  Limits that upstream's database
would have refused with a server error (NUL, lone surrogates, integers and texts
too large for their column) are refused here as bad input.  Spec sections 1.4,
1.7 and 1.8; faults F-26 to F-28, F-47.
"""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from trimaran.errors import BadRequest, TrimaranError
from trimaran.magnum.api.errors import InvalidInput

#: largest value of an INTEGER column
MAX_INT: Final = 2**31 - 1
#: bytes that a TEXT column holds on MySQL
MAX_TEXT: Final = 65535

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "off", "n", "no"})
#: error type of a sentence that stands for itself, without the field around it
_WHOLE = "whole"
_REASON = "reason"


def refuse(reason: str) -> PydanticCustomError:
    """What a validator raises: the sentence after ``Invalid input for …``."""
    return PydanticCustomError(_REASON, "{reason}", {"reason": reason})


def refuse_whole(text: str) -> PydanticCustomError:
    """What a validator raises when upstream's text does not name the field."""
    return PydanticCustomError(_WHOLE, "{reason}", {"reason": text})


def storable(value: str) -> str:
    """A text that every database takes.

    Raises:
        PydanticCustomError: it holds NUL or a lone surrogate.
    """
    if "\0" in value or not _encodable(value):
        raise refuse("Value should not have characters that cannot be stored")
    return value


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _boolean(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    choices = ", ".join(f"'{word}'" for word in sorted(_TRUE | _FALSE))
    raise refuse(f"Unrecognized value '{str(value)[:64]}', acceptable values are: {choices}")


def _uuid(value: str) -> str:
    if not is_uuid_like(value):
        raise refuse_whole(f"Expected a uuid but received {value[:255]}.")
    return str(uuid.UUID(value))


def is_uuid_like(value: str) -> bool:
    """Whether upstream would take this for a UUID: dashes and case do not matter."""
    plain = value.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    return re.fullmatch(r"[0-9a-f]{32}", plain) is not None


def _nameservers(value: str) -> str:
    for address in value.split(","):
        try:
            ipaddress.IPv4Address(address.strip())
        except ValueError:
            raise refuse_whole(
                "Expected a single dns address or comma separated dns list, "
                f"but received {value[:255]}."
            ) from None
    return value


def _mapping(value: Any) -> Any:
    if value is not None and not isinstance(value, dict):
        raise refuse(f"Value not a valid dict: {str(value)[:255]}")
    return value


def _labels(value: Any) -> Any:
    value = _mapping(value)
    if value is None:
        return None
    texts: dict[str, str] = {}
    for key, item in value.items():
        if not isinstance(item, str | int | float):
            raise refuse(
                "Wrong type. Expected '(str, int, bool, float)', got "
                f"'{type(item).__name__}' for '{key[:255]}'"
            )
        texts[storable(key)] = storable(str(item))
    if len(json.dumps(texts)) > MAX_TEXT:
        raise refuse(f"Value should have a maximum character requirement of {MAX_TEXT}")
    return texts


def _read_only(_value: Any) -> Any:
    raise refuse("Cannot set read only field.")


Storable = Annotated[str, AfterValidator(storable)]
#: UUID or name in a path
Ident = Annotated[Storable, Path(description="UUID or name.")]
NonEmpty = Annotated[str, Field(min_length=1), AfterValidator(storable)]
#: 1 to 255 characters
Text = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(storable)]
#: anything that a VARCHAR(255) holds
Words = Annotated[str, Field(max_length=255), AfterValidator(storable)]
Count = Annotated[int, Field(ge=0, le=MAX_INT)]
AtLeastOne = Annotated[int, Field(ge=1, le=MAX_INT)]
Boolean = Annotated[bool, BeforeValidator(_boolean)]
Uuid = Annotated[str, AfterValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
Nameservers = Annotated[str, Field(max_length=255), AfterValidator(_nameservers)]
_SCALARS = {"type": ["string", "integer", "number", "boolean"]}
Labels = Annotated[
    dict[str, str],
    BeforeValidator(_labels),
    WithJsonSchema({"type": "object", "additionalProperties": _SCALARS}),
]
#: taken and thrown away, as upstream does
Ignored = Annotated[dict[str, Any], BeforeValidator(_mapping)]
ReadOnly = Annotated[Any, BeforeValidator(_read_only), Field(json_schema_extra={"readOnly": True})]


_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "string_too_short": ("Value should have a minimum character requirement of {}", "min_length"),
    "string_too_long": ("Value should have a maximum character requirement of {}", "max_length"),
    "string_pattern_mismatch": ("Value should match the pattern {}", "pattern"),
    "greater_than_equal": ("Value should be greater or equal to {}", "ge"),
    "less_than_equal": ("Value should be lower or equal to {}", "le"),
}
_TYPES: Final[Mapping[str, str]] = {
    "int_type": "int",
    "int_parsing": "int",
    "int_parsing_size": "int",
    "int_from_float": "int",
    "list_type": "list",
    "dict_type": "dict",
    "float_type": "float",
    "float_parsing": "float",
}


def _reason(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    if kind == _REASON:
        return str(context["reason"])
    if kind == "missing" or error.get("input") is None:
        return "Mandatory field missing."
    if kind in _LIMITS:
        sentence, limit = _LIMITS[kind]
        return sentence.format(context[limit])
    if kind in ("literal_error", "enum"):
        choices = re.findall(r"'([^']*)'", context["expected"])
        return f"Value should be one of: {', '.join(choices)}"
    if kind == "string_type":
        return "Value should be string"
    if kind in _TYPES:
        return f"Wrong type. Expected '{_TYPES[kind]}', got '{type(error['input']).__name__}'"
    return str(error["msg"])


def _query(error: Mapping[str, Any], name: str) -> TrimaranError:
    value, kind = error.get("input"), error["type"]
    if kind in _TYPES:
        return InvalidInput(
            name,
            value,
            f"unable to convert to {_TYPES[kind]}. Error: invalid literal for {_TYPES[kind]}()",
        )
    if kind == _WHOLE and "uuid" in error["msg"]:
        return InvalidInput(name, value, f"unable to convert to uuid. Error: {error['msg']}")
    return InvalidInput(name, value, _reason(error))


def translate(errors: Sequence[Mapping[str, Any]], argument: str) -> TrimaranError:
    """The one error that upstream would tell of all that are wrong.

    Unknown members come first, then the fields in their order.

    Args:
        errors: pydantic's list, locations starting with ``body`` or ``query``.
        argument: name of the handler's body argument, for the texts that say it.
    """
    unknown = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    if unknown:
        members = ", ".join(sorted({str(location[-1])[:255] for location in unknown}))
        word = "attribute" if len(unknown) == 1 else "attributes"
        return BadRequest(f"Unknown {word} for argument {argument}: {members}")
    error = errors[0]
    where, *location = error["loc"]
    if error["type"] == "json_invalid":
        return BadRequest("Request is not in valid JSON format")
    names = [part for part in location if isinstance(part, str)]
    if where == "body" and not names:
        if error["type"] == "missing" or error.get("input") is None:
            return BadRequest(f'Missing argument: "{argument}"')
        if error["type"] not in (_REASON, _WHOLE):
            kind = "list" if error["type"] == "list_type" else "dict"
            return InvalidInput(argument, error["input"], f"Value not a valid {kind}")
    if where == "query":
        return _query(error, names[0])
    if error["type"] == _WHOLE:
        return BadRequest(error["msg"])
    value = None if error["type"] == "missing" else error.get("input")
    return InvalidInput(names[0] if names else argument, value, _reason(error))
