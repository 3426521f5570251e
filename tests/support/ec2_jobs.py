"""Runs what the EC2 service left in its journal, as a process that is alive would."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from tests.support.ec2_openstack import Caller
from trimaran.config import common
from trimaran.db import Database
from trimaran.db.models import work as states
from trimaran.db.models.work import Job
from trimaran.ec2.jobs import Crew
from trimaran.ec2.parts import Parts

PATIENCE = 120.0


def jobs_of(db: Database, kind: str) -> list[Any]:
    """The jobs of a kind, oldest first."""
    query = sa.select(Job).where(Job.kind == kind).order_by(Job.id)
    return db.read(lambda session: list(session.scalars(query)))


def make_due(db: Database) -> None:
    """Lets the time pass after which the processes that began the jobs count as dead."""
    now = sa.update(Job).where(Job.due_at.is_not(None)).values(due_at=0.0)
    db.write(lambda session: session.execute(now))


@contextlib.contextmanager
def at_work(caller: Caller) -> Iterator[Crew]:
    """A process of the service that does background work on a caller's database."""
    own = common.defaults(work_poll_seconds=0.05, work_lease_seconds=5, shutdown_timeout=10)
    parts = Parts(
        caller.conf, own, caller.cloud.identity, caller.cloud, caller.db, region="RegionOne"
    )
    crew = Crew(parts)
    crew.start()
    try:
        yield crew
    finally:
        crew.stop()


def finish(caller: Caller, kind: str) -> list[Any]:
    """Has the jobs of a kind done to their ends; returns them."""
    make_due(caller.db)
    deadline = time.monotonic() + PATIENCE
    with at_work(caller):
        while any(job.state in states.UNFINISHED for job in jobs_of(caller.db, kind)):
            assert time.monotonic() < deadline, [job.error for job in jobs_of(caller.db, kind)]
            time.sleep(0.02)
    return jobs_of(caller.db, kind)
