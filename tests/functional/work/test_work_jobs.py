"""Jobs on each dialect: what is claimed when, who may write, and how a job ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.work_processes import runner_of
from trimaran import errors, work
from trimaran.db import Database
from trimaran.db.models.work import Job
from trimaran.db.queries import work_jobs
from trimaran.work import housekeeping
from trimaran.work.run import JobRun

#: Seconds for what takes a busy machine long, and never fails to come.
PATIENCE = 60.0


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    database = Database(url, pool_size=3)
    yield database
    database.dispose()


@pytest.fixture
def running(db: Database) -> Iterator[Callable[..., work.Runner]]:
    """Starts a runner that is stopped at the end of the test."""
    made: list[work.Runner] = []

    def start(prepare: Callable[[work.Runner], Any], **options) -> work.Runner:
        runner = runner_of(options.pop("db", db), **options)
        prepare(runner)
        made.append(runner)
        runner.start()
        return runner

    yield start
    for runner in made:
        runner.stop(PATIENCE)


def _ask(db: Database, kind: str = "k", **options: Any) -> str:
    payload = options.pop("payload", {})
    return db.write(lambda session: work.enqueue(session, kind, payload, **options))


def _job(db: Database, id_: str) -> Job:
    job = db.read(lambda session: work_jobs.show(session, id_))
    assert job is not None
    return job


def _ended(db: Database, id_: str, timeout: float = PATIENCE) -> Job:
    deadline = time.monotonic() + timeout
    while (job := _job(db, id_)).state in ("queued", "running"):
        assert time.monotonic() < deadline, (job.state, job.error)
        time.sleep(0.02)
    return job


def _claim(db: Database, owner: str = "me", limit: int = 10, ttl: float = 30) -> list[JobRun]:
    claimed = db.write(
        lambda session: work_jobs.claim(session, owner=owner, kinds=["k"], limit=limit, ttl=ttl)
    )
    return [JobRun(db, one, owner=owner, ttl=ttl) for one in claimed]


def test_a_job_is_there_when_its_transaction_is_and_not_otherwise(db: Database):
    def undone(session):
        work.enqueue(session, "k", {})
        raise errors.Conflict

    with pytest.raises(errors.Conflict):
        db.write(undone)
    assert _claim(db) == []
    id_ = _ask(db, payload={"a": [1, "ü"]})
    (run,) = _claim(db)
    assert (run.id, run.payload, run.step, run.attempt) == (id_, {"a": [1, "ü"]}, "", 1)
    assert 0 <= run.age < PATIENCE


def test_a_key_makes_one_unfinished_job(db: Database):
    first = _ask(db, key="x")
    assert _ask(db, key="x") == first
    assert _ask(db, kind="other", key="x") != first, "keys are of a kind"
    assert _ask(db, key="y") != first
    (run, _) = _claim(db)
    assert run.id == first
    assert _ask(db, key="x") == first, "a running job is unfinished"
    db.write(lambda s: work_jobs.finish(s, run.id, "me", run.fence, state="done"))
    again = _ask(db, key="x")
    assert again != first
    assert _job(db, first).key == "x", "kept for people to see"


def test_a_key_asked_for_at_the_same_time_makes_one_job(db: Database):
    together = threading.Barrier(3, timeout=PATIENCE)
    ids: list[str] = []

    def ask() -> None:
        together.wait()
        ids.append(_ask(db, key="x"))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(ids) == 3
    assert len(set(ids)) == 1
    assert db.read(work_jobs.counts) == {("k", "queued"): 1}


def test_the_oldest_due_job_comes_first_and_a_delayed_one_later(db: Database):
    later = _ask(db, delay=60)
    ids = [_ask(db) for _ in range(5)]
    assert [run.id for run in _claim(db, limit=3)] == ids[:3]
    assert [run.id for run in _claim(db, owner="other")] == ids[3:]
    assert _claim(db) == []
    assert 0 < db.read(lambda s: work_jobs.seconds_to_next(s, ["k"])) <= 60
    assert _job(db, later).state == "queued"


def test_an_owner_that_lost_its_lease_writes_nothing(db: Database):
    id_ = _ask(db, payload={"n": 0})
    (old,) = _claim(db, "old", ttl=0.05)
    old.checkpoint("first", n=1)
    deadline = time.monotonic() + PATIENCE
    while not (taken := _claim(db, "new")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (new,) = taken
    assert (new.step, new.payload, new.attempt) == ("first", {"n": 1}, 2)
    with pytest.raises(work.LeaseLost):
        old.checkpoint("second", n=2)
    assert old.lost
    with pytest.raises(work.LeaseLost):
        old.commit(lambda session: pytest.fail("ran"), "second")
    for write in (work_jobs.finish, work_jobs.put_back):
        extra: dict[str, Any] = (
            {"state": "done"} if write is work_jobs.finish else {"delay": 0, "attempt": 0}
        )
        assert not db.write(lambda s, w=write, e=extra: w(s, id_, "old", old.fence, **e))
        assert not db.write(lambda s, w=write, e=extra: w(s, id_, "new", old.fence, **e))
    job = _job(db, id_)
    assert (job.state, job.owner, job.step, job.payload) == ("running", "new", "first", {"n": 1})
    new.checkpoint("second", n=3)
    assert _job(db, id_).payload == {"n": 3}


def test_what_a_step_does_to_the_database_is_committed_with_its_note(db: Database):
    from trimaran.db.queries import console

    id_ = _ask(db)
    (run,) = _claim(db)
    run.commit(lambda session: console.set_setting(session, "made", 1), "made")
    assert _job(db, id_).step == "made"

    def fails(session):
        console.set_setting(session, "made", 2)
        raise errors.Conflict

    with pytest.raises(errors.Conflict):
        run.commit(fails, "made again")
    assert _job(db, id_).step == "made"
    assert db.read(console.list_settings) == {"made": 1}


def test_waiting_is_no_attempt_and_failing_is(db: Database, running, monkeypatch):
    monkeypatch.setattr("trimaran.work.outcome.backoff", lambda attempt, spread: 0.01 * attempt)
    seen: list[tuple[int, str]] = []

    def handler(job: work.JobRun) -> None:
        seen.append((job.attempt, job.last_error))
        if len(seen) <= 3:
            raise work.Retry(0.01, "not yet")
        if len(seen) <= 5:
            raise ValueError("broken")

    running(lambda runner: runner.add_job("k", handler))
    job = _ended(db, _ask(db))
    assert job.state == "done"
    assert [attempt for attempt, _ in seen] == [1, 1, 1, 1, 2, 3]
    assert seen[1][1] == "not yet"
    assert seen[-1][1] == "ValueError: broken"


def test_a_job_that_fails_for_good_says_so_first(db: Database, running, monkeypatch):
    monkeypatch.setattr("trimaran.work.outcome.backoff", lambda attempt, spread: 0.01)
    told: list[tuple[str, str, str]] = []

    def on_failed(job: work.JobRun, reason: str) -> None:
        told.append((job.id, reason, _job(db, job.id).state))

    def wrong(job: work.JobRun) -> None:
        raise work.Fail("no such image")

    def broken(job: work.JobRun) -> None:
        raise ValueError("boom")

    def prepare(runner: work.Runner) -> None:
        runner.add_job("wrong", wrong, on_failed=on_failed)
        runner.add_job("broken", broken, on_failed=on_failed)

    running(prepare)
    first, second = _ask(db, "wrong"), _ask(db, "broken", max_attempts=3)
    jobs = [_ended(db, first), _ended(db, second)]
    assert [(job.state, job.attempt, job.error) for job in jobs] == [
        ("failed", 1, "no such image"),
        ("failed", 3, "ValueError: boom"),
    ]
    assert sorted(told) == sorted(
        [(first, "no such image", "running"), (second, "ValueError: boom", "running")]
    )


def test_the_word_of_failure_is_repeated_when_it_fails(db: Database, running, monkeypatch):
    monkeypatch.setattr("trimaran.work.outcome.backoff", lambda attempt, spread: 0.01)
    runs: list[str] = []

    def handler(job: work.JobRun) -> None:
        runs.append("handler")
        raise work.Fail("no")

    def on_failed(job: work.JobRun, reason: str) -> None:
        runs.append(reason)
        if len(runs) < 4:
            raise ValueError("the cluster cannot be told")

    running(lambda runner: runner.add_job("k", handler, on_failed=on_failed))
    job = _ended(db, _ask(db))
    assert (job.state, job.error) == ("failed", "no")
    assert runs == ["handler", "no", "no", "no"]


def test_a_job_whose_processes_die_ends_as_failed(db: Database, running):
    id_ = _ask(db, max_attempts=1)
    assert len(_claim(db, "dead", ttl=0)) == 1
    reasons: list[str] = []
    running(
        lambda runner: runner.add_job(
            "k",
            lambda job: pytest.fail("run again"),
            on_failed=lambda job, reason: reasons.append(reason),
        )
    )
    assert _ended(db, id_).state == "failed"
    assert reasons == ["the processes that ran it died"]


def test_a_job_that_waits_too_long_fails(db: Database, running):
    def handler(job: work.JobRun) -> None:
        raise work.Retry(0.05, "the server to stop")

    running(lambda runner: runner.add_job("k", handler, max_age=0.3))
    job = _ended(db, _ask(db))
    assert job.state == "failed"
    assert job.error.startswith("gave up after")
    assert job.error.endswith("the server to stop")


def test_a_run_that_hangs_loses_its_job(db: Database, running, caplog):
    hangs = threading.Event()
    over = threading.Event()
    ended: list[str] = []

    def handler(job: work.JobRun) -> None:
        if job.attempt == 1:
            hangs.set()
            over.wait(2 * PATIENCE)
        try:
            job.checkpoint("end")
        except work.LeaseLost:
            ended.append("lost")
            raise
        ended.append("done")

    running(lambda runner: runner.add_job("k", handler, timeout=0.2), ttl=1)
    id_ = _ask(db)
    assert hangs.wait(PATIENCE)
    running(lambda runner: runner.add_job("k", handler))
    assert _ended(db, id_).state == "done"
    deadline = time.monotonic() + PATIENCE
    while "longer than its kind may" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    over.set()
    deadline = time.monotonic() + PATIENCE
    while len(ended) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert ended == ["done", "lost"]


def test_a_kind_keeps_to_its_limit_and_others_go_on(db: Database, running):
    lock = threading.Lock()
    now, most = {"slow": 0, "other": 0}, {"slow": 0, "other": 0}
    gate = threading.Event()
    three_others = threading.Semaphore(0)

    def handler(job: work.JobRun) -> None:
        with lock:
            now[job.kind] += 1
            most[job.kind] = max(most[job.kind], now[job.kind])
        if job.kind == "slow":
            gate.wait(2 * PATIENCE)
        else:
            three_others.release()
        with lock:
            now[job.kind] -= 1

    def prepare(runner: work.Runner) -> None:
        runner.add_job("slow", handler, limit=1)
        runner.add_job("other", handler)

    slow = [_ask(db, "slow") for _ in range(3)]
    [_ask(db, "other") for _ in range(3)]
    running(prepare)
    for _ in range(3):
        assert three_others.acquire(timeout=PATIENCE), "the slow kind took all places"
    gate.set()
    assert [_ended(db, id_).state for id_ in slow] == ["done"] * 3
    assert most["slow"] == 1


def test_a_stopping_runner_hands_over_what_does_not_end(db: Database, running):
    inside, over = threading.Event(), threading.Event()
    results: list[str] = []

    def hangs(job: work.JobRun) -> None:
        inside.set()
        over.wait(2 * PATIENCE)
        try:
            job.checkpoint("late")
        except work.LeaseLost:
            results.append("lost")
            raise

    runner = running(lambda runner: runner.add_job("k", hangs))
    id_ = _ask(db)
    assert inside.wait(PATIENCE)
    runner.stop(0.3)
    assert results == [], "it waited for the run"
    job = _job(db, id_)
    assert (job.state, job.owner, job.attempt) == ("queued", "", 0)
    (run,) = _claim(db, "next")
    assert (run.id, run.attempt) == (id_, 1), "at once, and not counted as an attempt"
    over.set()
    deadline = time.monotonic() + PATIENCE
    while not results:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert results == ["lost"]
    assert _job(db, id_).owner == "next"


def test_a_stopping_runner_ends_a_job_at_its_next_note(db: Database, running):
    inside = threading.Event()

    def handler(job: work.JobRun) -> None:
        inside.set()
        deadline = time.monotonic() + PATIENCE
        while not job.stopping:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        job.checkpoint("noted", by="the first")
        pytest.fail("went on")

    runner = running(lambda runner: runner.add_job("k", handler))
    id_ = _ask(db)
    assert inside.wait(PATIENCE)
    runner.stop(PATIENCE)
    (run,) = _claim(db, "next")
    assert (run.id, run.step, run.payload) == (id_, "noted", {"by": "the first"})
    assert run.attempt == 1


def test_a_job_of_this_process_does_not_wait_for_the_next_look(db: Database):
    from trimaran.config.common import defaults

    runner = work.Runner(db, own=defaults(work_poll_seconds=10 * PATIENCE), name="slow")
    ran = threading.Event()
    runner.add_job("k", lambda job: ran.set())
    runner.start()
    try:
        _ask(db, delay=0.2)
        assert ran.wait(PATIENCE)
        ran.clear()
        _ask(db)
        assert ran.wait(PATIENCE)
    finally:
        runner.stop(PATIENCE)


def test_an_idle_look_is_one_question(db: Database):
    runner = runner_of(db)
    runner.add_job("k", lambda job: None)
    asked: list[str] = []

    def note(conn, cursor, statement, parameters, context, executemany):
        asked.append(statement)

    db.ping()
    sa.event.listen(db.engine, "before_cursor_execute", note)
    assert runner._claim(1.0) == 1.0
    sa.event.remove(db.engine, "before_cursor_execute", note)
    assert [text.split()[0] for text in asked if text != "BEGIN"] == ["SELECT"]


def test_looking_for_work_does_not_read_finished_jobs(db: Database):
    def fill(session):
        rows = [
            {
                "id": f"{n:036}",
                "kind": "k",
                "state": "done" if n % 2000 else "queued",
                "key": None,
                "active_key": None,
                "payload": {},
                "step": "",
                "attempt": 1,
                "max_attempts": 1,
                "fence": 1,
                "owner": "",
                "due_at": None if n % 2000 else 1.0,
                "error": "",
                "created_at": 1.0,
                "updated_at": 1.0,
                "finished_at": 1.0,
            }
            for n in range(6000)
        ]
        session.execute(sa.insert(Job), rows)

    db.write(fill)
    dialect = db.engine.dialect.name
    with db.engine.connect() as connection:
        if dialect != "sqlite":
            update = "ANALYZE TABLE work_jobs" if dialect == "mysql" else "ANALYZE work_jobs"
            connection.execute(sa.text(update))
        seen: list[tuple[str, Any]] = []

        def note(conn, cursor, statement, parameters, context, executemany):
            seen.append((statement, parameters))

        sa.event.listen(db.engine, "before_cursor_execute", note)
        db.read(lambda session: work_jobs.seconds_to_next(session, ["k", "l"]))
        _claim(db, limit=5)
        sa.event.remove(db.engine, "before_cursor_execute", note)
        looks = [(s, p) for s, p in seen if s.startswith("SELECT")]
        assert len(looks) == 2
        explain = "EXPLAIN QUERY PLAN " if dialect == "sqlite" else "EXPLAIN "
        for statement, parameters in looks:
            plan = connection.exec_driver_sql(explain + statement, parameters).all()
            text = " ".join(str(value) for row in plan for value in row)
            assert "ix_work_jobs_due_at_kind" in text, text
            assert "Seq Scan" not in text
            assert "SCAN work_jobs" not in text or "INDEX" in text


def test_an_operator_sees_cancels_and_retries(db: Database):
    first, second = _ask(db, key="x"), _ask(db, payload={"n": 1})
    assert [job.id for job in db.read(work_jobs.listing)] == [second, first]
    assert [job.id for job in db.read(lambda s: work_jobs.listing(s, key="x"))] == [first]
    assert db.read(lambda s: work_jobs.listing(s, state="failed")) == []
    (one, two) = _claim(db)
    assert db.write(lambda s: work_jobs.cancel(s, second))
    assert not db.write(lambda s: work_jobs.cancel(s, second))
    with pytest.raises(work.LeaseLost):
        two.checkpoint("next")
    db.write(lambda s: work_jobs.finish(s, first, "me", one.fence, state="failed", error="e"))
    assert db.read(work_jobs.counts) == {("k", "failed"): 1, ("k", "cancelled"): 1}
    rival = _ask(db, key="x")
    with pytest.raises(errors.Conflict):
        db.write(lambda s: work_jobs.retry(s, first))
    assert db.write(lambda s: work_jobs.cancel(s, rival))
    assert db.write(lambda s: work_jobs.retry(s, first))
    assert not db.write(lambda s: work_jobs.retry(s, first))
    assert _ask(db, key="x") == first
    (run,) = _claim(db)
    assert (run.id, run.attempt) == (first, 1)


def test_old_jobs_are_deleted_and_unfinished_ones_never(db: Database):
    done, failed, waits = _ask(db), _ask(db), _ask(db, delay=60)
    one, two = _claim(db)
    db.write(lambda s: work_jobs.finish(s, one.id, "me", one.fence, state="done"))
    db.write(lambda s: work_jobs.finish(s, two.id, "me", two.fence, state="failed"))
    assert housekeeping.purge(db, keep_done=60, keep_failed=60) == (0, 0)
    assert housekeeping.purge(db, keep_done=0, keep_failed=60) == (1, 0)
    assert db.read(lambda s: work_jobs.show(s, done)) is None
    assert housekeeping.purge(db, keep_done=0, keep_failed=0) == (1, 0)
    assert {job.id for job in db.read(work_jobs.listing)} == {waits}
    assert failed


def test_the_queue_is_measured(db: Database):
    from prometheus_client import REGISTRY

    _ask(db, "measured")
    _ask(db, "measured", delay=60)
    housekeeping.Measure(db, frozenset({"measured", "unknown"}))()

    def value(name: str, **labels: str) -> float | None:
        return REGISTRY.get_sample_value(name, labels)

    assert value("trimaran_work_jobs", kind="measured", state="queued") == 2
    assert value("trimaran_work_jobs", kind="unknown", state="queued") == 0
    age = value("trimaran_work_queue_age_seconds", kind="measured")
    assert age is not None
    assert 0 <= age < PATIENCE


def test_a_waiting_job_can_be_called_sooner_and_a_running_one_not(db: Database):
    id_ = _ask(db, delay=60)
    assert _claim(db) == []
    assert db.write(lambda s: work_jobs.reschedule(s, id_, 0))
    assert [run.id for run in _claim(db)] == [id_]
    due = _job(db, id_).due_at
    assert not db.write(lambda s: work_jobs.reschedule(s, id_, 0))
    assert _job(db, id_).due_at == due
