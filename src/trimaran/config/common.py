"""The options that only we have, one table for the three files.

The deck's constructors take an ``Own`` and never a hull's configuration, so
that the database layer, say, does not care whether its pool size came from
YAML or from an ini file.  The table is the dataclass itself: the pydantic
model, the oslo.config options and the samples are all derived from it.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any, cast

GROUP = "trimaran"


@dataclass(frozen=True)
class OwnOption:
    """One option of the ``trimaran`` group.

    Attributes:
        name: the key in the file.
        kind: ``int`` or ``float``.
        default: value when absent; None means "derived", as the help says.
        minimum: smallest value allowed.
        help: one sentence for the sample file, with the unit.
    """

    name: str
    kind: type[int] | type[float]
    default: int | float | None
    minimum: int | float
    help: str


def _option(default: Any, minimum: int | float, text: str) -> Any:
    return field(default=default, metadata={"minimum": minimum, "help": text})


@dataclass(frozen=True)
class Own:
    """Values of the ``trimaran`` group, ready to use (nothing is None)."""

    threads: int = _option(40, 1, "Requests handled at the same time by one process.")
    database_pool_size: int = _option(
        None,
        1,
        "Database connections of one process. Default: [database] max_pool_size where the "
        "file has that option and it is set, otherwise the value of threads.",
    )
    database_pool_timeout: float = _option(
        30.0, 0.1, "Seconds a request waits for a free database connection."
    )
    connect_timeout: float = _option(
        5.0, 0.1, "Seconds to wait for a connection to an OpenStack service."
    )
    read_timeout: float = _option(
        30.0, 0.1, "Seconds to wait for the answer of an OpenStack service."
    )
    http_pool_size: int = _option(
        100, 1, "Connections kept open to each OpenStack service by one process."
    )
    token_cache_seconds: int = _option(
        60, 0, "Seconds a validated Keystone token is trusted without asking again; 0 = always ask."
    )
    token_cache_size: int = _option(10000, 1, "Validated tokens kept by one process.")
    work_concurrency: int = _option(4, 1, "Background jobs run at the same time by one process.")
    work_lease_seconds: int = _option(
        30, 2, "Seconds after which the work of a dead process is taken over."
    )
    work_poll_seconds: float = _option(1.0, 0.05, "Seconds between two looks for background work.")
    work_keep_days: float = _option(
        7.0, 0.0, "Days that done and cancelled background jobs are kept to be looked at."
    )
    work_keep_failed_days: float = _option(
        30.0, 0.0, "Days that failed background jobs are kept to be looked at."
    )
    max_body: int = _option(
        1048576, 0, "Largest request body in bytes, where the service sets no limit of its own."
    )
    max_header: int = _option(65536, 1024, "Largest request line and headers together, in bytes.")
    shutdown_timeout: int = _option(
        30, 1, "Seconds that running requests and jobs get to end after SIGTERM."
    )
    workers: int = _option(
        None,
        1,
        "Server processes. Default: the service's own option where it has one, otherwise the "
        "number of processors.",
    )


def _table() -> tuple[OwnOption, ...]:
    kinds: dict[str, type[int] | type[float]] = {"int": int, "float": float}
    return tuple(
        OwnOption(
            name=item.name,
            kind=kinds[str(item.type)],
            default=cast("int | float | None", item.default),
            minimum=item.metadata["minimum"],
            help=item.metadata["help"],
        )
        for item in dataclasses.fields(Own)
    )


OWN_OPTIONS: tuple[OwnOption, ...] = _table()


def processors() -> int:
    """Returns the processors this process may run on (at least 1)."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def own(source: Any) -> Own:
    """Takes our own options out of a loaded configuration.

    Args:
        source: what ``config.console.load``, ``config.ec2.load`` or
            ``config.magnum.load`` returned.

    Returns:
        The values, with the derived defaults filled in.
    """
    group = source.trimaran
    values = {option.name: getattr(group, option.name) for option in OWN_OPTIONS}
    if values["database_pool_size"] is None:
        values["database_pool_size"] = _database_pool(source) or values["threads"]
    if values["workers"] is None:
        values["workers"] = processors()
    return Own(**values)


def defaults(**changes: Any) -> Own:
    """Returns an ``Own`` from defaults, for tools and tests without a file.

    Args:
        changes: values that differ from the defaults.
    """
    values = {option.name: option.default for option in OWN_OPTIONS} | changes
    if values["database_pool_size"] is None:
        values["database_pool_size"] = values["threads"]
    if values["workers"] is None:
        values["workers"] = processors()
    return Own(**values)


def _database_pool(source: Any) -> int | None:
    """The operator's [database] max_pool_size, if the file sets it (oslo.db's name)."""
    if not hasattr(source, "get_location"):
        return None
    value = source.database.max_pool_size
    return value if isinstance(value, int) and value >= 1 else None
