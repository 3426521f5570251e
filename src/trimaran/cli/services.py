"""One command a daemon: the way each service runs alone in a deployment.

Configuration files, option names and ports are upstream's; a command only
loads the configuration, sets the log up and hands the application to the
server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trimaran.config import common, logs

#: upstream: console 9998 (skyline), EC2 8788, metadata 8789, S3 3334, Magnum 9511
CONSOLE_PORT = 9998

files = click.option(
    "--config-file",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Configuration file; may be given several times, later ones win.",
)
dirs = click.option(
    "--config-dir",
    "dirs",
    multiple=True,
    type=click.Path(file_okay=False),
    help="Directory of *.conf files, read in order after the files.",
)
workers_option = click.option(
    "--workers", type=click.IntRange(1), default=None, help="Number of worker processes."
)


def _run(
    name: str,
    conf: Any,
    load: Callable[[], Any],
    build: Callable[[Any], Any],
    host: str,
    port: int,
    workers: int,
    ssl: dict[str, str] | None = None,
    uds: str | None = None,
) -> None:
    from trimaran.web import server

    logs.setup(conf, name)
    server.run(
        # Each new generation of workers reads the files again: SIGHUP reloads.
        lambda: build(load()),
        host=host,
        port=port,
        workers=workers,
        own=common.own(conf),
        name=name,
        ssl=ssl,
        uds=uds,
    )


@click.command()
@click.option("--config", "path", type=click.Path(dir_okay=False), help="skyline.yaml to read.")
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on.")  # noqa: S104 - as upstream
@click.option("--port", default=CONSOLE_PORT, show_default=True, type=click.IntRange(1, 65535))
@click.option("--uds", type=click.Path(dir_okay=False), help="UNIX socket to listen on instead.")
@workers_option
def console(path: str | None, host: str, port: int, uds: str | None, workers: int | None) -> None:
    """Serve the console API (the wire of skyline-apiserver)."""
    from trimaran.config import console as options
    from trimaran.console import app

    settings = options.load(path)
    count = workers or common.own(settings).workers
    _run("console", settings, lambda: options.load(path), app.build, host, port, count, uds=uds)


def _ssl(conf: Any, enabled: bool) -> dict[str, str] | None:
    if not enabled:
        return None
    names = {"certfile": conf.ssl_cert_file, "keyfile": conf.ssl_key_file}
    if getattr(conf, "ssl_ca_file", None):
        names["ca_certs"] = conf.ssl_ca_file
    return {name: value for name, value in names.items() if value}


@click.command("ec2-api")
@files
@dirs
@workers_option
def ec2_api(files: tuple[str, ...], dirs: tuple[str, ...], workers: int | None) -> None:
    """Serve the EC2 query API."""
    from trimaran.config import ec2 as options
    from trimaran.ec2 import app

    conf = options.load(files, dirs)
    _run(
        "ec2-api",
        conf,
        lambda: options.load(files, dirs),
        app.build,
        conf.ec2api_listen,
        conf.ec2api_listen_port,
        workers or conf.ec2api_workers or common.own(conf).workers,
        _ssl(conf, conf.ec2api_use_ssl),
    )


@click.command("ec2-metadata")
@files
@dirs
@workers_option
def ec2_metadata(files: tuple[str, ...], dirs: tuple[str, ...], workers: int | None) -> None:
    """Serve EC2 instance metadata, behind Neutron's metadata proxy."""
    from trimaran.config import ec2 as options
    from trimaran.ec2.metadata import app

    conf = options.load(files, dirs)
    _run(
        "ec2-metadata",
        conf,
        lambda: options.load(files, dirs),
        app.build,
        conf.metadata_listen,
        conf.metadata_listen_port,
        workers or conf.metadata_workers or common.own(conf).workers,
        _ssl(conf, conf.metadata_use_ssl),
    )


@click.command("ec2-s3")
@files
@dirs
@workers_option
def ec2_s3(files: tuple[str, ...], dirs: tuple[str, ...], workers: int | None) -> None:
    """Serve the S3 stub that image bundles are read from."""
    from trimaran.config import ec2 as options
    from trimaran.ec2.s3 import app

    conf = options.load(files, dirs)
    _run(
        "ec2-s3",
        conf,
        lambda: options.load(files, dirs),
        app.build,
        conf.s3_listen,
        conf.s3_listen_port,
        workers or common.own(conf).workers,
    )


#: Magnum's commands take oslo.config's own arguments, as upstream's do.
_passed_on = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@click.command("magnum-api", context_settings=_passed_on, add_help_option=False)
@click.pass_context
def magnum_api(context: click.Context) -> None:
    """Serve the Magnum API."""
    from trimaran.magnum import cli

    context.exit(cli.api(context.args))


@click.command("magnum-conductor", context_settings=_passed_on, add_help_option=False)
@click.pass_context
def magnum_conductor(context: click.Context) -> None:
    """Run a Magnum conductor until SIGTERM, then drain."""
    from trimaran.magnum import cli

    context.exit(cli.conductor(context.args))
