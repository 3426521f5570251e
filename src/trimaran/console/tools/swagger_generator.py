"""``skyline-swagger-generator``: the OpenAPI document without a running service."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trimaran.config.console import Settings
from trimaran.console.tools import common


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-o",
    "--output-file",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("swagger.json"),
    show_default=True,
    help="File to write.",
)
def swagger_generator(output: Path) -> None:
    """Write the console API's OpenAPI document as JSON; needs no configuration."""
    from trimaran.console import app as console

    app = console.build(Settings())
    try:
        document = app.openapi()
    finally:
        app.state.parts.identity.close()
        app.state.parts.db.dispose()
    common.write(output, json.dumps(document, indent=4) + "\n")


def main() -> None:
    """Entry point of ``skyline-swagger-generator``."""
    common.run(swagger_generator, "skyline-swagger-generator")


if __name__ == "__main__":
    main()
