"""What the processes of the tests of `trimaran.work` do."""

from __future__ import annotations

import itertools
import os
import threading
import time

from tests.support.processes import Link
from trimaran import work
from trimaran.config.common import defaults
from trimaran.db import Database
from trimaran.db.queries import work_jobs, work_leases

#: Seconds of a lease whose end is waited for.  A busy machine may let it end although it is
#: renewed, so nobody else wants such a one before its holder is dead or frozen.
TTL = 2
#: Seconds of any other lease: no machine is so busy that it ends.
LONG = 60
#: Seconds after which a process that nobody has killed ends by itself.
LIFE = 300


def runner_of(db: Database, *, ttl: float = LONG, concurrency: int = 4) -> work.Runner:
    own = defaults(work_lease_seconds=ttl, work_poll_seconds=0.1, work_concurrency=concurrency)
    return work.Runner(db, own=own, name="test")


def run_many(link: Link, url: str) -> None:
    """Tells each run of a job, which lasts until the first word; ends at the second one."""
    db = Database(url)
    runner = runner_of(db)
    go = threading.Event()

    @runner.job("many")
    def handler(job: work.JobRun) -> None:
        link.tell("ran", id=job.id, attempt=job.attempt)
        go.wait(LIFE)

    runner.start()
    link.tell("ready")
    link.wait()
    go.set()
    link.wait()
    runner.stop(60)
    db.dispose()
    link.tell("stopped")


def two_steps(
    link: Link, url: str, *, blocks: bool = False, heartbeat: bool = True, told: bool = False
) -> None:
    """Step 1 notes a value; step 2 waits for a word first when it ``blocks``.

    Without heartbeat there is no moment in which a process that is frozen
    would hold a row's lock.  One that is to be ``told`` looks for work after a word.
    """
    db = Database(url)
    runner = runner_of(db, ttl=TTL)
    if not heartbeat:
        runner._heartbeat.start = lambda: None  # type: ignore[method-assign]

    def noted_at(job: work.JobRun) -> float:
        row = db.read(lambda session: work_jobs.show(session, job.id))
        assert row is not None
        return row.updated_at

    @runner.job("steps")
    def handler(job: work.JobRun) -> None:
        if job.step == "":
            link.tell("one")
            job.checkpoint("one", answer=42)
        if job.step == "one":
            link.tell(
                "two",
                answer=job.payload["answer"],
                asked=job.payload["asked"],
                noted_at=noted_at(job),
            )
            if blocks:
                link.wait()
            try:
                job.checkpoint("two", by=os.getpid())
            except work.LeaseLost:
                link.tell("lost", flag=job.lost)
                raise
        link.tell("end", attempt=job.attempt)

    if told:
        link.tell("ready")
        link.wait()
    runner.start()
    time.sleep(LIFE)


def hold_often(link: Link, url: str, directory: str, times: int) -> None:
    """Holds one lease several times; the file says whether it was alone."""
    db = Database(url, pool_size=1)
    mark = os.path.join(directory, "inside")
    link.tell("ready")
    link.wait()
    for _ in range(times):
        with work.hold(db, "one/at/a/time", LONG, timeout=LIFE) as lease:
            lease.check()
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # raises when another is inside
            time.sleep(0.002)
            os.unlink(mark)
        link.tell("held")
    link.tell("end")


def keep(link: Link, url: str, ttl: float) -> None:
    """Takes a lease as soon as it is free, and keeps it until told to look at it again.

    Nobody renews it: a process that is frozen in the middle of that would hold the row's lock.
    """
    db = Database(url, pool_size=1)
    while (lease := work.acquire(db, "mine", None, ttl)) is None:
        time.sleep(0.05)
    link.tell("got")
    link.wait()
    link.tell("looked", held=lease.held)


def periodic(link: Link, url: str, interval: float) -> None:
    """Runs one periodic function; each run takes a while, and tells when it was given."""
    db = Database(url)
    runner = runner_of(db)

    def turn() -> None:
        lease = db.read(lambda session: work_leases.show(session, "periodic/turn"))
        assert lease is not None
        link.tell("begin", given=lease.started_at)
        time.sleep(0.15)
        link.tell("end")

    runner.periodic("turn", interval, turn)
    runner.start()
    link.tell("ready")
    time.sleep(LIFE)


def share(link: Link, url: str, names: list[str], every: float) -> None:
    """Takes a few items at a time until nothing is due; it holds the first ones until told."""
    db = Database(url, pool_size=2)
    link.tell("ready")
    link.wait()
    for number in itertools.count():
        leases = work.acquire_many(db, names, None, LONG, limit=20, every=every)
        if not leases.names:
            break
        link.tell("took", names=sorted(leases.names))
        if number == 0:
            link.wait()
        leases.release()
    link.tell("end")


def upgrade(link: Link, url: str, hull: str) -> None:
    """Migrates when told to, as two replicas' init containers would."""
    from trimaran.db import migrate

    link.tell("ready")
    link.wait()
    link.tell("done", heads=migrate.upgrade(url, hull))


def upgrade_and_hang(link: Link, url: str, ttl: float) -> None:
    """Takes the migration's lock and never gives it back."""
    from trimaran.db import migrate, migration_lock, urls

    migration_lock.TTL = ttl
    engine = urls.make_migration_engine(urls.parse(url))
    with migrate._exclusive(engine):
        link.tell("inside")
        time.sleep(LIFE)
