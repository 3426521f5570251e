"""Background work: what needs no second process and no server."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pytest

from trimaran import work
from trimaran.config.common import defaults
from trimaran.db import Database
from trimaran.work import jobs, wakeups
from trimaran.work.periodic import Periodic


@pytest.fixture
def db(tmp_path: Path):
    made = Database(f"sqlite:///{tmp_path}/x.sqlite")
    yield made
    made.dispose()


def test_ids_are_ordered_by_time_and_are_uuids(monkeypatch: pytest.MonkeyPatch):
    now = 1_700_000_000_000_000_000
    ids = []
    # Also within a millisecond: a thing asked for after another is one of the newer.
    for nanoseconds in [*range(0, 3_000_000, 1000), 4_000_000, 10**9]:
        monkeypatch.setattr(jobs.time, "time_ns", lambda now=now + nanoseconds: now)
        ids.append(jobs._time_ordered_id())
    assert ids == sorted(ids)
    assert uuid.UUID(ids[0]).int >> 80 == now // 1_000_000
    assert {uuid.UUID(id_).version for id_ in ids} == {7}
    assert {uuid.UUID(id_).variant for id_ in ids} == {uuid.RFC_4122}


def test_pauses_double_are_apart_and_have_an_end():
    assert [jobs.backoff(n, 0.5) for n in (1, 2, 3, 8)] == [1, 2, 4, 128]
    assert jobs.backoff(50, 0.5) == jobs.LONGEST_PAUSE
    assert jobs.backoff(1000, 1.0) == pytest.approx(jobs.LONGEST_PAUSE * 1.2)
    some = [jobs.backoff(3, random.random()) for _ in range(50)]
    assert 3.2 <= min(some) < max(some) <= 4.8
    hours = sum(jobs.backoff(n, 0.5) for n in range(1, work.MAX_ATTEMPTS)) / 3600
    assert 0.9 < hours < 1.1


@pytest.mark.parametrize(
    ("kind", "key"), [("", None), ("k" * 65, None), ("k", ""), ("k", "x" * 256)]
)
def test_a_job_that_does_not_fit_is_refused_before_the_database(kind: str, key: str | None):
    with pytest.raises(ValueError, match="characters"):
        work.enqueue(None, kind, {}, key=key)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_lease_that_does_not_fit_is_refused_before_the_database(db: Database, name: str):
    with pytest.raises(ValueError, match="characters"):
        work.acquire(db, name, None, 1)
    with pytest.raises(ValueError, match="characters"):
        work.acquire_many(db, ["fits", name], None, 1)


def test_names_are_given_once_and_before_the_start(db: Database):
    runner = work.Runner(db, own=defaults(), name="test")
    runner.add_job("k", lambda job: None)
    with pytest.raises(ValueError, match="has a handler"):
        runner.add_job("k", lambda job: None)
    runner.periodic("p", 1, lambda: None)
    with pytest.raises(ValueError, match="exists already"):
        runner.periodic("p", 1, lambda: None)
    runner.stop()  # a runner that was never started stops without a word


def test_a_broken_interval_switches_off_and_is_logged(caplog: pytest.LogCaptureFixture):
    entry = Periodic("p", lambda: 1 / 0, lambda: None, leased=False, run_at_start=True)
    assert entry.seconds() == 0
    assert "interval of p cannot be read" in caplog.text


def test_a_handler_that_catches_exceptions_does_not_catch_the_loss_of_its_job():
    for signal in (work.LeaseLost, work.HandedOver):
        assert not issubclass(signal, Exception)
    for wish in (work.Retry, work.Fail):
        assert issubclass(wish, Exception)


def test_runners_are_woken_until_they_are_forgotten():
    class Sleeper:
        woken = 0

        def wake(self) -> None:
            self.woken += 1

    one, other = Sleeper(), Sleeper()
    wakeups.register(one)
    wakeups.register(other)
    wakeups.wake_all()
    wakeups.forget(one)
    wakeups.wake_all()
    assert (one.woken, other.woken) == (1, 2)
    wakeups.forget(other)
