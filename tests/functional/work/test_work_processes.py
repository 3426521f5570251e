"""Background work with several real processes, some of them killed or frozen."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support import work_processes
from tests.support.processes import PATIENCE, Child, Fleet
from tests.support.work_processes import LONG, TTL
from trimaran import work
from trimaran.db import Database
from trimaran.db.clock import db_now
from trimaran.db.models.work import Lease
from trimaran.db.queries import work_jobs, work_leases


@pytest.fixture
def db(url: str):
    database = Database(url, pool_size=2)
    yield database
    database.dispose()


def _ready(fleet: Fleet, number: int) -> None:
    fleet.until(lambda events: len(fleet.named("ready")) >= number)


def _who(fleet: Fleet, name: str) -> set[int]:
    return {event.pid for event in fleet.named(name)}


def test_each_job_runs_once_in_one_of_four_processes(url: str, db: Database):
    def ask(session):
        return [work.enqueue(session, "many", {"n": n}) for n in range(300)]

    with Fleet() as fleet:
        children = [fleet.start(work_processes.run_many, url) for _ in range(4)]
        _ready(fleet, 4)
        ids = db.write(ask)
        fleet.until(lambda events: len(_who(fleet, "ran")) == 4)
        for child in children:
            child.say("go")
        fleet.until(lambda events: len(fleet.named("ran")) >= 300)
        for child in children:
            child.say("stop")
        fleet.until(lambda events: len(fleet.named("stopped")) == 4)
    ran = fleet.named("ran")
    assert Counter(event.data["id"] for event in ran) == Counter(ids)
    assert {event.data["attempt"] for event in ran} == {1}
    assert db.read(work_jobs.counts) == {("many", "done"): 300}


def test_a_killed_owners_job_goes_on_at_its_step(url: str, db: Database):
    id_ = db.write(lambda session: work.enqueue(session, "steps", {"asked": "this"}))
    with Fleet() as fleet:
        second = fleet.start(partial(work_processes.two_steps, told=True), url)
        first = fleet.start(partial(work_processes.two_steps, blocks=True), url)
        fleet.until(lambda events: fleet.named("two") and fleet.named("ready"))
        first.kill()
        # Nobody renews it any more.
        ends_at = db.read(lambda session: work_jobs.show(session, id_)).due_at
        second.say("go")
        fleet.until(lambda events: fleet.named("end"))
        _is_done_by(db, id_, second.pid)
    assert [event.pid for event in fleet.named("one")] == [first.pid], "step 1 ran again"
    again = fleet.named("two")[1]
    assert again.pid == second.pid
    # By the database's clock, which the lease is given by.
    assert again.data.pop("noted_at") >= ends_at, "taken over while the lease was alive"
    assert again.data == {"answer": 42, "asked": "this"}
    assert fleet.named("end")[0].data == {"attempt": 2}


def test_a_frozen_owner_that_comes_back_writes_nothing(url: str, db: Database):
    id_ = db.write(lambda session: work.enqueue(session, "steps", {"asked": "this"}))
    with Fleet() as fleet:
        owner = partial(work_processes.two_steps, blocks=True, heartbeat=False)
        first = fleet.start(owner, url)
        fleet.until(lambda events: fleet.named("two"))
        _freeze(db, first)
        second = fleet.start(work_processes.two_steps, url)
        fleet.until(lambda events: fleet.named("end"))
        _is_done_by(db, id_, second.pid)
        first.say("go on")
        first.go_on()
        lost = fleet.until(lambda events: fleet.named("lost"))
        _is_done_by(db, id_, second.pid)
    assert [event.pid for event in lost] == [first.pid]
    assert [event.pid for event in fleet.named("end")] == [second.pid]


def _freeze(db: Database, child: Child) -> None:
    # Within a writing unit: SQLite has one lock, and the child must not be frozen with it.
    db.write(lambda session: child.stop())


def _is_done_by(db: Database, id_: str, pid: int) -> None:
    # The last process tells "end" before its runner has recorded the end.
    deadline = time.monotonic() + PATIENCE
    while (job := db.read(lambda session: work_jobs.show(session, id_))).state == "running":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert job.state == "done"
    assert job.payload == {"asked": "this", "answer": 42, "by": pid}


def test_a_lease_has_one_holder_among_eight_processes(url: str, db: Database, tmp_path: Path):
    with Fleet() as fleet:
        children = [fleet.start(work_processes.hold_often, url, str(tmp_path), 5) for _ in range(8)]
        _ready(fleet, 8)
        for child in children:
            child.say("go")
        fleet.until(lambda events: len(fleet.named("end")) == 8)
    assert len(fleet.named("held")) == 40
    lease = db.read(lambda session: work_leases.show(session, "one/at/a/time"))
    assert (lease.owner, lease.expires_at) == ("", 0)


def test_a_killed_holders_lease_ends_and_a_frozen_ones_is_known_to_be_lost(url: str, db: Database):
    def lease() -> Lease:
        found = db.read(lambda session: work_leases.show(session, "mine"))
        assert found is not None
        return found

    with Fleet() as fleet:
        killed = fleet.start(work_processes.keep, url, LONG)
        fleet.until(lambda events: fleet.named("got"))
        assert work.acquire(db, "mine", "rival", LONG) is None
        killed.kill()
        # Most of its time passes.
        db.write(lambda session: session.execute(sa.update(Lease).values(expires_at=db_now() + 1)))
        ends_at = lease().expires_at
        frozen = fleet.start(work_processes.keep, url, TTL)
        fleet.until(lambda events: len(fleet.named("got")) == 2)
        assert lease().started_at >= ends_at
        _freeze(db, frozen)
        with work.hold(db, "mine", LONG, timeout=PATIENCE) as mine:
            assert mine.held
            frozen.say("look")
            frozen.go_on()
            looked = fleet.until(lambda events: fleet.named("looked"))
            assert looked[0].data == {"held": False}
            mine.check()


def test_a_periodic_function_runs_once_an_interval_and_survives_its_process(url: str, db: Database):
    interval = 0.6
    with Fleet() as fleet:
        children = {}
        for _ in range(3):
            child = fleet.start(work_processes.periodic, url, interval)
            children[child.pid] = child
        _ready(fleet, 3)
        fleet.until(lambda events: len(fleet.named("begin")) >= 4)
        begun = fleet.named("begin")
        # By the database's clock: a process may be slow to begin what it was given.
        given = sorted(event.data["given"] for event in begun)
        gaps = [later - earlier for earlier, later in itertools.pairwise(given)]
        assert min(gaps) > interval - 0.001, f"two runs in one interval: {gaps}"
        victim = begun[-1].pid
        children[victim].kill()
        killed = time.monotonic()
        # If it died in the middle: the time of its lease passes.
        theirs = Lease.owner.contains(f":{victim}:")
        db.write(
            lambda session: session.execute(sa.update(Lease).where(theirs).values(expires_at=0))
        )
        after = fleet.until(lambda events: [e for e in fleet.named("begin") if e.at > killed])
    assert after[0].pid != victim


def test_processes_share_many_items(url: str):
    names = [f"cluster/{n}" for n in range(500)]
    with Fleet() as fleet:
        children = [fleet.start(work_processes.share, url, names, 3600.0) for _ in range(3)]
        _ready(fleet, 3)
        for child in children:
            child.say("go")
        fleet.until(lambda events: len(_who(fleet, "took")) == 3)
        for child in children:
            child.say("go on")
        fleet.until(lambda events: len(fleet.named("end")) == 3)
    taken = Counter(name for event in fleet.named("took") for name in event.data["names"])
    assert taken == Counter(names)
