"""Leases: one row a name, changed by compare-and-set with the database's clock.

A lease has an owner for people and a random token for the machine: whoever
renews or gives back compares the token, so a holder that slept too long harms
nobody.  Many names are taken in a few statements, since a fleet of thousands
is shared between conductors this way.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models.work import Lease
from trimaran.db.upsert import changed, insert_missing

#: Names in one statement; SQLite takes 32,766 parameters, PostgreSQL's driver 65,535.
CHUNK = 1000


@dataclass(frozen=True)
class Taken:
    """The outcome of one attempt.

    Attributes:
        ok: the lease is the caller's.
        wait: otherwise, seconds after which another attempt makes sense.
    """

    ok: bool
    wait: float = 0.0


def take(
    session: Session,
    name: str,
    *,
    owner: str,
    token: str,
    ttl: float,
    every: float | None = None,
    first_at_once: bool = True,
) -> Taken:
    """Takes a lease if it is free, and due when an interval is given.

    Args:
        session: of a writing unit.
        name: of the thing.
        owner: who wants it, for people.
        token: a fresh random value.
        ttl: seconds that it lasts without renewal.
        every: seconds that must have passed since it was last taken; one whose
            holder died is due at once.  None: no such condition.
        first_at_once: False makes a name that was never taken wait for one interval.
    """
    mine = _mine(owner, token, ttl)
    free = update(Lease).where(Lease.name == name, _free(every)).values(**mine)
    if changed(session, free):
        return Taken(ok=True)
    state = select(
        Lease.token,
        (Lease.expires_at - db_now()).label("left"),
        (db_now() - Lease.started_at).label("since"),
    ).where(Lease.name == name)
    row = session.execute(state).first()
    if row is None:
        first = mine if first_at_once else mine | {"owner": "", "expires_at": 0.0}
        insert_missing(session, Lease, [{"name": name, **first}])
        row = session.execute(state).one()
        if row.token == token and first_at_once:
            return Taken(ok=True)
    waits = [row.left, (every - row.since) if every is not None else 0.0]
    return Taken(ok=False, wait=max(0.0, *waits))


def take_many(
    session: Session,
    names: Sequence[str],
    *,
    owner: str,
    token: str,
    ttl: float,
    limit: int | None = None,
    every: float | None = None,
) -> set[str]:
    """Takes those of many leases that are free (and due).

    One look and one compare-and-set a thousand names; one more each when there
    are names never taken before, and when a rival was quicker with some.

    Args:
        session: of a writing unit.
        names: of the things.
        owner: who wants them, for people.
        token: a fresh random value, common to all that are taken.
        ttl: seconds that they last without renewal.
        limit: at most so many, chosen at random so that rivals rarely meet.
        every: seconds that must have passed since each was last taken.

    Returns:
        The names taken.
    """
    unique = list(dict.fromkeys(names))
    missing = set(unique)
    free: list[str] = []
    for chunk in _chunks(unique):
        look = select(Lease.name, _free(every)).where(Lease.name.in_(chunk))
        for name, is_free in session.execute(look):
            missing.discard(name)
            if is_free:
                free.append(name)
    chosen = free + sorted(missing)
    if limit is not None and len(chosen) > limit:
        chosen = random.sample(chosen, limit)
        missing &= set(chosen)
    # In one order everywhere, so that two rivals do not lock crosswise.
    chosen.sort()
    for chunk in _chunks(sorted(missing)):
        never = {"owner": "", "token": "", "expires_at": 0.0, "started_at": 0.0}
        insert_missing(session, Lease, [{"name": name, **never} for name in chunk])
    taken: set[str] = set()
    for chunk in _chunks(chosen):
        wanted = and_(Lease.name.in_(chunk), _free(every))
        number = changed(session, update(Lease).where(wanted).values(**_mine(owner, token, ttl)))
        if number == len(chunk):
            taken.update(chunk)
        elif number:
            taken.update(session.scalars(_held(chunk, [token], select(Lease.name))))
    return taken


def renew(session: Session, tokens: Mapping[str, str], ttl: float) -> set[str]:
    """Prolongs leases, in one statement a thousand when none was lost.

    Args:
        session: of a writing unit.
        tokens: the token of each name.
        ttl: seconds from now.

    Returns:
        The names that are still held with their tokens.
    """
    held: set[str] = set()
    for chunk in _chunks(sorted(tokens)):
        mine = {tokens[name] for name in chunk}
        statement = _held(chunk, mine, update(Lease)).values(expires_at=db_now() + ttl)
        if changed(session, statement) == len(chunk):
            held.update(chunk)
        else:
            held.update(session.scalars(_held(chunk, mine, select(Lease.name))))
    return held


def give_back(session: Session, tokens: Mapping[str, str], *, done: bool = True) -> int:
    """Ends leases before their time; those that are not held any more are left alone.

    Args:
        session: of a writing unit.
        tokens: the token of each name.
        done: False says that the thing was not done: it is due at once for anybody.

    Returns:
        How many were still held.
    """
    number = 0
    for chunk in _chunks(sorted(tokens)):
        values: dict[str, Any] = {"expires_at": 0.0, "token": ""}
        if done:
            values["owner"] = ""
        mine = {tokens[name] for name in chunk}
        number += changed(session, _held(chunk, mine, update(Lease)).values(**values))
    return number


def show(session: Session, name: str) -> Lease | None:
    """The lease of this name, held or not."""
    return session.get(Lease, name)


def purge(session: Session, *, after: float, limit: int = 500) -> int:
    """Deletes leases of things that nobody has taken for long (deleted clusters).

    Args:
        session: of a writing unit of its own.
        after: seconds since it was last taken; longer than any interval in use.
        limit: rows at most; call again while the answer equals it.

    Returns:
        How many went.
    """
    old = and_(Lease.expires_at <= db_now(), Lease.started_at <= db_now() - after)
    names = list(session.scalars(select(Lease.name).where(old).limit(limit)))
    if not names:
        return 0
    table = Lease.__table__
    gone = table.delete().where(table.c.name.in_(names), old)  # type: ignore[attr-defined]
    return changed(session, gone)


def _mine(owner: str, token: str, ttl: float) -> dict[str, Any]:
    return {
        "owner": owner,
        "token": token,
        "expires_at": db_now() + ttl,
        "started_at": db_now(),
    }


def _free(every: float | None) -> ColumnElement[bool]:
    ended = Lease.expires_at <= db_now()
    if every is None:
        return ended
    # An owner beside an ended lease: it died, or gave up, before the thing was done.
    return and_(ended, or_(Lease.owner != "", Lease.started_at <= db_now() - every))


def _held(names: Collection[str], tokens: Collection[str], statement: Any) -> Any:
    return statement.where(Lease.name.in_(names), Lease.token.in_(tokens))


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), CHUNK):
        yield names[start : start + CHUNK]
