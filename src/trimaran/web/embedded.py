"""Several services in one process: one event loop, one signal handler.

This is ``trimaran serve all``.  uvicorn's servers each want the signals for
themselves and would end one after the other, so here the signals belong to
the process and all servers drain together; what they share is closed last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from trimaran.errors import ConfigError
from trimaran.web.interpreter import settle

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn import Server

    from trimaran.config.common import Own

LOG = logging.getLogger(__name__)

Step = Callable[[], object]


def serve_many(
    services: Sequence[tuple[ASGIApp, str, int]],
    own: Own,
    *,
    on_start: Sequence[Step] = (),
    on_stop: Sequence[Step] = (),
) -> None:
    """Serves until SIGTERM or SIGINT, then drains and returns.

    Args:
        services: (application, host, port) each.
        own: threads of the whole process, limits, time that a stop may take.
        on_start: called in order when all ports listen.
        on_stop: called in order after the last request has ended; one that
            fails is logged and the next is called.

    Raises:
        ConfigError: a port is taken.
    """
    settle()
    asyncio.run(_serve(services, own, on_start, on_stop))


async def _serve(
    services: Sequence[tuple[ASGIApp, str, int]],
    own: Own,
    on_start: Sequence[Step],
    on_stop: Sequence[Step],
) -> None:
    from starlette.concurrency import run_in_threadpool

    from trimaran.web.worker import size_threads

    size_threads(own.threads)
    with contextlib.ExitStack() as sockets:
        listening = [
            sockets.enter_context(contextlib.closing(_listen(host, port)))
            for _, host, port in services
        ]
        servers = [_server(app, own) for app, _, _ in services]
        asked = _stop_signal(servers)
        tasks = [
            asyncio.create_task(server.serve([listener]))
            for server, listener in zip(servers, listening, strict=True)
        ]
        try:
            for step in on_start:
                await run_in_threadpool(step)
            # A server that ends by itself (its start failed) ends the others.
            waiter = asyncio.create_task(asked.wait())
            await asyncio.wait({waiter, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()
        finally:
            for server in servers:
                server.should_exit = True
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            for step in on_stop:
                try:
                    await run_in_threadpool(step)
                except Exception:
                    LOG.exception("a part did not stop cleanly")
    for end in ends:
        if isinstance(end, BaseException):
            raise end


def _stop_signal(servers: Sequence[Server]) -> asyncio.Event:
    """Set at the first SIGTERM or SIGINT; the second one drops what still runs."""
    asked = asyncio.Event()

    def stop() -> None:
        if asked.is_set():
            for server in servers:
                server.force_exit = True
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return asked


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        # create_server puts the address into strerror.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError(
            f"{host} port {port} cannot be listened on ({reason}); "
            "stop what uses it or choose another port."
        ) from None


def _server(app: ASGIApp, own: Own) -> Server:
    from uvicorn import Config, Server

    from trimaran.web.protocol import limited
    from trimaran.web.server import KEEP_ALIVE

    class Quiet(Server):
        """Leaves the signals alone."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = Config(
        app,
        loop="asyncio",
        http=limited(own.max_header),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=own.shutdown_timeout,
    )
    return Quiet(config)
