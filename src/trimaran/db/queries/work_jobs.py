"""Jobs: how they are put in, claimed, noted upon and ended.

Everything that an owner writes is a compare-and-set on (id, owner, fence): a
process that slept through the end of its lease changes nothing any more.  All
times are taken by the database's clock in the statement itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trimaran import errors
from trimaran.db import dialects
from trimaran.db.clock import db_now
from trimaran.db.models import work
from trimaran.db.models.work import Job
from trimaran.db.upsert import changed

#: Longest reason that is kept.
ERROR_LENGTH = 2000


@dataclass(frozen=True)
class Claimed:
    """A job as its new owner gets it.

    Attributes:
        id: the job's id.
        kind: its kind.
        key: its dedupe key or None.
        payload: as last noted.
        step: as last noted, empty at first.
        attempt: number of this run among those that count, 1 at first.
        max_attempts: runs that count at most.
        fence: the claim's number, to be given with every write.
        error: the reason of the last failure or wait.
        age: seconds since it was asked for.
    """

    id: str
    kind: str
    key: str | None
    payload: dict[str, Any]
    step: str
    attempt: int
    max_attempts: int
    fence: int
    error: str
    age: float


def add(
    session: Session,
    *,
    id: str,
    kind: str,
    payload: Mapping[str, Any],
    key: str | None,
    delay: float,
    max_attempts: int,
) -> str:
    """Puts a job in, once per kind and key while it is unfinished.

    Args:
        session: of the change that asks for the work.
        id: for the new job.
        kind: which handler runs it.
        payload: JSON object; no secrets, it is kept in clear.
        key: what makes it the same job; None for always a new one.
        delay: seconds before it may run.
        max_attempts: runs that count before it fails.

    Returns:
        The id of the new job, or of the unfinished one with the same key.
    """
    values = {
        "id": id,
        "kind": kind,
        "state": work.QUEUED,
        "key": key,
        "active_key": key,
        "payload": dict(payload),
        "step": "",
        "attempt": 0,
        "max_attempts": max_attempts,
        "fence": 0,
        "owner": "",
        "due_at": db_now() + delay,
        "error": "",
        "created_at": db_now(),
        "updated_at": db_now(),
        "finished_at": None,
    }
    row = Job.__table__.insert().values(**values)  # type: ignore[attr-defined]
    if key is None:
        session.execute(row)
        return id
    # Twice round when a rival puts the same key in, and when its job ends meanwhile.
    for _ in range(10):
        there = session.scalar(select(Job.id).where(Job.kind == kind, Job.active_key == key))
        if there is not None:
            return there
        try:
            with session.begin_nested():
                session.execute(row)
        except IntegrityError:
            continue
        return id
    raise errors.Conflict(f"The job {kind} {key} starts and ends too often to be joined.")


def seconds_to_next(session: Session, kinds: Collection[str]) -> float | None:
    """Seconds until a job of these kinds may be claimed; negative: it may be now.

    The one query of an idle runner: an entry of an index.

    Returns:
        None when no job of these kinds is unfinished.
    """
    return session.scalar(
        select(Job.due_at - db_now())
        .where(Job.due_at.is_not(None), Job.kind.in_(kinds))
        .order_by(Job.due_at)
        .limit(1)
    )


def claim(
    session: Session,
    *,
    owner: str,
    kinds: Collection[str],
    limit: int,
    ttl: float,
    room: Mapping[str, int] | None = None,
    without: Collection[str] = (),
) -> list[Claimed]:
    """Takes jobs that are due, oldest first: queued ones, and those of dead owners.

    Rows that another process is claiming at this moment are skipped where the
    server can (PostgreSQL, MariaDB 10.6, MySQL 8) and waited for elsewhere.

    Args:
        session: of a writing unit of its own.
        owner: the runner.
        kinds: that it has handlers for.
        limit: jobs at most.
        ttl: seconds of the lease.
        room: jobs at most of certain kinds.
        without: ids that the runner still runs, whose lease ended unnoticed.
    """
    due = (
        select(Job, (db_now() - Job.created_at).label("age"))
        .where(Job.due_at <= db_now(), Job.kind.in_(kinds))
        .order_by(Job.due_at)
        .limit(limit)
        .with_for_update(of=Job, skip_locked=dialects.can_skip_locked(session))
    )
    if without:
        due = due.where(Job.id.not_in(without))
    left = dict(room or {})
    rows = []
    for job, age in session.execute(due):
        if left.get(job.kind, 1) > 0:
            rows.append((job, age))
            if job.kind in left:
                left[job.kind] -= 1
    if not rows:
        return []
    session.execute(
        update(Job)
        .where(Job.id.in_([job.id for job, _ in rows]))
        .values(
            state=work.RUNNING,
            owner=owner,
            fence=Job.fence + 1,
            attempt=Job.attempt + 1,
            due_at=db_now() + ttl,
            updated_at=db_now(),
        ),
        execution_options={"synchronize_session": False},
    )
    return [
        Claimed(
            id=job.id,
            kind=job.kind,
            key=job.key,
            payload=job.payload,
            step=job.step,
            attempt=job.attempt + 1,
            max_attempts=job.max_attempts,
            fence=job.fence + 1,
            error=job.error,
            age=age,
        )
        for job, age in rows
    ]


def renew(session: Session, owner: str, fences: Mapping[str, int], ttl: float) -> set[str]:
    """Prolongs the leases of an owner's jobs, in one statement when none was lost.

    Args:
        session: of a writing unit.
        owner: the runner.
        fences: the claim's number by job id.
        ttl: seconds from now.

    Returns:
        Ids of the jobs that the owner still has.
    """
    mine = and_(Job.id.in_(list(fences)), Job.owner == owner, Job.state == work.RUNNING)
    if changed(session, update(Job).where(mine).values(due_at=db_now() + ttl)) == len(fences):
        return set(fences)
    held = session.execute(select(Job.id, Job.fence).where(mine)).all()
    return {id_ for id_, fence in held if fences[id_] == fence}


def note(
    session: Session,
    id_: str,
    owner: str,
    fence: int,
    *,
    step: str,
    payload: Mapping[str, Any],
    ttl: float,
) -> bool:
    """Notes a step and what the next one needs, and prolongs the lease.

    Returns:
        False when the owner has the job no more; nothing was noted then.
    """
    return _owners(
        session,
        id_,
        owner,
        fence,
        step=step,
        payload=dict(payload),
        due_at=db_now() + ttl,
        updated_at=db_now(),
    )


def finish(
    session: Session, id_: str, owner: str, fence: int, *, state: str, error: str = ""
) -> bool:
    """Ends a job as done or failed.

    Returns:
        False when the owner has the job no more.
    """
    return _owners(session, id_, owner, fence, **_ended(state), error=error[:ERROR_LENGTH])


def put_back(
    session: Session,
    id_: str,
    owner: str,
    fence: int,
    *,
    delay: float,
    attempt: int,
    error: str | None = None,
) -> bool:
    """Gives a job back, to be claimed by anybody after a delay.

    Args:
        session: of a writing unit.
        id_: of the job.
        owner: the runner.
        fence: the claim's number.
        delay: seconds.
        attempt: runs that count so far.
        error: why; None keeps the last reason.

    Returns:
        False when the owner has the job no more.
    """
    values: dict[str, Any] = {
        "state": work.QUEUED,
        "owner": "",
        "due_at": db_now() + delay,
        "attempt": attempt,
        "updated_at": db_now(),
    }
    if error is not None:
        values["error"] = error[:ERROR_LENGTH]
    return _owners(session, id_, owner, fence, **values)


def show(session: Session, id_: str) -> Job | None:
    """The job of this id."""
    return session.get(Job, id_)


def finished_among(session: Session, ids: Collection[str]) -> set[str]:
    """Which of these jobs are over."""
    over = select(Job.id).where(Job.id.in_(ids), Job.state.in_(work.FINISHED))
    return set(session.scalars(over))


def listing(
    session: Session,
    *,
    kind: str | None = None,
    state: str | None = None,
    key: str | None = None,
    limit: int = 100,
) -> Sequence[Job]:
    """Jobs for an operator's eyes, newest first.

    Args:
        session: of a reading unit.
        kind: only this kind.
        state: only this state.
        key: only this dedupe key.
        limit: at most.
    """
    query = select(Job).order_by(Job.id.desc()).limit(limit)
    if kind is not None:
        query = query.where(Job.kind == kind)
    if state is not None:
        query = query.where(Job.state == state)
    if key is not None:
        query = query.where(Job.key == key)
    return session.scalars(query).all()


def counts(session: Session) -> dict[tuple[str, str], int]:
    """Numbers of jobs by kind and state, finished ones included (reads the whole table)."""
    grouped = select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    return {(kind, state): number for kind, state, number in session.execute(grouped)}


def waiting(session: Session) -> list[tuple[str, str, int, float]]:
    """Unfinished jobs: kind, state, number, and how many seconds the oldest is overdue."""
    grouped = (
        select(Job.kind, Job.state, func.count(), db_now() - func.min(Job.due_at))
        .where(Job.due_at.is_not(None))
        .group_by(Job.kind, Job.state)
    )
    return [
        (kind, state, number, overdue) for kind, state, number, overdue in session.execute(grouped)
    ]


def retry(session: Session, id_: str) -> bool:
    """Queues a failed or cancelled job again, from the step that it had reached.

    It counts as asked for anew, or a limit of age would end it at once.

    Returns:
        False when there is no such job, or it has not failed.

    Raises:
        Conflict: an unfinished job of the same kind and key exists.
    """
    again = (
        update(Job)
        .where(Job.id == id_, Job.state.in_((work.FAILED, work.CANCELLED)))
        .values(
            state=work.QUEUED,
            active_key=Job.key,
            attempt=0,
            created_at=db_now(),
            due_at=db_now(),
            finished_at=None,
            updated_at=db_now(),
        )
    )
    try:
        with session.begin_nested():
            return changed(session, again) == 1
    except IntegrityError:
        raise errors.Conflict("An unfinished job with the same key exists.") from None


def cancel(session: Session, id_: str) -> bool:
    """Ends an unfinished job; one that runs is stopped at its next note.

    Returns:
        False when there is no such job, or it is finished.
    """
    ended = (
        update(Job)
        .where(Job.id == id_, Job.state.in_(work.UNFINISHED))
        .values(**_ended(work.CANCELLED), fence=Job.fence + 1)
    )
    return changed(session, ended) == 1


def reschedule(session: Session, id_: str, delay: float) -> bool:
    """Moves the time from which a queued job may be claimed.

    Args:
        session: of a writing unit.
        id_: of the job.
        delay: seconds from now.

    Returns:
        False when the job is not queued: it runs, or is finished.
    """
    moved = (
        update(Job)
        .where(Job.id == id_, Job.state == work.QUEUED)
        .values(due_at=db_now() + delay, updated_at=db_now())
    )
    return changed(session, moved) == 1


def purge(session: Session, *, done_after: float, failed_after: float, limit: int = 500) -> int:
    """Deletes jobs that were finished long ago, a batch at a time.

    Args:
        session: of a writing unit of its own.
        done_after: seconds that done and cancelled jobs are kept.
        failed_after: seconds that failed jobs are kept.
        limit: jobs at most; call again while the answer equals it.

    Returns:
        How many went.
    """
    failed = Job.state == work.FAILED
    old = (
        select(Job.id)
        .where(
            Job.finished_at <= db_now() - min(done_after, failed_after),
            (failed & (Job.finished_at <= db_now() - failed_after))
            | (~failed & (Job.finished_at <= db_now() - done_after)),
        )
        .order_by(Job.finished_at)
        .limit(limit)
    )
    ids = list(session.scalars(old))
    if ids:
        table = Job.__table__
        session.execute(table.delete().where(table.c.id.in_(ids)))  # type: ignore[attr-defined]
    return len(ids)


def _ended(state: str) -> dict[str, Any]:
    return {
        "state": state,
        "active_key": None,
        "due_at": None,
        "owner": "",
        "finished_at": db_now(),
        "updated_at": db_now(),
    }


def _owners(session: Session, id_: str, owner: str, fence: int, /, **values: Any) -> bool:
    mine = and_(Job.id == id_, Job.owner == owner, Job.fence == fence, Job.state == work.RUNNING)
    return changed(session, update(Job).where(mine).values(**values)) == 1
