"""Divides a fleet between conductors: each item is done once a cycle by one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trimaran import work
from trimaran.magnum.conductor.periodic.calls import Calls

#: items taken at a time for each call that may run: enough to keep all busy,
#: few enough to leave some for the others
AHEAD = 2
#: part of the interval after which an item is due again; less than one, so
#: that a cycle that begins a moment early does not skip it
DUE = 0.8


def share(
    runner: work.Runner,
    calls: Calls,
    limit: int,
    prefix: str,
    items: Sequence[str],
    interval: float,
    fn: Callable[[str], None],
) -> int:
    """Does what is due of a fleet, beside other conductors that do the same.

    Args:
        runner: keeps the leases.
        calls: runs them.
        limit: at the same time.
        prefix: of the leases' names.
        items: of the fleet.
        interval: seconds between two turns of an item.
        fn: what to do with one.

    Returns:
        How many this conductor did.
    """
    left = list(items)
    done = 0
    while left:
        leases = runner.share(
            [prefix + item for item in left], limit=limit * AHEAD, every=interval * DUE
        )
        taken = sorted(name.removeprefix(prefix) for name in leases.names)
        if not taken:
            return done
        try:
            calls.run((item, _one(leases, prefix, item, fn)) for item in taken)
        finally:
            runner.give_up(leases)
        done += len(taken)
        mine = set(taken)
        left = [item for item in left if item not in mine]
    return done


def _one(
    leases: work.Leases, prefix: str, item: str, fn: Callable[[str], None]
) -> Callable[[], None]:
    def call() -> None:
        if prefix + item not in leases.names:
            return  # lost to another conductor while it waited for its turn
        try:
            fn(item)
        finally:
            leases.release([prefix + item])

    return call
