"""Several calls to the cloud at the same time.

One bounded pool serves the whole process, so a burst of requests cannot start
a burst of threads.  The caller's own thread works too: it runs whatever the
pool has not begun, which makes progress certain when the pool is full and
lets ``gather`` be used inside ``gather`` without a deadlock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

_SIZE = 32
_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_SIZE, thread_name_prefix="gather")
        return _pool


def _after_fork() -> None:
    # Threads do not survive a fork; the child makes its own pool.
    global _pool, _lock
    _lock = threading.Lock()
    _pool = None


os.register_at_fork(after_in_child=_after_fork)


def gather(**thunks: Callable[[], T]) -> dict[str, T]:
    """Runs functions in parallel and returns their results by name.

    Args:
        thunks: functions without arguments, by the name of their result.

    Returns:
        The results, in the order of the arguments.

    Raises:
        Exception: of the functions that failed, that of the first in the order
            of the arguments, after all have ended.
    """
    names = list(thunks)
    if len(names) == 1:
        return {names[0]: thunks[names[0]]()}
    # The last one stays with this thread; more of them follow if the pool is busy.
    later: list[tuple[str, Future[T]]] = [
        (name, _executor().submit(copy_context().run, thunks[name])) for name in names[:-1]
    ]
    results: dict[str, T] = {}
    failures: dict[str, BaseException] = {}

    def here(name: str) -> None:
        try:
            results[name] = copy_context().run(thunks[name])
        except Exception as failure:  # noqa: BLE001 - kept until all have ended
            failures[name] = failure

    for name in names[-1:]:
        here(name)
    for name, future in reversed(later):
        if future.cancel():
            here(name)
    for name, future in later:
        if future.cancelled():
            continue
        failure = future.exception()
        if failure is None:
            results[name] = future.result()
        else:
            failures[name] = failure
    for name in names:
        if name in failures:
            raise failures[name]
    return {name: results[name] for name in names}
