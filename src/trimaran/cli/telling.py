"""What the operators' commands share: how they refuse, and how they show a time."""

from __future__ import annotations

import sys
import time
from typing import Any, NoReturn

import click

from trimaran.errors import TrimaranError


class TellingGroup(click.Group):
    """A group whose commands tell what is refused in one sentence, and exit with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was named."""
        try:
            return super().invoke(ctx)
        except TrimaranError as error:
            refuse(error.message)


def refuse(why: str) -> NoReturn:
    """Ends the command with one sentence and exit code 1."""
    click.echo(f"trimaran: {why}", err=True)
    sys.exit(1)


def ago(moment: float | None) -> str:
    """How long ago a moment is (epoch seconds), for people; "-" for never."""
    if moment is None:
        return "-"
    seconds = max(0.0, time.time() - moment)
    return f"{seconds:.0f} s ago" if seconds < 600 else f"{seconds / 3600:.1f} h ago"
