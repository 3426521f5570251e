"""The worker process under gunicorn.

The application is built here, after the fork, so that threads, connections
and locks are never shared between processes, and so that SIGHUP, which
replaces the workers, also reads the configuration again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from gunicorn.arbiter import Arbiter
from uvicorn.server import Server
from uvicorn_worker import UvicornWorker

from trimaran.errors import ConfigError
from trimaran.web.protocol import limited

if TYPE_CHECKING:
    from trimaran.config.common import Own

LOG = logging.getLogger(__name__)


def size_threads(threads: int) -> None:
    """Sets how many handlers run at the same time in this event loop."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = threads


class Worker(UvicornWorker):
    """A uvicorn server with our limits; ``cfg.trimaran`` carries the options."""

    CONFIG_KWARGS = {"loop": "asyncio", "ws": "none", "proxy_headers": False}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        uvicorn_log = logging.getLogger("uvicorn.error")
        uvicorn_log.handlers = []
        uvicorn_log.propagate = True
        own: Own = self.app.own
        self.own = own
        self.config.http = limited(own.max_header)
        self.config.timeout_graceful_shutdown = own.shutdown_timeout
        self.config.access_log = False
        self.config.server_header = False

    def load_wsgi(self) -> None:
        """Builds the application; a mistake in the configuration ends the service."""
        try:
            super().load_wsgi()
        except ConfigError as error:
            LOG.error("%s", error)
            print(error, file=sys.stderr)  # noqa: T201 - before any log may be set up
            sys.exit(Arbiter.APP_LOAD_ERROR)

    async def _serve(self) -> None:
        size_threads(self.own.threads)
        self.config.app = self.wsgi
        server = Server(config=self.config)
        self._install_sigquit_handler()
        orphaned = asyncio.create_task(self._watch_parent(server))
        await server.serve(sockets=self.sockets)
        orphaned.cancel()
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)

    async def _watch_parent(self, server: Server) -> None:
        """Ends the worker when its parent was killed: nobody would ever stop it."""
        while os.getppid() == self.ppid:
            await asyncio.sleep(1)
        LOG.error("the parent process %d is gone, stopping", self.ppid)
        server.handle_exit(signal.SIGTERM, None)
