"""The one error of the sandbox tool: a sentence for the person at the terminal.

Everything that can be expected to go wrong (a missing package, a port in use, a
service that dies) ends as this, never as a traceback.
"""

from __future__ import annotations

import click


class SandboxError(click.ClickException):
    """Ends the command with exit status 1 and one sentence on standard error."""
