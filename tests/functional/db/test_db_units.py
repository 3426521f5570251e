"""Units of work against real servers: conflicts, lost connections, a server that is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tests.support.tcp_proxy import Proxy
from trimaran import errors
from trimaran.db import Database
from trimaran.db.clock import db_now
from trimaran.db.models.console import Setting
from trimaran.db.queries import console

#: Seconds for what takes a busy machine long, and never fails to come.
PATIENCE = 60.0


@pytest.fixture
def open_db() -> Iterator[Callable[..., Database]]:
    made: list[Database] = []

    def make(url: str, **options) -> Database:
        made.append(Database(url, **options))
        return made[-1]

    yield make
    for database in made:
        database.dispose()


def _together(*functions: Callable[[], None]) -> None:
    """Runs functions in threads and raises what one of them raised."""
    failures: list[BaseException] = []

    def call(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def _increase(session: Session, key: str) -> None:
    row = session.scalars(sa.select(Setting).where(Setting.key == key).with_for_update()).one()
    row.value = row.value + 1


def test_a_deadlock_runs_the_whole_unit_again(server_url: str, open_db):
    db = open_db(server_url, pool_size=2)
    db.write(lambda session: [console.set_setting(session, key, 0) for key in "ab"])
    both_hold_one = threading.Barrier(2, timeout=PATIENCE)
    runs: list[str] = []

    def crosswise(first: str, second: str) -> Callable[[], None]:
        met = False

        def unit(session: Session) -> None:
            nonlocal met
            runs.append(first)
            _increase(session, first)
            session.flush()
            if not met:
                met = True
                both_hold_one.wait()
            _increase(session, second)

        return lambda: db.write(unit)

    _together(crosswise("a", "b"), crosswise("b", "a"))
    # The one who was not the victim may be slow to take what became free, and they meet again.
    assert len(runs) >= 3, "one of the two was the victim"
    assert db.read(console.list_settings) == {"a": 2, "b": 2}


def test_no_transaction_outlives_its_unit(url: str, open_db):
    # The pool does not reset connections, so each unit must leave its own clean.
    db = open_db(url, pool_size=1)
    ended: list[str] = []
    sa.event.listen(db.engine, "rollback", lambda _: ended.append("rollback"))
    sa.event.listen(db.engine, "commit", lambda _: ended.append("commit"))
    db.write(lambda session: console.set_setting(session, "a", 1))

    def fails(session: Session) -> None:
        console.set_setting(session, "a", 2)
        session.flush()
        raise ValueError("not the database's fault")

    with pytest.raises(ValueError, match="fault"):
        db.write(fails)
    assert db.read(console.list_settings) == {"a": 1}
    assert ended == ["commit", "rollback", "rollback"]
    # Nothing of the one connection is in another one's way.
    other = open_db(url, pool_size=1)
    other.write(lambda session: console.set_setting(session, "a", 3))
    assert db.read(console.list_settings) == {"a": 3}


def _kill(url: str, session: Session) -> None:
    """Ends the session's connection from outside, as an administrator does."""
    mysql = session.get_bind().dialect.name == "mysql"
    which = session.scalar(
        sa.text("SELECT connection_id()" if mysql else "SELECT pg_backend_pid()")
    )
    other = sa.create_engine(url, poolclass=sa.pool.NullPool, isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        command = f"KILL {which}" if mysql else f"SELECT pg_terminate_backend({which})"
        connection.execute(sa.text(command))
        gone = sa.text(
            "SELECT count(*) FROM information_schema.processlist WHERE id = :id"
            if mysql
            else "SELECT count(*) FROM pg_stat_activity WHERE pid = :id"
        )
        deadline = time.monotonic() + PATIENCE
        while connection.scalar(gone, {"id": which}):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("how", ["read", "write"])
def test_a_connection_killed_in_the_middle_runs_the_unit_again(server_url: str, open_db, how: str):
    db = open_db(server_url, pool_size=2)
    db.write(lambda session: console.set_setting(session, "a", 0))
    runs = []

    def unit(session: Session):
        runs.append(1)
        if how == "write":
            _increase(session, "a")
            session.flush()
        if len(runs) == 1:
            _kill(server_url, session)
        return console.list_settings(session)

    expected = {"a": 1 if how == "write" else 0}
    assert getattr(db, how)(unit) == expected
    assert len(runs) == 2
    assert db.read(console.list_settings) == expected


def test_connections_killed_in_the_pool_are_not_noticed(server_url: str, open_db):
    db = open_db(server_url, pool_size=3)
    together = threading.Barrier(3, timeout=PATIENCE)
    ids: list[int] = []
    mysql = db.engine.dialect.name == "mysql"
    own = sa.text("SELECT connection_id()" if mysql else "SELECT pg_backend_pid()")

    def open_one() -> None:
        def unit(session: Session) -> None:
            ids.append(session.scalar(own))
            together.wait()

        db.read(unit)

    _together(open_one, open_one, open_one)
    other = sa.create_engine(server_url, poolclass=sa.pool.NullPool, isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        for id_ in ids:
            command = f"KILL {id_}" if mysql else f"SELECT pg_terminate_backend({id_})"
            connection.execute(sa.text(command))
    for n in range(3):
        db.write(lambda session, n=n: console.set_setting(session, "n", n))
    assert db.read(console.list_settings) == {"n": 2}


def test_one_connection_serves_eight_threads(url: str, open_db):
    db = open_db(url, pool_size=1)
    db.write(lambda session: console.set_setting(session, "n", 0))

    def often() -> None:
        for _ in range(10):
            db.write(lambda session: _increase(session, "n"))
            db.read(console.list_settings)

    _together(*[often] * 8)
    assert db.read(console.list_settings) == {"n": 80}


def test_many_connections_write_the_same_row(url: str, open_db):
    db = open_db(url, pool_size=6)
    db.write(lambda session: console.set_setting(session, "n", 0))

    def often() -> None:
        for _ in range(10):
            db.write(lambda session: _increase(session, "n"))

    _together(*[often] * 6)
    assert db.read(console.list_settings) == {"n": 60}


def test_a_unit_inside_a_unit_is_refused_and_the_connection_given_back(url: str, open_db):
    db = open_db(url, pool_size=1, pool_timeout=1)
    for outer in (db.read, db.write):
        with pytest.raises(RuntimeError, match="inside a unit"):
            outer(lambda session: db.read(console.list_settings))
    assert db.read(console.list_settings) == {}


def test_a_server_that_is_away_is_said_soon_and_found_again(server_url: str, open_db):
    server = sa.make_url(server_url)
    with Proxy(server.host, server.port) as proxy:
        through = server.set(port=proxy.port).render_as_string(hide_password=False)
        db = open_db(through, pool_size=2)
        db.ping()
        proxy.cut()
        begun = time.monotonic()
        with pytest.raises(errors.Unavailable) as caught:
            db.ping()
        assert caught.value.service == "database"
        # Two seconds, and what a busy machine adds; a full pool is waited for longer.
        assert time.monotonic() - begun < 20
        proxy.mend()
        db.ping()


def test_a_server_that_comes_back_meanwhile_is_no_failure(
    server_url: str, open_db, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("trimaran.db.database.DOWN_WINDOW", PATIENCE)
    server = sa.make_url(server_url)
    with Proxy(server.host, server.port) as proxy:
        through = server.set(port=proxy.port).render_as_string(hide_password=False)
        db = open_db(through, pool_size=2)
        db.ping()
        proxy.cut()
        later = threading.Timer(0.3, proxy.mend)
        later.start()
        db.write(lambda session: console.set_setting(session, "a", 1))
        later.join()
        assert db.read(console.list_settings) == {"a": 1}


def test_a_wrong_password_is_unavailable_and_never_shown(
    server_url: str, open_db, caplog: pytest.LogCaptureFixture
):
    wrong = sa.make_url(server_url).set(username="nobody", password="hush%hush")
    db = open_db(wrong.render_as_string(hide_password=False))
    with pytest.raises(errors.Unavailable) as caught:
        db.ping()
    assert "given up after 1 runs" in caplog.text, "waiting does not help, so nobody waits"
    shown = caplog.text + str(caught.value) + str(caught.value.__cause__) + db.url_safe
    assert "hush" not in shown
    assert "nobody" in caplog.text


def test_a_schema_that_is_not_there_is_unavailable_and_the_log_says_what_to_do(
    db_url: str, open_db, caplog: pytest.LogCaptureFixture
):
    db = open_db(db_url)
    with pytest.raises(errors.Unavailable):
        db.read(console.list_settings)
    assert "trimaran db upgrade" in caplog.text


def test_passwords_with_special_characters_work(mariadb_url: str, open_db, migrated):
    migrated(mariadb_url, "console")
    server = sa.make_url(mariadb_url)
    password = "p%40@:/%s?#é"
    name = f"odd_{server.database[-8:]}"
    admin = sa.create_engine(mariadb_url, poolclass=sa.pool.NullPool, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE USER {name} IDENTIFIED BY %s", (password,))
        try:
            connection.exec_driver_sql(f"GRANT ALL ON {server.database}.* TO {name}")
            url = server.set(username=name, password=password)
            db = open_db(url.render_as_string(hide_password=False))
            db.write(lambda session: console.set_setting(session, "a", 1))
        finally:
            connection.exec_driver_sql(f"DROP USER {name}")


def test_times_are_the_databases_and_have_fractions(url: str, open_db):
    db = open_db(url)
    read = [db.read(lambda session: session.scalar(sa.select(db_now()))) for _ in range(5)]
    assert all(isinstance(value, float) for value in read)
    assert read == sorted(read)
    assert abs(read[0] - time.time()) < PATIENCE
    assert any(value % 1 for value in read)


def test_text_of_all_the_world_survives(url: str, open_db):
    db = open_db(url)
    value = {"text": "naïve Ελλάδα 日本 🚢", "nested": [None, True, 1.5, ""]}
    db.write(lambda session: console.set_setting(session, "k", value))
    assert db.read(console.list_settings) == {"k": value}
