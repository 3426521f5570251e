"""Jobs and leases of `trimaran.work`; all times are the database's epoch seconds."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from trimaran.db.models.base import MYSQL_TABLE, Base, EpochSeconds, JSONText

QUEUED = "queued"
RUNNING = "running"
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
UNFINISHED = (QUEUED, RUNNING)
FINISHED = (DONE, FAILED, CANCELLED)


class Job(Base):
    """A piece of work that outlives the process that asked for it.

    Attributes:
        id: a time-ordered UUID.
        kind: which handler runs it ("ec2.create_image").
        state: queued, running, done, failed or cancelled.
        key: what the caller gave to have it once.
        active_key: the key while the job is unfinished, then NULL: unique with
            the kind, so an unfinished job is there once.
        payload: what the handler needs and has noted so far.
        step: the last step that was noted; empty at first.
        attempt: runs that count (a run that asked to be called later does not).
        fence: number of claims; what an owner writes carries the number of its claim.
        owner: the runner that has it; empty when none has.
        due_at: when it may be claimed: the time to run of a queued job, the end
            of the lease of a running one, NULL when finished.  One ordered
            column, so one index answers "what is next" and finished jobs are
            not in the way.
        error: the last reason of a failure or of waiting; empty at first.
    """

    __tablename__ = "work_jobs"
    __table_args__ = (
        # The kind last: an index that begins with it would tempt SQLite to read every job of it.
        UniqueConstraint("active_key", "kind"),
        Index("ix_work_jobs_due_at_kind", "due_at", "kind"),
        Index("ix_work_jobs_finished_at", "finished_at"),
        MYSQL_TABLE,
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    kind: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16))
    key: Mapped[str | None] = mapped_column(String(255))
    active_key: Mapped[str | None] = mapped_column(String(255))
    payload: Mapped[dict[str, Any]] = mapped_column(JSONText(dict, long=True))
    step: Mapped[str] = mapped_column(String(64))
    attempt: Mapped[int] = mapped_column(Integer)
    max_attempts: Mapped[int] = mapped_column(Integer)
    fence: Mapped[int] = mapped_column(Integer)
    owner: Mapped[str] = mapped_column(String(255))
    due_at: Mapped[float | None] = mapped_column(EpochSeconds)
    error: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(EpochSeconds)
    updated_at: Mapped[float] = mapped_column(EpochSeconds)
    finished_at: Mapped[float | None] = mapped_column(EpochSeconds)


class Lease(Base):
    """Who may do the named thing now, and when it was last begun.

    Attributes:
        name: of the thing ("magnum.sync", "ec2.default-vpc/<project>").
        owner: who holds it, for people; empty when it was given back.
        token: a random value of the acquisition; what a holder does compares it.
        expires_at: when it ends without renewal; 0 when it was given back.
        started_at: when it was last acquired.
    """

    __tablename__ = "work_leases"
    __table_args__ = (Index("ix_work_leases_expires_at", "expires_at"), MYSQL_TABLE)

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    owner: Mapped[str] = mapped_column(String(255))
    token: Mapped[str] = mapped_column(String(32))
    expires_at: Mapped[float] = mapped_column(EpochSeconds)
    started_at: Mapped[float] = mapped_column(EpochSeconds)
