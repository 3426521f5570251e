"""What the console's benchmark has measured, and the table of the targets."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

from console_load import Load

#: clients that log in while another asks for the configuration
LOGGING_IN = 12


@dataclass
class Figures:
    """What was measured of one peer."""

    loads: dict[str, Load] = field(default_factory=dict)
    #: milliseconds, the peer's and an idle process's at the same time
    stalls: dict[str, tuple[float, float]] = field(default_factory=dict)
    config: Load = field(default_factory=Load)
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)


@dataclass
class Listing:
    """One listing: calls by the number of rows, and the times of the longest, in milliseconds."""

    calls: dict[int, int]
    times: list[float]
    over: list[float]

    @property
    def time(self) -> float:
        """Milliseconds, median."""
        return statistics.median(self.times)

    @property
    def beyond(self) -> float:
        """Milliseconds beyond the slowest call to a service, median."""
        return statistics.median(self.over)


def targets(ours: Figures, theirs: Figures | None) -> list[tuple[str, str, str, str]]:
    """Rows of target, upstream's figure, ours, verdict."""
    rows: list[tuple[str, str, str, str]] = []

    def add(what: str, upstream: str, own: str, good: bool | None) -> None:
        rows.append((what, upstream, own, "" if good is None else "met" if good else "**missed**"))

    def rates(name: str) -> tuple[float, float]:
        return ours.loads[name].rate, theirs.loads[name].rate if theirs else 0.0

    def tail(name: str) -> tuple[float, float]:
        return (
            ours.loads[name].percentile(0.99) * 1000,
            theirs.loads[name].percentile(0.99) * 1000 if theirs else 0.0,
        )

    for name in ("profile", "policies"):
        mine, other = rates(name)
        good = mine >= 20 * other if theirs else None
        ratio = f" ({mine / other:.0f} times)" if other else ""
        add(f"GET /{name}: at least 20 times upstream's requests/s",
            f"{other:.1f}", f"{mine:.0f}{ratio}", good)  # fmt: skip
        mine, other = tail(name)
        add(f"GET /{name}: p99 at most a tenth", f"{other:.0f} ms", f"{mine:.0f} ms",
            mine <= other / 10 if theirs else None)  # fmt: skip
    mine, other = rates("login")
    add("POST /login: requests/s", f"{other:.1f}", f"{mine:.1f}", None)
    made = ours.calls["login"]["keystone"]
    add("POST /login: at most 6 calls of Keystone",
        _counts(theirs, "login"), str(made), made <= 6)  # fmt: skip
    for name in ("profile", "policies", "settings"):
        made = ours.calls[name]["keystone"]
        add(f"GET /{name}: no call of Keystone within the cache's time",
            _counts(theirs, name), str(made), made == 0)  # fmt: skip
    mine, other = rates("regions")
    add("GET /contrib/regions: requests/s no fewer than upstream's",
        f"{other:.0f}", f"{mine:.0f}", mine >= other if theirs else None)  # fmt: skip
    mine, other = (each.config.percentile(0.5) * 1000 if each else 0.0 for each in (ours, theirs))
    add(f"GET /config while {LOGGING_IN} clients log in: median below 20 ms",
        f"{other:.0f} ms", f"{mine:.1f} ms", mine < 20)  # fmt: skip
    for name, (mine, idle) in ours.stalls.items():
        stalls = theirs.stalls[name] if theirs else (0.0, 0.0)
        add(
            f"longest stall of the event loop, {name}: at most 20 ms (an idle process beside)",
            f"{stalls[0]:.0f} ({stalls[1]:.0f}) ms",
            f"{mine:.1f} ({idle:.1f}) ms",
            mine <= 20,
        )
    for kind, found in ours.listings.items():
        upstream = theirs.listings[kind] if theirs else None
        add(f"{kind}: at most 20 ms beyond the slowest call of a service",
            f"{upstream.beyond:.0f} of {upstream.time:.0f} ms" if upstream else "",
            f"{found.beyond:.0f} of {found.time:.0f} ms", found.beyond <= 20)  # fmt: skip
        sizes = ", ".join(map(str, found.calls))
        add(f"{kind}: calls for {sizes} rows; from 10 on no more",
            ", ".join(map(str, upstream.calls.values())) if upstream else "",
            ", ".join(map(str, found.calls.values())),
            len(set([*found.calls.values()][1:])) <= 1)  # fmt: skip
    return rows


def _counts(found: Figures | None, name: str) -> str:
    return str(found.calls[name]["keystone"]) if found else ""
