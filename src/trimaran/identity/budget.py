"""A limit to the waiting of a whole block, however many calls it makes.

A time-out belongs to one call, and a page is made of many, some of them one
after the other.  The limit is a contextvar for the reason that ``outgoing``
gives; ``cloud.gather`` takes it along into its threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# What a call gets when nothing is left: zero would mean something else to a socket.
_LEAST = 0.001
# More than any call's time-out: only an answer that drips is ended by it.
_APART = 120.0

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Lets the OpenStack calls of the block wait that long, all together.

    Args:
        seconds: from now; within another block the earlier end counts.
    """
    mark = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(mark)


@contextmanager
def apart() -> Iterator[None]:
    """Gives the calls of the block their full time-outs: what they bring is for others too."""
    mark = _deadline.set(time.monotonic() + _APART)
    try:
        yield
    finally:
        _deadline.reset(mark)


def deadline() -> float:
    """Returns when the block ends, on the clock of ``time.monotonic``; infinite without one."""
    return _deadline.get()


def cut(timeouts: tuple[float, float]) -> tuple[float, float]:
    """Returns the time-outs of a call that begins now, none beyond the block's end."""
    left = max(_deadline.get() - time.monotonic(), _LEAST)
    connect, read = timeouts
    return min(connect, left), min(read, left)
