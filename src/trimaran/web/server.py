"""The two ways to serve: gunicorn with worker processes, or many ports in one process.

gunicorn's parent only watches; its options come from our configuration, there
is no gunicorn file and no command line of its own.  SIGTERM lets running
requests end, SIGHUP replaces the workers one generation by the next.
"""

from __future__ import annotations

import logging
import ssl as tls
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trimaran.web.embedded import serve_many
from trimaran.web.interpreter import settle

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from trimaran.config.common import Own

__all__ = ["run", "serve_many"]

LOG = logging.getLogger(__name__)

# Longer than the idle time-out of the proxies in the field (nginx and haproxy
# keep 60 s and less), so that it is never we who close under their request.
KEEP_ALIVE = 75
# A worker whose event loop did not turn for that long is replaced.  No handler
# runs on the loop, so only a broken process is ever that late.
SILENCE = 120
BACKLOG = 2048


def run(
    app_factory: Callable[[], ASGIApp],
    *,
    host: str,
    port: int,
    workers: int,
    own: Own,
    name: str,
    ssl: Mapping[str, str] | None = None,
    uds: str | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; returns by ending the process.

    Args:
        app_factory: builds the application; called in each worker, also after
            a SIGHUP, so it should read the configuration itself.
        host: address to listen on; "::" and names work.
        port: port to listen on.
        workers: worker processes.
        own: threads, limits and the time that a stop may take.
        name: the service, for the process title and the log.
        ssl: ``certfile``, ``keyfile`` and optionally ``ca_certs``, which makes
            client certificates required; None serves plain HTTP.
        uds: path of a UNIX socket to listen on instead of host and port.
    """
    from gunicorn.app.base import BaseApplication
    from gunicorn.glogging import Logger

    from trimaran.web import metrics, worker

    class PassingLogger(Logger):
        """gunicorn's messages go where everybody else's go."""

        def setup(self, cfg: Any) -> None:
            """Leaves handlers and levels as the configuration has set them."""
            self.error_log.propagate = True
            self.access_log.propagate = False

        def reopen_files(self) -> None:
            """Nothing is open here; our file handler notices rotation by itself."""

    class Application(BaseApplication):
        own: Own

        def load_config(self) -> None:
            """Hands our options over."""
            for option, value in settings.items():
                self.cfg.set(option, value)

        def load(self) -> ASGIApp:
            """Builds the application, in a worker."""
            application = app_factory()
            settle()
            return application

    address = f"unix:{uds}" if uds else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    settings: dict[str, Any] = {
        "bind": [address],
        "workers": workers,
        "worker_class": worker.Worker,
        "proc_name": name,
        "logger_class": PassingLogger,
        "keepalive": KEEP_ALIVE,
        "timeout": SILENCE,
        "backlog": BACKLOG,
        # The worker ends its requests in shutdown_timeout; then it closes its parts.
        "graceful_timeout": own.shutdown_timeout + 5,
        # Every address is believed here and none in the application: see web.proxy.
        "forwarded_allow_ips": "*",
        "control_socket_disable": True,
    }
    if ssl:
        settings |= {option: value for option, value in ssl.items() if value}
        if ssl.get("ca_certs"):
            settings["cert_reqs"] = tls.CERT_REQUIRED
    if workers > 1:
        shared = metrics.share()
        settings["child_exit"] = lambda _, dead: metrics.worker_ended(dead.pid)
        settings["on_exit"] = lambda _: metrics.unshare(shared)
    application = Application(prog=name)
    application.own = own
    application.run()
