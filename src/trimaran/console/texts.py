"""Texts of clients that cannot be written again: JSON has escapes for halves of characters."""

from __future__ import annotations


def is_whole(text: str) -> bool:
    """Whether a text has whole characters only."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
