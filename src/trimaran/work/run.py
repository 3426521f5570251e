"""One run of one job, as its handler sees it.

A handler is a list of steps, each safe to run twice: it looks at ``job.step``,
does the next thing, and notes it with ``checkpoint`` before the one after.
Whoever runs the job next goes on from the last note.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from trimaran.db import Database
from trimaran.db.queries import work_jobs
from trimaran.db.queries.work_jobs import Claimed
from trimaran.work.signals import HandedOver, LeaseLost

T = TypeVar("T")

#: Longest name of a step.
STEP_LENGTH = 64


class JobRun:
    """What a handler is given.

    Attributes:
        id: the job's id.
        kind: its kind.
        key: its dedupe key or None.
        payload: what was asked for and noted so far; change it by ``checkpoint``.
        step: the last step noted, empty at first.
        attempt: this run's number among those that count, from 1.
        max_attempts: runs that count at most.
        last_error: why the last run failed or waited, empty at first.
    """

    def __init__(self, db: Database, claimed: Claimed, *, owner: str, ttl: float) -> None:
        self.id = claimed.id
        self.kind = claimed.kind
        self.key = claimed.key
        self.payload: dict[str, Any] = claimed.payload
        self.step = claimed.step
        self.attempt = claimed.attempt
        self.max_attempts = claimed.max_attempts
        self.last_error = claimed.error
        self.fence = claimed.fence
        self.started = time.monotonic()
        self._age = claimed.age
        self._db = db
        self._owner = owner
        self._ttl = ttl
        self._lost = threading.Event()
        self._stopping = threading.Event()

    @property
    def age(self) -> float:
        """Seconds since the job was asked for."""
        return self._age + time.monotonic() - self.started

    @property
    def lost(self) -> bool:
        """True when the job is known to belong to another process, or was cancelled."""
        return self._lost.is_set()

    @property
    def stopping(self) -> bool:
        """True when the process is stopping: end soon, or note a step to hand over."""
        return self._stopping.is_set()

    def checkpoint(self, step: str, **updates: Any) -> None:
        """Notes that a step is reached and what the next ones need; prolongs the lease.

        Args:
            step: its name, at most 64 characters.
            updates: what to add to the payload (JSON values).

        Raises:
            LeaseLost: another process has the job; nothing was noted.
            HandedOver: noted, and the process is stopping.
            Unavailable: the database does not answer (service "database").
        """
        self.commit(lambda session: None, step, **updates)

    def commit(self, fn: Callable[[Session], T], step: str | None = None, **updates: Any) -> T:
        """Runs a unit of work that takes effect only while the job is ours.

        Args:
            fn: the unit; committed together with the note.
            step: the step that is reached by it; None keeps the last.
            updates: what to add to the payload.

        Returns:
            What ``fn`` returned.

        Raises:
            LeaseLost: another process has the job; nothing was written.
            HandedOver: written, and the process is stopping.
            Unavailable: the database does not answer (service "database").
        """
        to_step = self.step if step is None else step
        if len(to_step) > STEP_LENGTH:
            raise ValueError(f"a step's name has at most {STEP_LENGTH} characters")
        # Through JSON and back, so that this run sees what the next one would.
        payload: dict[str, Any] = self.payload | json.loads(json.dumps(updates))
        if self.lost:
            raise LeaseLost(self.id)

        def unit(session: Session) -> T:
            # First, so that the row's lock keeps the job ours until the commit.
            if not work_jobs.note(
                session,
                self.id,
                self._owner,
                self.fence,
                step=to_step,
                payload=payload,
                ttl=self._ttl,
            ):
                raise LeaseLost(self.id)
            return fn(session)

        try:
            result = self._db.write(unit)
        except LeaseLost:
            self.mark_lost()
            raise
        self.step, self.payload = to_step, payload
        if self.stopping:
            raise HandedOver(self.id)
        return result

    def mark_lost(self) -> None:
        """Tells the handler that the job is not ours any more."""
        self._lost.set()

    def ask_to_stop(self) -> None:
        """Tells the handler that the process is stopping."""
        self._stopping.set()
