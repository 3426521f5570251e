"""Leases: at most one process of many does the named thing.

A holder knows by its own monotonic clock until when it may believe in its
lease, counted from before it asked; the database knows by its own clock.  The
first is never later than the second, so a holder that was stopped (SIGSTOP, a
frozen VM, a lost network) finds out by itself, before it acts.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType

from trimaran import errors
from trimaran.db import Database
from trimaran.db.queries import work_leases

LOG = logging.getLogger(__name__)

#: Longest name of a lease.
NAME_LENGTH = 255
#: Renewals in the time of a lease: it outlives two that fail.
RENEWALS = 3


class Leases:
    """Named leases taken together; a single one is a set of one.

    Not made directly: see ``acquire``, ``acquire_many``, ``hold``.

    Args:
        db: where they are.
        tokens: token by name.
        ttl: seconds that they last without renewal.
        asked: monotonic time just before they were asked for.
    """

    def __init__(self, db: Database, tokens: dict[str, str], ttl: float, asked: float) -> None:
        self._db = db
        self._tokens = tokens
        self._until = asked + ttl
        self._lock = threading.Lock()
        self.ttl = ttl

    @property
    def names(self) -> frozenset[str]:
        """The names held, as far as is known; empty once their time is over."""
        with self._lock:
            return frozenset(self._tokens) if time.monotonic() < self._until else frozenset()

    @property
    def held(self) -> bool:
        """True while at least one of them is certainly ours."""
        return bool(self.names)

    def __bool__(self) -> bool:
        return self.held

    def check(self, name: str | None = None) -> None:
        """Asserts that a lease is still ours; to be called before acting upon it.

        Args:
            name: which; None for any of them.

        Raises:
            Unavailable: it is not (service "work").
        """
        names = self.names
        if not names or (name is not None and name not in names):
            raise errors.Unavailable("Another process has taken this over.", service="work")

    def renew(self) -> bool:
        """Prolongs them by ``ttl`` from now.

        Returns:
            True when all are still ours; lost ones are forgotten.

        Raises:
            Unavailable: the database does not answer; they are ours until their time is over.
        """
        with self._lock:
            tokens = dict(self._tokens)
        if not tokens:
            return False
        asked = time.monotonic()
        kept = self._db.write(lambda session: work_leases.renew(session, tokens, self.ttl))
        self.renewed(kept, asked)
        return len(kept) == len(tokens)

    def tokens(self) -> dict[str, str]:
        """The tokens by name, for somebody who renews for us."""
        with self._lock:
            return dict(self._tokens)

    def renewed(self, kept: set[str], asked: float) -> None:
        """Takes the result of a renewal that somebody else did.

        Args:
            kept: the names that are still ours.
            asked: monotonic time just before they were renewed.
        """
        with self._lock:
            self._tokens = {name: t for name, t in self._tokens.items() if name in kept}
            self._until = max(self._until, asked + self.ttl)

    def release(self, names: Iterable[str] | None = None, *, done: bool = True) -> None:
        """Gives leases back; they may be taken at once, or when they are due again.

        An unreachable database is no error here: they end by themselves.

        Args:
            names: which; None for all.
            done: False says that the thing was not done, so that it is due at once.
        """
        with self._lock:
            wanted = set(self._tokens) if names is None else set(names)
            giving = {n: t for n, t in self._tokens.items() if n in wanted}
            self._tokens = {n: t for n, t in self._tokens.items() if n not in wanted}
        if not giving:
            return
        try:
            self._db.write(lambda session: work_leases.give_back(session, giving, done=done))
        except errors.Unavailable:
            LOG.warning("Leases could not be given back and end by themselves: %s", sorted(giving))

    def __enter__(self) -> Leases:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Lease(Leases):
    """A lease of one name.

    Attributes:
        name: of the thing.
        owner: who holds it, for people.
    """

    def __init__(
        self, db: Database, name: str, owner: str, token: str, ttl: float, asked: float
    ) -> None:
        super().__init__(db, {name: token}, ttl, asked)
        self.name = name
        self.owner = owner


@functools.cache
def _host() -> str:
    return socket.gethostname()


def default_owner() -> str:
    """Names this process for people: host and process id."""
    return f"{_host()}:{os.getpid()}"


def acquire(
    db: Database, name: str, owner: str | None, ttl: float, *, every: float | None = None
) -> Lease | None:
    """Takes a lease if it is free.

    Args:
        db: where leases are.
        name: of the thing, at most 255 characters.
        owner: who wants it, for people; None for host and process id.
        ttl: seconds that it lasts without ``renew``.
        every: seconds that must have passed since it was last taken (a holder
            that died does not count).

    Returns:
        The lease, or None when another has it.

    Raises:
        Unavailable: the database does not answer.
    """
    _checked(name)
    token = uuid.uuid4().hex
    who = owner or default_owner()
    asked = time.monotonic()
    taken = db.write(
        lambda session: work_leases.take(
            session, name, owner=who, token=token, ttl=ttl, every=every
        )
    )
    return Lease(db, name, who, token, ttl, asked) if taken.ok else None


def acquire_many(
    db: Database,
    names: Sequence[str],
    owner: str | None,
    ttl: float,
    *,
    limit: int | None = None,
    every: float | None = None,
) -> Leases:
    """Takes those of many leases that are free, in two or three statements a thousand.

    The way N processes share a fleet: each takes a few items that are due,
    works on them, gives them back and comes again until nothing is due.

    Args:
        db: where leases are.
        names: of the items.
        owner: who wants them, for people; None for host and process id.
        ttl: seconds that they last without renewal.
        limit: at most so many, chosen at random.
        every: seconds that must have passed since an item was last taken; an
            item whose holder died is due at once.

    Returns:
        What was taken; its ``names`` may be empty.

    Raises:
        Unavailable: the database does not answer.
    """
    for name in names:
        _checked(name)
    token = uuid.uuid4().hex
    who = owner or default_owner()
    asked = time.monotonic()
    taken = db.write(
        lambda session: work_leases.take_many(
            session, names, owner=who, token=token, ttl=ttl, limit=limit, every=every
        )
    )
    return Leases(db, dict.fromkeys(taken, token), ttl, asked)


@contextlib.contextmanager
def hold(
    db: Database,
    name: str,
    ttl: float = 30.0,
    *,
    timeout: float = 30.0,
    owner: str | None = None,
) -> Iterator[Lease]:
    """Holds a lease for a block, renewing it in the background.

    Must not be used inside a unit of work.

    Args:
        db: where leases are.
        name: of the thing.
        ttl: seconds after which others go on when this process dies.
        timeout: seconds to wait for another holder.
        owner: who, for people.

    Raises:
        Unavailable: another held it for ``timeout`` seconds (service "work"),
            or the database does not answer (service "database").
    """
    lease = _wait_for(db, name, ttl, timeout, owner)
    try:
        with kept(lease):
            yield lease
    finally:
        lease.release()


def _wait_for(db: Database, name: str, ttl: float, timeout: float, owner: str | None) -> Lease:
    deadline = time.monotonic() + timeout
    pause = 0.02
    while True:
        lease = acquire(db, name, owner, ttl)
        if lease is not None:
            return lease
        left = deadline - time.monotonic()
        if left <= 0:
            raise errors.Unavailable(
                "Another request is doing the same; try again.", service="work"
            )
        time.sleep(min(left, random.uniform(pause / 2, pause)))  # noqa: S311 - no secret
        pause = min(0.5, pause * 1.6)


@contextlib.contextmanager
def kept(leases: Leases) -> Iterator[None]:
    """Renews leases in the background for a block; it does not give them back."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(leases.ttl / RENEWALS):
            try:
                if not leases.renew():
                    LOG.warning("A lease was lost to another process.")
                    return
            except errors.Unavailable:
                continue

    keeper = threading.Thread(target=keep, name="lease-keeper", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


def _checked(name: str) -> None:
    if not name or len(name) > NAME_LENGTH:
        raise ValueError(f"the name of a lease has 1 to {NAME_LENGTH} characters: {name[:40]!r}…")
