"""What bodies have in common.

Request bodies refuse unknown members.  Models of answers document the wire and
give views their field names; they do not check what is sent, so that odd rows
of an adopted database are shown instead of failing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A request body."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *names: str) -> dict[str, Any]:
        """The members that the client sent with a value other than null.

        Args:
            names: which members; none: all.
        """
        wanted = names or tuple(type(self).model_fields)
        values = {name: getattr(self, name) for name in wanted if name in self.model_fields_set}
        return {name: value for name, value in values.items() if value is not None}


class Link(BaseModel):
    """An address of a resource."""

    href: str
    rel: str


class Accepted(BaseModel):
    """The answer to what goes on in the background."""

    uuid: str


class ErrorObject(BaseModel):
    """One error."""

    request_id: str
    code: str
    status: int
    title: str
    detail: str
    links: list[Link]


class Errors(BaseModel):
    """The body of every error but 401."""

    errors: list[ErrorObject]


def moment(value: datetime | None) -> str | None:
    """A time of the database (naive, UTC) as answers write it."""
    if value is None:
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()


def ordered(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """The members of an answer in the order of its model, absent ones left out."""
    return {name: values[name] for name in model.model_fields if name in values}


def columns(row: Any, names: Iterable[str]) -> dict[str, Any]:
    """Columns of a row, times in the wire's form.

    Args:
        row: anything with these attributes.
        names: which ones, in the order of the answer.
    """
    shown: dict[str, Any] = {}
    for name in names:
        value = getattr(row, name)
        shown[name] = moment(value) if isinstance(value, datetime) else value
    return shown
