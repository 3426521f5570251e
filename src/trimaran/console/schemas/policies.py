"""Policies (spec/skyline.md 1.8)."""

from __future__ import annotations

from pydantic import BaseModel

from trimaran.console.schemas.common import Text


class Policy(BaseModel):
    """One rule, its service in front, and whether the caller may."""

    rule: str
    allowed: bool


class Policies(BaseModel):
    """Answers to all rules, or to those that were asked about."""

    policies: list[Policy]


class Questions(BaseModel):
    """Body of a check; ``target`` replaces attributes of the caller's own target."""

    rules: list[Text]
    target: dict[Text, Text] | None = None
