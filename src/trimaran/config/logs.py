"""Where log lines go.

The two ini files carry oslo.log's options, so oslo.log sets the handlers up
from them.  The console's file has three options of its own; its lines get
oslo.log's shape, so that one parser reads the logs of all daemons.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from trimaran.errors import ConfigError

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.config.console import Settings

LINE = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s %(message)s"
DATE = "%Y-%m-%d %H:%M:%S"

# Chatty at INFO and of no use to an operator there.
QUIET = ("urllib3", "requests", "keystoneauth", "stevedore", "python_multipart")


def setup(source: cfg.ConfigOpts | Settings, name: str, *, stderr: bool = False) -> None:
    """Sets the process's log up; call it once, before serving.

    Args:
        source: what one of the three loaders returned.
        name: the service in the log ("ec2-api", "magnum-api").
        stderr: log to standard error whatever the file says.

    Raises:
        ConfigError: the log file cannot be opened.
    """
    if hasattr(source, "list_all_sections"):
        _setup_oslo(source, name, stderr)
    else:
        _setup_console(source, stderr)


def _setup_console(settings: Settings, stderr: bool) -> None:
    options = settings.default
    level = logging.DEBUG if options.debug else logging.INFO
    # Joining keeps an absolute log_file; containers set /dev/stdout.
    path = os.path.join(options.log_dir, options.log_file) if options.log_file else ""
    stream = _STREAMS.get("/dev/stderr" if stderr else path)
    if stream is not None:
        # The device cannot be re-opened by every uid; the stream always works.
        _install(logging.StreamHandler(stream()), level)
        return
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handler = logging.handlers.WatchedFileHandler(path, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"default.log_dir and default.log_file: {path} cannot be written ({error.strerror})."
        ) from error
    _install(handler, level)


def _setup_oslo(conf: cfg.ConfigOpts, name: str, stderr: bool) -> None:
    from oslo_log import log

    if stderr:
        _install(logging.StreamHandler(sys.stderr), logging.DEBUG if conf.debug else logging.INFO)
        return
    try:
        log.setup(conf, name)
    except OSError as error:
        raise ConfigError(
            f"[DEFAULT] log_dir and log_file: {error.filename} cannot be written "
            f"({error.strerror})."
        ) from error
    _hush(logging.getLogger().level)


_STREAMS: dict[str, Callable[[], TextIO]] = {
    "": lambda: sys.stderr,
    "/dev/stdout": lambda: sys.stdout,
    "/dev/stderr": lambda: sys.stderr,
}


def _install(handler: logging.Handler, level: int) -> None:
    handler.setFormatter(logging.Formatter(LINE, DATE))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level)
    _hush(level)


def _hush(level: int) -> None:
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
