"""``skyline-sample-config-generator``: skyline.yaml with every option at its default."""

from __future__ import annotations

from pathlib import Path

import click

from trimaran.config import sample
from trimaran.console.tools import common


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-o",
    "--output-file",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("skyline.yaml.sample"),
    show_default=True,
    help="File to write.",
)
def sample_config_generator(output: Path) -> None:
    """Write a sample of skyline.yaml; needs no configuration."""
    common.write(output, sample.skyline())


def main() -> None:
    """Entry point of ``skyline-sample-config-generator``."""
    common.run(sample_config_generator, "skyline-sample-config-generator")


if __name__ == "__main__":
    main()
