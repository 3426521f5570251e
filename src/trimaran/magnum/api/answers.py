"""How answers become text.

pydantic's serializer writes a list of a thousand clusters several times faster
than the standard library's, which would take a fifth of such a request's time.
"""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse
from pydantic_core import to_json


class Json(JSONResponse):
    """An answer of plain dicts, lists, texts, numbers and booleans."""

    def render(self, content: Any) -> bytes:
        """Returns the body."""
        return to_json(content)
