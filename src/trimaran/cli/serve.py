"""``trimaran serve all``: every service in one process.

This is the embedded default: one SQLite file, messages that never leave the
process, all ports on one event loop.  The configuration files are the ones
that the separate daemons read, so that growing out of it is a change of two
URLs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trimaran.cli.services import CONSOLE_PORT
from trimaran.config import common, logs
from trimaran.errors import ConfigError


@click.group()
def serve() -> None:
    """Serve everything in one process."""


def _databases(settings: Any, ec2: Any, magnum: Any) -> dict[str, str]:
    return {
        "console": settings.default.database_url,
        "ec2": ec2.database.connection,
        "magnum": magnum.database.connection,
    }


@serve.command("all")
@click.option(
    "--config-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where skyline.yaml, ec2api.conf and magnum.conf are; default: /etc/skyline, "
    "/etc/ec2api and /etc/magnum.",
)
@click.option("--console-host", default="127.0.0.1", show_default=True)
@click.option("--console-port", default=CONSOLE_PORT, show_default=True)
def serve_all(config_dir: Path | None, console_host: str, console_port: int) -> None:
    """Serve console, EC2 API, metadata, S3, Magnum API and conductor.

    The databases are migrated first.
    """
    from trimaran.config import console as console_options
    from trimaran.config import ec2 as ec2_options
    from trimaran.config import magnum as magnum_options

    def place(name: str) -> tuple[str, ...]:
        return (str(config_dir / name),) if config_dir else ()

    settings = console_options.load(str(config_dir / "skyline.yaml") if config_dir else None)
    ec2 = ec2_options.load(place("ec2api.conf"))
    magnum = magnum_options.load(place("magnum.conf"))
    logs.setup(magnum, "trimaran")

    from trimaran.db import migrate

    for hull, url in _databases(settings, ec2, magnum).items():
        if not url:
            raise ConfigError(f"No database is configured for {hull}: set [database] connection.")
        migrate.upgrade(url, hull)

    from trimaran.console import app as console_app
    from trimaran.ec2 import app as ec2_app
    from trimaran.ec2.metadata import app as metadata_app
    from trimaran.ec2.s3 import app as s3_app
    from trimaran.magnum import rpc
    from trimaran.magnum.api import app as magnum_app
    from trimaran.magnum.conductor import service as conductor_service
    from trimaran.web import server

    transport = rpc.open_embedded_transport(magnum)
    conductor = conductor_service.build(magnum, transport=transport)
    own = common.own(magnum)
    server.serve_many(
        [
            (console_app.build(settings), console_host, console_port),
            (ec2_app.build(ec2), ec2.ec2api_listen, ec2.ec2api_listen_port),
            (metadata_app.build(ec2), ec2.metadata_listen, ec2.metadata_listen_port),
            (s3_app.build(ec2), ec2.s3_listen, ec2.s3_listen_port),
            (magnum_app.build(magnum, transport=transport), str(magnum.api.host), magnum.api.port),
        ],
        own,
        on_start=[conductor.start],
        on_stop=[lambda: conductor.stop(own.shutdown_timeout)],
    )
