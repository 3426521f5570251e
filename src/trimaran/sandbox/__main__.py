"""``python -m trimaran.sandbox``: the same commands without the rest of the command line."""

from __future__ import annotations

from trimaran.sandbox.cli import sandbox

if __name__ == "__main__":
    sandbox(prog_name="python -m trimaran.sandbox")
