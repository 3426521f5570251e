"""When a unit of work is run again, with errors as the drivers raise them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from trimaran import errors
from trimaran.db import Database, database
from trimaran.db.database import after_commit
from trimaran.db.faults import Fault, classify
from trimaran.db.models.console import Setting
from trimaran.db.queries import console


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(database.time, "sleep", lambda seconds: None)
    made = Database(f"sqlite:///{tmp_path}/x.sqlite", pool_size=2, pool_timeout=0.2)
    Setting.metadata.create_all(made.engine, [Setting.__table__])
    yield made
    made.dispose()


def _mysql(code: int, text: str = "x") -> exc.DBAPIError:
    return exc.OperationalError("SELECT 1", {}, pymysql.err.OperationalError(code, text))


def _postgresql(state: str) -> exc.DBAPIError:
    return exc.OperationalError("SELECT 1", {}, psycopg.errors.lookup(state)("x"))


def _sqlite(code: int) -> exc.DBAPIError:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    return exc.OperationalError("SELECT 1", {}, error)


def _words(error: Exception) -> str:
    orig = getattr(error, "orig", error)
    code = getattr(orig, "sqlite_errorcode", None) or getattr(orig, "sqlstate", None)
    return f"{type(orig).__module__.split('.')[0]}-{code or orig}"


AGAIN = [
    _mysql(1213),
    _mysql(1205),
    _mysql(1020),
    _mysql(1180, "Got error 149 during COMMIT"),
    _mysql(1047, "WSREP has not yet prepared node for application use"),
    _mysql(1305, "SAVEPOINT sa_savepoint_1 does not exist"),
    _mysql(2006),
    _mysql(2013),
    _mysql(2055),
    _mysql(1927),
    _mysql(1290, "--read-only"),
    _postgresql("40001"),
    _postgresql("40P01"),
    _postgresql("57P01"),
    _postgresql("08006"),
    _sqlite(sqlite3.SQLITE_BUSY),
    _sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT),
]


@pytest.mark.parametrize("error", AGAIN, ids=_words)
def test_conflicts_and_lost_connections_run_the_unit_again(db: Database, error: Exception):
    runs: list[int] = []

    def unit(session: Session) -> str:
        runs.append(1)
        console.set_setting(session, f"run {len(runs)}", 1)
        if len(runs) < 3:
            raise error
        return "done"

    assert db.write(unit) == "done"
    assert db.read(console.list_settings) == {"run 3": 1}


@pytest.mark.parametrize(
    "error",
    [_mysql(1062), _mysql(1064), _mysql(1305, "PROCEDURE x"), _postgresql("23505"), ValueError()],
    ids=_words,
)
def test_other_errors_are_the_callers(db: Database, error: Exception):
    runs: list[int] = []

    def unit(session: Session) -> None:
        runs.append(1)
        raise error

    with pytest.raises(type(error)):
        db.write(unit)
    assert len(runs) == 1


def test_a_conflict_at_commit_runs_the_unit_again(db: Database, monkeypatch: pytest.MonkeyPatch):
    # Galera certifies at COMMIT and then answers with a deadlock.
    commit, commits = Session.commit, []

    def fails_once(session: Session) -> None:
        commits.append(1)
        if len(commits) == 1:
            raise _mysql(1213)
        commit(session)

    monkeypatch.setattr(Session, "commit", fails_once)
    runs: list[int] = []

    def unit(session: Session) -> None:
        runs.append(1)
        console.set_setting(session, "n", len(runs))

    db.write(unit)
    assert db.read(console.list_settings) == {"n": 2}


def test_a_conflict_without_end_is_unavailable(db: Database):
    runs: list[int] = []

    def unit(session: Session) -> None:
        runs.append(1)
        raise _mysql(1213, "hush")

    with pytest.raises(errors.Unavailable) as caught:
        db.write(unit, attempts=4)
    assert len(runs) == 4
    assert caught.value.service == "database"
    assert "hush" not in str(caught.value)


def test_what_only_an_operator_can_mend_is_not_tried_again(db: Database):
    runs: list[int] = []

    def unit(session: Session) -> None:
        runs.append(1)
        raise _mysql(1146, "Table 'x.y' doesn't exist")

    with pytest.raises(errors.Unavailable):
        db.write(unit)
    assert len(runs) == 1


def test_a_full_pool_is_unavailable_after_its_timeout(db: Database):
    inside, over = threading.Barrier(3, timeout=60), threading.Event()

    def occupy() -> None:
        def unit(session: Session) -> None:
            inside.wait()
            over.wait(60)

        db.read(unit)

    threads = [threading.Thread(target=occupy) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    with pytest.raises(errors.Unavailable):
        db.read(console.list_settings)
    over.set()
    for thread in threads:
        thread.join(60)
    assert db.read(console.list_settings) == {}


def test_nothing_is_kept_of_a_unit_that_fails(db: Database):
    def unit(session: Session) -> None:
        console.set_setting(session, "a", 1)
        raise errors.Conflict

    with pytest.raises(errors.Conflict):
        db.write(unit)
    assert db.read(console.list_settings) == {}


def test_a_rehearsal_leaves_nothing_but_its_result(db: Database):
    def unit(session: Session) -> Setting:
        console.set_setting(session, "a", 1)
        setting = console.get_setting(session, "a")
        assert setting is not None
        return setting

    assert db.rehearse(unit).value == 1
    assert db.read(console.list_settings) == {}


def test_a_reading_unit_cannot_write(db: Database):
    with pytest.raises(RuntimeError, match=r"use Database\.write"):
        db.read(lambda session: console.set_setting(session, "a", 1))

    def changes_an_object(session: Session) -> None:
        session.add(Setting(key="a", value=1))
        session.flush()

    with pytest.raises(RuntimeError, match=r"use Database\.write"):
        db.read(changes_an_object)
    assert db.read(console.list_settings) == {}


@pytest.mark.parametrize("outer", ["read", "write"])
@pytest.mark.parametrize("inner", ["read", "write"])
def test_a_unit_inside_a_unit_is_a_mistake(db: Database, outer: str, inner: str):
    with pytest.raises(RuntimeError, match="inside a unit"):
        getattr(db, outer)(lambda session: getattr(db, inner)(lambda s: None))
    assert getattr(db, inner)(lambda session: 1) == 1


def test_what_a_unit_returns_stays_usable(db: Database):
    db.write(lambda session: console.set_setting(session, "a", {"b": 1}))
    setting = db.read(lambda session: console.get_setting(session, "a"))
    assert setting is not None
    assert setting.value == {"b": 1}


def test_what_waits_for_the_commit_is_called_once_and_only_then(db: Database):
    called: list[str] = []
    runs: list[int] = []

    def unit(session: Session) -> None:
        runs.append(1)
        after_commit(session, lambda: called.append(f"run {len(runs)}"))
        console.set_setting(session, "a", 1)
        assert called == []
        if len(runs) == 1:
            raise _mysql(1213)

    db.write(unit)
    assert called == ["run 2"]

    def fails(session: Session) -> None:
        after_commit(session, lambda: called.append("never"))
        raise errors.Conflict

    with pytest.raises(errors.Conflict):
        db.write(fails)
    assert called == ["run 2"]


def test_values_are_not_in_error_texts(db: Database):
    def unit(session: Session) -> Any:
        return session.execute(sa.text("SELECT :secret FROM nowhere"), {"secret": "hush"})

    with pytest.raises(errors.Unavailable) as caught:
        db.read(unit)
    assert "hush" not in repr(caught.value.__cause__)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("connection refused", Fault.DOWN),
        ('FATAL:  password authentication failed for user "x"', Fault.REFUSED),
        ('FATAL:  database "x" does not exist', Fault.REFUSED),
        ("FATAL:  the database system is starting up", Fault.DOWN),
    ],
)
def test_what_postgresql_says_while_connecting(text: str, fault: Fault):
    error = exc.OperationalError("", {}, psycopg.OperationalError(text))
    assert classify(error, connecting=True) is fault
