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
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from trimaran.errors import ConfigError

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.config.console import Settings

LINE = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [%(request_id)s] %(message)s"
DATE = "%Y-%m-%d %H:%M:%S"

# The request being handled; set by the web layer, "" outside of a request.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

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


def setup_stderr(level: int = logging.INFO) -> None:
    """Logs to standard error, for tools that have no configuration file.

    Args:
        level: lowest level shown.
    """
    _install(logging.StreamHandler(sys.stderr), level)


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
    root = logging.getLogger()
    for handler in root.handlers:
        handler.addFilter(add_request_id)
    _hush(root.level)


class _Context:
    """What oslo.log asks a context for; it then uses logging_context_format_string."""

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def get_logging_values(self) -> dict[str, str]:
        return {"request_id": self._request_id, "global_request_id": "", "user_identity": "-"}


def add_request_id(record: logging.LogRecord) -> bool:
    """Gives a record the id of the request that it was written in; keeps every record."""
    identifier = REQUEST_ID.get()
    record.request_id = identifier or "-"
    if identifier and not hasattr(record, "context"):
        record.context = _Context(identifier)
    return True


_STREAMS: dict[str, Callable[[], TextIO]] = {
    "": lambda: sys.stderr,
    "/dev/stdout": lambda: sys.stdout,
    "/dev/stderr": lambda: sys.stderr,
}


def _install(handler: logging.Handler, level: int) -> None:
    handler.setFormatter(logging.Formatter(LINE, DATE))
    handler.addFilter(add_request_id)
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
