"""What several groups share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header
from pydantic import AfterValidator, BaseModel

from trimaran.console.texts import is_whole

# Begins right, ends anyhow (spec/skyline.md 1.1); the single sign-on form sends none.
REQUEST_ID = r"^$|^req-\w{8}(-\w{4}){3}-\w{12}"

RequestId = Annotated[str, Header(alias="X-Openstack-Request-Id", pattern=REQUEST_ID)]


def _whole(value: str) -> str:
    if not is_whole(value):
        raise ValueError("half of a character")
    return value


# What an answer repeats must be text that can be written.
Text = Annotated[str, AfterValidator(_whole)]


class Message(BaseModel):
    """An answer that only says that it was done."""

    message: str
    code: int
    title: str


class Detail(BaseModel):
    """An error of a handler."""

    detail: str


class Unauthorized(BaseModel):
    """An error of the token stage, and of a part that is down."""

    message: str
