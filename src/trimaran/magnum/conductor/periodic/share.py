"""Divides a fleet between conductors: each item is done once a cycle by one of them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence

from trimaran import work
from trimaran.db import Database
from trimaran.db.queries import magnum as queries
from trimaran.magnum.conductor import metrics
from trimaran.magnum.conductor.periodic.calls import Call, Calls

#: items taken at a time for each call that may run: enough to keep all busy,
#: few enough to leave some for the others
AHEAD = 2
#: items offered for each that may be taken
OFFERED = 8
#: seconds for which done items are collected before they are given back
TOGETHER = 0.2
#: part of the interval after which an item is due again; less than one, so
#: that a cycle that begins a moment early does not skip it
DUE = 0.8


def share(
    runner: work.Runner,
    calls: Calls,
    prefix: str,
    items: Sequence[str],
    interval: float,
    fn: Callable[[str], None],
) -> int:
    """Does what is due of a fleet, beside other conductors that do the same.

    Args:
        runner: keeps the leases.
        calls: runs them.
        prefix: of the leases' names.
        items: of the fleet; the first are taken first.
        interval: seconds between two turns of an item; also how long slow ones
            are waited for.
        fn: what to do with one.

    Returns:
        How many this conductor took.
    """
    # A part is offered at a time: asking for all in each round would be quadratic.
    left = list(items)
    size = calls.limit * AHEAD
    done = 0
    while left:
        offered = left[: size * OFFERED]
        leases = runner.share([prefix + item for item in offered], limit=size, every=interval * DUE)
        taken = sorted(name.removeprefix(prefix) for name in leases.names)
        if taken:
            part = _Part(runner, leases, prefix, len(taken))
            calls.run((part.call(item, fn) for item in taken), patience=interval)
        done += len(taken)
        # What was not taken is another's, or done, unless the limit stood in the way.
        over = set(taken) if len(taken) == size else set(offered)
        left = [item for item in left if item not in over]
    metrics.SHARE.labels(calls.task).set(done)
    return done


def longest_ago_first(db: Database, prefix: str, items: Iterable[str]) -> list[str]:
    """Orders items so that none waits for ever where conductors are too few for all.

    Args:
        db: where the leases are.
        prefix: of the leases' names.
        items: of the fleet.
    """
    # Equal ones in another order in each process, so that these rarely meet.
    order = list(items)
    random.shuffle(order)
    names = [prefix + item for item in order]
    taken = db.read(lambda s: queries.last_taken(s, names)) if names else {}
    return sorted(order, key=lambda item: taken.get(prefix + item, 0.0))


class _Part:
    """Items taken together.

    Those that are done are given back a moment later, several with one
    statement; the heartbeat of all ends with the last.
    """

    def __init__(self, runner: work.Runner, leases: work.Leases, prefix: str, size: int) -> None:
        self._runner = runner
        self._leases = leases
        self._prefix = prefix
        self._left = size
        self._done: list[str] = []
        self._lock = threading.Lock()

    def call(self, item: str, fn: Callable[[str], None]) -> Call:
        name = self._prefix + item

        def run() -> None:
            # Lost to another conductor while it waited for its turn?
            if name in self._leases.names:
                fn(item)

        return Call(item, run, lambda: self._end(name))

    def _end(self, name: str) -> None:
        with self._lock:
            self._left -= 1
            self._done.append(name)
            last, first = self._left == 0, len(self._done) == 1
        if last:
            self._runner.give_up(self._leases)
        elif first:
            timer = threading.Timer(TOGETHER, self._release)
            timer.daemon = True
            timer.start()

    def _release(self) -> None:
        with self._lock:
            names, self._done = self._done, []
        self._leases.release(names)
