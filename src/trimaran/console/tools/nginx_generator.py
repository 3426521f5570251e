"""``skyline-nginx-generator``: the proxy in front of console, API and OpenStack.

The browser reaches every service below one origin; which services there are,
only Keystone's catalog knows.  So the file is generated, and generated again
when the catalog has changed: the tool says what changed, writes the file as a
whole or not at all, and with ``--diff`` only tells.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from trimaran.config import console as options
from trimaran.config.common import own
from trimaran.config.console import Settings
from trimaran.console import parts
from trimaran.console.tools import common, nginx_catalog, nginx_config, static_files

# Not __name__: that is "__main__" under "python -m".
LOG = logging.getLogger("trimaran.console.tools")

NAME = "skyline-nginx-generator"
# As diff(1): 1 says that there is a difference, 2 that it could not be found out.
DIFFERENT, TROUBLE = 1, 2


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-o",
    "--output-file",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: stdout]",
)
@click.option("--ssl-certfile", help="TLS certificate; needs the key too.")
@click.option("--ssl-keyfile", help="Key of the certificate.")
@click.option(
    "--listen-address",
    default="0.0.0.0:9999",
    show_default=True,
    help="Address and port that nginx listens on.",
)
@click.option("--log-dir", help="Directory of nginx's logs.  [default: option log_dir]")
@click.option("--access-log-file", help="Access log; an absolute path ignores the directory.")
@click.option("--error-log-file", help="Error log; an absolute path ignores the directory.")
@click.option(
    "--static-path",
    type=click.Path(file_okay=False),
    help="Directory of the front end.  [default: that of the package skyline_console]",
)
@click.option(
    "--upstream",
    default=nginx_config.SOCKET,
    show_default=True,
    help="Where the console API listens: unix:<path> or <host>:<port>.",
)
@click.option(
    "--run-dir",
    default="",
    type=click.Path(file_okay=False),
    help="Directory for nginx's pid and temporary files, for an nginx without root.  "
    "[default: the distribution's]",
)
@click.option(
    "--language",
    default="",
    help="Language of the front end for browsers that have not chosen one, as the cookie "
    '"lang", e.g. en.  [default: the front end\'s]',
)
@click.option(
    "--diff",
    "only_diff",
    is_flag=True,
    help="Write nothing; print what would change in the output file.  Exit 0: nothing, "
    "1: something, 2: it is not known.",
)
def nginx_generator(
    output: Path | None,
    ssl_certfile: str | None,
    ssl_keyfile: str | None,
    listen_address: str,
    log_dir: str | None,
    access_log_file: str | None,
    error_log_file: str | None,
    static_path: str | None,
    upstream: str,
    run_dir: str,
    language: str,
    only_diff: bool,
) -> None:
    """Generate nginx's configuration from Keystone's service catalog.

    Needs skyline.yaml, of $OS_CONFIG_DIR or /etc/skyline, and Keystone.
    """
    common.log_to_stderr()
    if only_diff and output is None:
        raise click.UsageError("--diff needs --output-file.")
    if bool(ssl_certfile) != bool(ssl_keyfile):
        LOG.warning("TLS is off: it needs both --ssl-certfile and --ssl-keyfile")
    try:
        settings = options.load()
        logs = log_dir if log_dir is not None else settings.default.log_dir
        site = nginx_config.Site(
            listen=listen_address,
            static=static_path or str(static_files.find()),
            access_log=os.path.join(logs, access_log_file or settings.default.access_log_file),
            error_log=os.path.join(logs, error_log_file or settings.default.error_log_file),
            prefix=settings.openstack.nginx_prefix,
            upstream=upstream,
            certfile=ssl_certfile,
            keyfile=ssl_keyfile,
            run_dir=run_dir,
            language=language,
        )
        text = nginx_config.render(site, _locations(settings))
    except common.FAILURES as error:
        if not only_diff:
            raise
        click.echo(f"{NAME}: {error}", err=True)
        sys.exit(TROUBLE)
    _hint(settings)
    if output is None:
        click.echo(text, nl=False)
        return
    old = output.read_text(encoding="utf-8") if output.is_file() else ""
    for line in nginx_config.changes(old, text) if old else ():
        LOG.info("%s", line)
    if only_diff:
        click.echo(nginx_config.difference(old, text, str(output)), nl=False)
        sys.exit(DIFFERENT if old != text else 0)
    if old == text:
        LOG.info("%s is up to date", output)
    else:
        common.write(output, text)


def _locations(settings: Settings) -> list[nginx_catalog.Location]:
    identity = parts.identity_of(settings, own(settings))
    try:
        rows = nginx_catalog.endpoints(identity, settings.openstack.interface_type)
    finally:
        identity.close()
    return nginx_catalog.locations(rows, settings.openstack.service_mapping)


def _hint(settings: Settings) -> None:
    if settings.default.secure_proxy_addr_header is None:
        LOG.warning(
            "OpenStack's logs will show nginx's address for every user: set "
            "default.secure_proxy_addr_header to X-Real-IP, which this nginx sends"
        )


def main() -> None:
    """Entry point of ``skyline-nginx-generator``."""
    common.run(nginx_generator, NAME)


if __name__ == "__main__":
    main()
