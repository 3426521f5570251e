"""Asking for background work, and an operator's view of it.

A job is recorded in the transaction of the change that asks for it: either
both are there after a crash, or neither.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.database import after_commit
from trimaran.db.queries import work_jobs
from trimaran.work import wakeups

#: Runs that count, with pauses of 1, 2, 4 … 300 s between them: about an hour.
MAX_ATTEMPTS = 20
#: Longest pause between two attempts, in seconds.
LONGEST_PAUSE = 300.0

_LIMITS = {"kind": 64, "key": 255}


def enqueue(
    session: Session,
    kind: str,
    payload: Mapping[str, Any],
    *,
    key: str | None = None,
    delay: float = 0,
    max_attempts: int = MAX_ATTEMPTS,
) -> str:
    """Records a job within the caller's unit of work.

    It runs after the commit: at once in this process when a runner with a
    handler is here, otherwise within the poll interval of one elsewhere.

    Args:
        session: of the writing unit.
        kind: names the handler ("ec2.create_image"), at most 64 characters.
        payload: a JSON object; kept in clear, so no secrets.
        key: makes it the same job as an unfinished one of the same kind and key.
        delay: seconds before it may run.
        max_attempts: runs that may fail before the job does.

    Returns:
        The job's id; that of the unfinished job when the key is taken.

    Raises:
        ValueError: kind or key is too long.
    """
    for name, value in (("kind", kind), ("key", key)):
        if value is not None and not 0 < len(value) <= _LIMITS[name]:
            raise ValueError(f"the {name} of a job has 1 to {_LIMITS[name]} characters")
    id_ = work_jobs.add(
        session,
        id=_time_ordered_id(),
        kind=kind,
        payload=payload,
        key=key,
        delay=max(0.0, delay),
        max_attempts=max(1, max_attempts),
    )
    after_commit(session, wakeups.wake_all)
    return id_


def _time_ordered_id() -> str:
    """A UUID of version 7 (RFC 9562): new rows go to the end of the clustered index.

    Parts of the millisecond come next (section 6.2, method 3), so that jobs asked for one
    after the other are listed so.
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76
    value |= (rest * 4096 // 1_000_000) << 64
    value |= 0x2 << 62
    value |= secrets.randbits(62)
    return str(uuid.UUID(int=value))


def backoff(attempt: int, spread: float) -> float:
    """Seconds to wait after a failed attempt.

    Args:
        attempt: which attempt failed, from 1.
        spread: from 0 to 1, moves the result within ±20 %.
    """
    longest = min(LONGEST_PAUSE, 2.0 ** min(attempt - 1, 30))
    return float(longest * (0.8 + 0.4 * spread))
