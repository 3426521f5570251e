"""Who asks which OpenStack service how often.

Every request that leaves the process passes ``record``: the metrics come from
it, and so does the recorder with which tests hold the promise that a Describe
makes a number of calls that does not grow with the number of items.
"""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from prometheus_client import Counter, Histogram

REQUESTS = Counter(
    "trimaran_backend_requests",
    "Requests sent to OpenStack services; status is the HTTP status or the kind of failure.",
    ["service", "method", "status"],
)
SECONDS = Histogram(
    "trimaran_backend_request_seconds",
    "Seconds until an OpenStack service answered.",
    ["service"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)


@dataclass(frozen=True)
class Call:
    """One request: the service's catalog type, the method, the URL's path, the outcome."""

    service: str
    method: str
    path: str
    status: str


@dataclass
class Calls:
    """What ``count_calls`` saw; complete when the block has ended.

    Attributes:
        seen: the calls in the order in which they ended.
    """

    seen: list[Call] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def total(self) -> int:
        """Number of requests, repeated and failed ones included."""
        return len(self.seen)

    @property
    def by_service(self) -> Tally[str]:
        """Number of requests by service type."""
        return Tally(call.service for call in self.seen)

    def add(self, call: Call) -> None:
        """Adds one call; safe from any thread."""
        with self._lock:
            self.seen.append(call)


_service: ContextVar[str] = ContextVar("backend_service", default="identity")
_recorders: ContextVar[tuple[Calls, ...]] = ContextVar("backend_recorders", default=())
_everywhere: list[Calls] = []
_everywhere_lock = threading.Lock()


@contextmanager
def count_calls(*, everywhere: bool = False) -> Iterator[Calls]:
    """Counts the OpenStack calls made inside the block.

    Args:
        everywhere: also those of threads that do not share this context
            (background work, a server under test).

    Returns:
        The recorder, as the block's value.
    """
    calls = Calls()
    if everywhere:
        with _everywhere_lock:
            _everywhere.append(calls)
        try:
            yield calls
        finally:
            with _everywhere_lock:
                _everywhere.remove(calls)
        return
    mark = _recorders.set((*_recorders.get(), calls))
    try:
        yield calls
    finally:
        _recorders.reset(mark)


@contextmanager
def serving(service: str) -> Iterator[None]:
    """Names the service that the requests inside the block go to."""
    mark = _service.set(service)
    try:
        yield
    finally:
        _service.reset(mark)


def record(method: str, path: str, status: str, seconds: float) -> None:
    """Notes one request that was sent.

    Args:
        method: HTTP method.
        path: path of the URL, without the query.
        status: HTTP status as text, or a word for the kind of failure.
        seconds: time until the answer or the failure.
    """
    service = _service.get()
    REQUESTS.labels(service, method, status).inc()
    SECONDS.labels(service).observe(seconds)
    call = Call(service, method, path, status)
    for calls in _recorders.get():
        calls.add(call)
    if _everywhere:
        with _everywhere_lock:
            for calls in _everywhere:
                calls.add(call)
