"""``/healthcheck``: is this process alive, and are its parts reachable.

The cheap form does nothing at all, so that a busy service is not restarted
for being busy.  ``?detailed`` asks the parts, but at most every ten seconds
for all callers together: a health check must not become a load of its own.
Probes run on threads of their own, because the server's may all be waiting
for the very part that is down.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

LOG = logging.getLogger(__name__)

INTERVAL = 10.0
TIMEOUT = 5.0

Probe = Callable[[], None]


@dataclass(frozen=True)
class Result:
    """What a probe said.

    Attributes:
        ok: it returned.
        seconds: how long that took, or the time-out.
    """

    ok: bool
    seconds: float


class Probes:
    """Runs the probes of a service.

    Args:
        probes: name to a callable that raises when the part is away.
        interval: seconds that an answer is kept.
        timeout: seconds that a probe gets.
    """

    def __init__(
        self,
        probes: Mapping[str, Probe],
        *,
        interval: float = INTERVAL,
        timeout: float = TIMEOUT,
    ) -> None:
        self._probes = dict(probes)
        self._interval = interval
        self._timeout = timeout
        self._results: dict[str, Result] = {}
        self._at: float | None = None
        self._round: asyncio.Task[None] | None = None
        self._running: dict[str, Future[None]] = {}
        self._bad: set[str] = set()

    async def results(self) -> tuple[dict[str, Result], float]:
        """Returns the newest results and their age in seconds."""
        if self._at is None or time.monotonic() - self._at >= self._interval:
            if self._round is None or self._round.done():
                self._round = asyncio.get_running_loop().create_task(self._run())
            # Whoever leaves early must not end the round for the others.
            await asyncio.shield(self._round)
        age = time.monotonic() - (self._at or time.monotonic())
        return dict(self._results), age

    async def _run(self) -> None:
        names = list(self._probes)
        results = await asyncio.gather(*(self._one(name) for name in names))
        self._results = dict(zip(names, results, strict=True))
        self._at = time.monotonic()

    async def _one(self, name: str) -> Result:
        started = time.monotonic()
        future = self._running.get(name)
        if future is None or future.done():
            future = self._running[name] = _start(name, self._probes[name])
        try:
            # A probe that hangs keeps its one thread; it is not started again.
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self._timeout)
        except Exception as error:  # noqa: BLE001 - a probe may raise anything
            self._report(name, error)
            return Result(False, time.monotonic() - started)
        self._report(name, None)
        return Result(True, time.monotonic() - started)

    def _report(self, name: str, error: Exception | None) -> None:
        """Logs changes, not states."""
        if error is None and name in self._bad:
            self._bad.discard(name)
            LOG.info("health: %s is back", name)
        elif error is not None and name not in self._bad:
            self._bad.add(name)
            text = "no answer in time" if isinstance(error, TimeoutError) else str(error)
            LOG.warning("health: %s is not available: %s", name, text)


def _start(name: str, probe: Probe) -> Future[None]:
    future: Future[None] = Future()

    def work() -> None:
        try:
            probe()
        except BaseException as error:  # noqa: BLE001 - handed to the waiter
            future.set_exception(error)
        else:
            future.set_result(None)

    # A daemon thread: a hanging probe must not keep the process from ending.
    context = copy_context()
    threading.Thread(target=context.run, args=(work,), name=f"probe-{name}", daemon=True).start()
    return future


class Health:
    """The handler of the health path.

    Args:
        probes: see ``Probes``.
        disable_file: while this file exists the answer is 503
            (oslo.middleware's disable_by_file).
    """

    def __init__(self, probes: Probes, disable_file: str | None = None) -> None:
        self._probes = probes
        self._disable_file = disable_file

    async def __call__(self, request: Request) -> Response:
        """Answers GET and HEAD."""
        if self._disable_file and os.path.exists(self._disable_file):
            return PlainTextResponse("DISABLED BY FILE", 503)
        wanted = request.query_params.get("detailed")
        if wanted is None or wanted.lower() in {"false", "0", "no"}:
            return PlainTextResponse("OK")
        results, age = await self._probes.results()
        healthy = all(result.ok for result in results.values())
        return JSONResponse(
            {
                "status": "ok" if healthy else "unavailable",
                "age": round(age, 3),
                "checks": {
                    name: {
                        "status": "ok" if result.ok else "unavailable",
                        "seconds": round(result.seconds, 3),
                    }
                    for name, result in results.items()
                },
            },
            200 if healthy else 503,
        )
