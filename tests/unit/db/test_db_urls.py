"""From an operator's URL to an engine."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from trimaran.db import Database, urls
from trimaran.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("mysql://u:p@h/d", "mysql+pymysql"),
        ("mysql+pymysql://u:p@h/d?charset=utf8", "mysql+pymysql"),
        ("mysql+mysqldb://u:p@h/d", "mysql+pymysql"),
        ("mariadb+mariadbconnector://u:p@h/d", "mysql+pymysql"),
        ("postgresql://u:p@h/d", "postgresql+psycopg"),
        ("postgresql+psycopg2://u:p@h/d", "postgresql+psycopg"),
        ("postgres://u:p@h/d", "postgresql+psycopg"),
        ("sqlite://", "sqlite+pysqlite"),
    ],
)
def test_upstream_urls_get_the_driver_that_we_ship(given: str, driver: str):
    assert urls.parse(given).drivername == driver


@pytest.mark.parametrize("password", ["p%40ss", "100%", "%(x)s", "a%25b", "%zz"])
def test_percent_signs_are_no_danger(password: str):
    parsed = urls.parse(f"mysql://u:{password}@h/d")
    assert parsed.host == "h"
    Database(f"mysql://u:{password}@h/d").dispose()


@pytest.mark.parametrize("url", ["", "nonsense", "oracle://u:hush@h/d", "mysql//u:hush@h"])
def test_what_cannot_be_used_is_one_sentence_without_the_password(url: str):
    with pytest.raises(ConfigError) as caught:
        urls.parse(url)
    assert "hush" not in str(caught.value)
    assert "mysql+pymysql://" in str(caught.value)


def test_a_missing_directory_is_named(tmp_path: Path):
    missing = tmp_path / "not" / "there"
    with pytest.raises(ConfigError, match=f"the directory {missing} does not exist"):
        Database(f"sqlite:///{missing}/x.sqlite")


def test_a_directory_in_the_files_place_is_told(tmp_path: Path):
    with pytest.raises(ConfigError, match="must be writable"):
        Database(f"sqlite:///{tmp_path}")


def test_the_password_is_not_in_the_safe_url():
    db = Database("postgresql://u:hush@h:5/d")
    assert db.url_safe == "postgresql+psycopg://u:***@h:5/d"
    assert "hush" not in repr(db.engine)


def test_an_sqlite_file_takes_readers_beside_a_writer(tmp_path: Path):
    db = Database(f"sqlite:///{tmp_path}/x.sqlite", pool_size=2)
    with db.engine.connect() as connection:
        for pragma, value in [
            ("journal_mode", "wal"),
            ("busy_timeout", 5000),
            ("foreign_keys", 1),
            ("synchronous", 2),
        ]:
            assert connection.execute(sa.text(f"PRAGMA {pragma}")).scalar() == value
    db.dispose()


def test_a_database_in_memory_is_one_for_all_threads():
    db = Database("sqlite://", pool_size=20)
    db.write(lambda session: session.execute(sa.text("CREATE TABLE t (a)")))
    db.write(lambda session: session.execute(sa.text("INSERT INTO t VALUES (1)")))
    assert db.read(lambda session: session.scalar(sa.text("SELECT a FROM t"))) == 1
    db.dispose()


class _Cursor:
    """One that finds the file taken a few times, then free."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.left, self.asked = code, times, 0

    def execute(self, statement: str) -> None:
        assert statement == "PRAGMA journal_mode=WAL"
        self.asked += 1
        if self.left:
            self.left -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error


def test_those_who_open_a_new_file_at_once_wait_for_each_other():
    cursor = _Cursor(sqlite3.SQLITE_BUSY, 3)
    urls._write_ahead(cursor)  # type: ignore[arg-type]
    assert cursor.asked == 4


def test_what_is_no_matter_of_waiting_is_told_at_once():
    cursor = _Cursor(sqlite3.SQLITE_READONLY, 1)
    with pytest.raises(sqlite3.OperationalError):
        urls._write_ahead(cursor)  # type: ignore[arg-type]
    assert cursor.asked == 1


def test_a_file_that_stays_taken_is_told_in_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(urls, "CONNECT_TIMEOUT", 0)
    with pytest.raises(sqlite3.OperationalError):
        urls._write_ahead(_Cursor(sqlite3.SQLITE_BUSY, 10**6))  # type: ignore[arg-type]
