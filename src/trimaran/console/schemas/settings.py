"""Settings (spec/skyline.md 1.9)."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel


def _can_be_sent_back(value: Any) -> Any:
    """Refuses what the parser takes and JSON has no words for: NaN, halves of characters."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise ValueError("Value must be plain JSON") from None
    return value


class Setting(BaseModel):
    """A setting; the two flags are never set."""

    key: str
    value: Any
    hidden: bool = False
    restart_service: bool = False


class Settings(BaseModel):
    """All settings."""

    settings: list[Setting]


class UpdateSetting(BaseModel):
    """Body of a change; any JSON value, null included."""

    key: str
    value: Annotated[Any, AfterValidator(_can_be_sent_back)]
