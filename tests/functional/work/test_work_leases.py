"""Leases on each dialect, within one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from tests.support.work_processes import runner_of
from trimaran import errors, work
from trimaran.db import Database
from trimaran.db.queries import work_leases

#: Seconds for what takes a busy machine long, and never fails to come.
PATIENCE = 60.0
#: Seconds of a lease that no machine is so busy to let end.
LONG = 2 * PATIENCE


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    database = Database(url, pool_size=3)
    yield database
    database.dispose()


def test_a_lease_is_taken_renewed_and_given_back(db: Database):
    lease = work.acquire(db, "thing", "me", LONG)
    assert lease is not None
    assert lease.held
    assert work.acquire(db, "thing", "you", LONG) is None
    assert work.acquire(db, "other", "you", LONG) is not None
    assert lease.renew()
    lease.release()
    assert not lease.held
    assert not lease.renew()
    with pytest.raises(errors.Unavailable):
        lease.check()
    again = work.acquire(db, "thing", "you", LONG)
    assert again is not None
    lease.release()
    assert db.read(lambda s: work_leases.show(s, "thing")).owner == "you"


def test_an_ended_lease_is_anybodys_and_its_holder_knows(db: Database):
    old = work.acquire(db, "thing", "old", 0.05)
    assert old is not None
    deadline = time.monotonic() + PATIENCE
    while (new := work.acquire(db, "thing", "new", LONG)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not old.held
    assert not old.renew()
    old.release()
    assert new.renew(), "the old holder took it away"


def test_an_ended_lease_that_nobody_took_can_be_renewed(db: Database):
    lease = work.acquire(db, "thing", "me", 0.01)
    assert lease is not None
    time.sleep(0.02)
    lease.ttl = LONG
    assert lease.renew()
    assert lease.held
    assert work.acquire(db, "thing", "you", LONG) is None


def test_waiting_for_a_lease_has_an_end(db: Database):
    with work.hold(db, "thing", LONG):
        begun = time.monotonic()
        with (
            pytest.raises(errors.Unavailable) as caught,
            work.hold(db, "thing", LONG, timeout=0.2),
        ):
            pytest.fail("held twice")
        assert caught.value.service == "work"
        assert time.monotonic() - begun >= 0.2
    with work.hold(db, "thing", LONG, timeout=PATIENCE) as lease:
        assert lease.held


def _renewed(db: Database, name: str, times: int) -> None:
    """Waits until a lease was renewed; a rival never gets it meanwhile."""
    seen: set[float] = set()
    deadline = time.monotonic() + PATIENCE
    while len(seen) <= times:
        assert time.monotonic() < deadline, f"renewed {len(seen) - 1} times"
        assert work.acquire(db, name, "rival", LONG) is None
        seen.add(db.read(lambda session: work_leases.show(session, name)).expires_at)
        time.sleep(0.02)


def test_a_held_lease_is_kept_alive(db: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trimaran.work.leases.RENEWALS", LONG / 0.2)
    with work.hold(db, "thing", LONG) as lease:
        _renewed(db, "thing", 4)
        lease.check()


def test_what_is_due_again_is_counted_from_the_start_and_death_does_not_count(db: Database):
    first = work.acquire(db, "thing", "me", LONG, every=3600)
    assert first is not None
    first.release()
    assert work.acquire(db, "thing", "me", LONG, every=3600) is None
    assert work.acquire(db, "thing", "me", LONG, every=0) is not None
    dead = work.acquire(db, "mortal", "me", 0, every=3600)
    assert dead is not None
    assert work.acquire(db, "mortal", "you", LONG, every=3600) is not None


def test_many_leases_are_taken_in_few_statements(db: Database):
    names = [f"c{n}" for n in range(900)]
    statements: list[str] = []

    def note(conn, cursor, statement, parameters, context, executemany):
        statements.append(statement.split()[0])

    db.ping()
    sa.event.listen(db.engine, "before_cursor_execute", note)

    def counted(action: Callable[[], work.Leases | bool | None]):
        statements.clear()
        result = action()
        return result, [word for word in statements if word != "BEGIN"]

    first, words = counted(lambda: work.acquire_many(db, names[:300], "me", LONG))
    assert len(first.names) == 300
    assert words == ["SELECT", "INSERT", "UPDATE"]
    rest, words = counted(lambda: work.acquire_many(db, names, "you", LONG))
    assert rest.names == frozenset(names[300:])
    assert words == ["SELECT", "INSERT", "UPDATE"]
    nothing, words = counted(lambda: work.acquire_many(db, names, "third", LONG))
    assert nothing.names == frozenset()
    assert words == ["SELECT"]
    _, words = counted(first.renew)
    assert words == ["UPDATE"]
    first.release(names[:10])
    assert len(first.names) == 290
    again, words = counted(lambda: work.acquire_many(db, names, "third", LONG))
    assert again.names == frozenset(names[:10])
    assert words == ["SELECT", "UPDATE"]
    sa.event.remove(db.engine, "before_cursor_execute", note)


def test_a_share_is_limited_and_comes_again_in_its_time(db: Database):
    names = [f"c{n}" for n in range(50)]
    seen: set[str] = set()
    while share := work.acquire_many(db, names, "me", LONG, limit=8, every=3600):
        assert len(share.names) <= 8
        assert not seen & share.names, "twice in one interval"
        seen |= share.names
        share.release()
    assert seen == set(names)
    lost = work.acquire_many(db, names, "me", LONG, limit=5)
    lost.release(done=False)
    assert len(work.acquire_many(db, names, "me", LONG, every=3600).names) == 5


def test_a_runner_keeps_shares_alive(db: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trimaran.work.heartbeat.RENEWALS", LONG / 0.2)
    runner = runner_of(db, ttl=LONG)
    runner.start()
    try:
        share = runner.share(["a", "b"])
        for name in ("a", "b"):
            _renewed(db, name, 4)
        assert share.names == {"a", "b"}
        runner.give_up(share)
        assert work.acquire_many(db, ["a", "b"], "rival", LONG).names == {"a", "b"}
    finally:
        runner.stop(PATIENCE)


def test_forgotten_leases_are_deleted(db: Database):
    held = work.acquire(db, "held", "me", LONG)
    given = work.acquire(db, "given", "me", LONG)
    assert held
    assert given
    given.release()
    assert db.write(lambda s: work_leases.purge(s, after=3600)) == 0
    assert db.write(lambda s: work_leases.purge(s, after=0)) == 1
    assert db.read(lambda s: work_leases.show(s, "held")) is not None
    assert db.read(lambda s: work_leases.show(s, "given")) is None


def test_a_failing_periodic_function_is_run_again(db: Database, caplog):
    ran = threading.Semaphore(0)

    def fails() -> None:
        ran.release()
        raise ValueError("this time")

    runner = runner_of(db)
    runner.periodic("fails", 0.1, fails)
    runner.start()
    try:
        for _ in range(3):
            assert ran.acquire(timeout=PATIENCE)
    finally:
        runner.stop(PATIENCE)
    assert "Periodic function fails failed" in caplog.text


def test_an_interval_is_read_at_each_turn_and_zero_is_off(db: Database, monkeypatch):
    monkeypatch.setattr("trimaran.work.periodic.OFF", 0.05)
    ran = threading.Semaphore(0)
    interval = [0.0]
    runner = runner_of(db)
    asked = threading.Semaphore(0)

    def read() -> float:
        asked.release()
        return interval[0]

    runner.periodic("tuned", read, ran.release)
    runner.start()
    try:
        for _ in range(3):
            assert asked.acquire(timeout=PATIENCE)
        assert not ran.acquire(blocking=False)
        interval[0] = 0.05
        for _ in range(3):
            assert ran.acquire(timeout=PATIENCE)
    finally:
        runner.stop(PATIENCE)


@pytest.mark.parametrize("leased", [True, False])
def test_a_shorter_interval_counts_at_once_when_the_runner_is_told(db: Database, leased: bool):
    ran = threading.Semaphore(0)
    interval = [3600.0]
    runner = runner_of(db)
    runner.periodic("tuned", lambda: interval[0], ran.release, leased=leased)
    runner.start()
    try:
        assert ran.acquire(timeout=PATIENCE)
        interval[0] = 0.05
        # The turn that ran may not have set its next look yet.
        for _ in range(100):
            runner.reconsider()
            if ran.acquire(timeout=0.1):
                break
        assert ran.acquire(timeout=PATIENCE)
    finally:
        runner.stop(PATIENCE)


def test_a_first_run_can_wait_for_its_interval(db: Database):
    ran: list[float] = []
    done = threading.Event()

    def turn() -> None:
        ran.append(time.monotonic())
        done.set()

    runner = runner_of(db)
    begun = time.monotonic()
    runner.periodic("later", 0.5, turn, run_at_start=False)
    runner.start()
    try:
        assert done.wait(PATIENCE)
    finally:
        runner.stop(PATIENCE)
    assert ran[0] - begun >= 0.45


def test_each_process_runs_an_unleased_function(db: Database):
    counts = [threading.Semaphore(0), threading.Semaphore(0)]
    runners = []
    for count in counts:
        runner = runner_of(db)
        runner.periodic("own", 0.1, count.release, leased=False)
        runner.start()
        runners.append(runner)
    try:
        for count in counts:
            assert count.acquire(timeout=PATIENCE)
            assert count.acquire(timeout=PATIENCE)
    finally:
        for runner in runners:
            runner.stop(PATIENCE)
