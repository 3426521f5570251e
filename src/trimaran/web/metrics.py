"""Prometheus metrics: what every service counts, and their text for a scrape.

A scrape reaches one of several worker processes, so under the server with
more than one worker the numbers live in files that all workers of a service
share (prometheus_client's multi-process mode).  Every metric of ours has
labels: only then can the mode be chosen after the modules are imported.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
    values,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimaran.web.context import OPERATION

CONTENT_TYPE = CONTENT_TYPE_LATEST
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

REQUESTS = Counter(
    "trimaran_http_requests_total",
    "Requests answered.",
    ["service", "method", "operation", "status"],
)
SECONDS = Histogram(
    "trimaran_http_request_seconds",
    "Time from the request's headers to the end of the answer.",
    ["service", "operation"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
RUNNING = Gauge(
    "trimaran_http_requests_running",
    "Requests being handled.",
    ["service"],
    multiprocess_mode="livesum",
)


class MetricsStage:
    """Counts requests.

    Args:
        app: the next stage.
        service: label of the service.
    """

    def __init__(self, app: ASGIApp, service: str) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        running = RUNNING.labels(self.service)
        running.inc()
        try:
            await self.app(scope, receive, counted)
        finally:
            running.dec()
            operation = _operation(scope)
            method = scope["method"] if scope["method"] in METHODS else "other"
            REQUESTS.labels(self.service, method, operation, str(status)).inc()
            SECONDS.labels(self.service, operation).observe(time.perf_counter() - started)


def _operation(scope: Scope) -> str:
    """A name from a closed set: the handler's choice, or the route's template."""
    named = scope.get(OPERATION)
    if named:
        return str(named)
    return str(getattr(scope.get("route"), "path", "none"))


def text() -> bytes:
    """Returns all metrics of this service's processes in Prometheus' text format."""
    if os.environ.get(_DIRECTORY):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry)
    return generate_latest(REGISTRY)


def share() -> str:
    """Switches this process and its later children to shared files.

    Called by the server's parent before it forks.

    Returns:
        The directory; give it to ``unshare`` at the end.
    """
    directory = tempfile.mkdtemp(prefix="trimaran-metrics-")
    os.environ[_DIRECTORY] = directory
    values.ValueClass = values.get_value_class()
    return directory


def worker_ended(pid: int) -> None:
    """Drops a dead worker's gauges; its counters stay in the sums."""
    if os.environ.get(_DIRECTORY):
        multiprocess.mark_process_dead(pid)


def unshare(directory: str) -> None:
    """Removes the shared files."""
    os.environ.pop(_DIRECTORY, None)
    shutil.rmtree(directory, ignore_errors=True)
