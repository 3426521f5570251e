"""Migrations on each dialect: from nothing, from an upstream database, at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from click.testing import CliRunner

from tests.support import work_processes
from tests.support.processes import PATIENCE, Fleet
from trimaran import errors
from trimaran.cli.db import db as db_command
from trimaran.db import Database, migrate, migration_lock, urls
from trimaran.db.queries import console

HULLS = ("console", "ec2", "magnum", "all")


def _engine(url: str) -> sa.Engine:
    return sa.create_engine(url, poolclass=sa.pool.NullPool)


def _sql(url: str, *statements: str) -> None:
    engine = _engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def _differences(url: str, hull: str) -> list[object]:
    """What autogenerate would still want to change in the hull's tables."""
    metadata = migrate.all_metadata()
    with _engine(url).connect() as connection:
        names = set(sa.inspect(connection).get_table_names())
        context = MigrationContext.configure(
            connection,
            opts={
                "include_object": lambda obj, name, kind, reflected, compared: (
                    kind != "table" or name in metadata.tables
                ),
            },
        )
        found = compare_metadata(context, metadata)
    tables = {table for table in metadata.tables if table in names or hull == "all"}
    return [
        difference
        for difference in found
        if not (
            isinstance(difference, tuple)
            and difference[0] == "add_table"
            and difference[1].name not in tables
        )
        and not _of_other_table(difference, tables)
    ]


def _of_other_table(difference: object, tables: set[str]) -> bool:
    if isinstance(difference, tuple) and difference[0] == "add_index":
        return difference[1].table.name not in tables
    return False


@pytest.mark.parametrize("hull", HULLS)
def test_a_fresh_database_gets_what_the_models_say(db_url: str, hull: str):
    assert not migrate.check(db_url, hull).ok
    migrate.upgrade(db_url, hull)
    assert migrate.check(db_url, hull).ok
    assert _differences(db_url, hull) == []
    heads = migrate.heads()
    assert migrate.current(db_url) == sorted(heads[branch] for branch in migrate.HULLS[hull])
    assert migrate.upgrade(db_url, hull) == migrate.current(db_url)


def test_every_table_has_a_primary_key(db_url: str):
    migrate.upgrade(db_url, "all")
    look = sa.inspect(_engine(db_url))
    without = [
        table
        for table in look.get_table_names()
        if not look.get_pk_constraint(table)["constrained_columns"]
    ]
    assert without == []


@pytest.mark.parametrize("keyed", [False, True], ids=["skyline-000", "skyline-001"])
def test_a_skyline_database_is_adopted_with_its_rows(db_url: str, keyed: bool):
    key = '"key"' if not db_url.startswith("mysql") else "`key`"
    _sql(
        db_url,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        f"INSERT INTO alembic_version VALUES ('00{int(keyed)}')",
        "CREATE TABLE revoked_token (uuid VARCHAR(128) NOT NULL, expire INTEGER NOT NULL"
        + (", CONSTRAINT pk_revoked_token PRIMARY KEY (uuid))" if keyed else ")"),
        f"CREATE TABLE settings ({key} VARCHAR(128) NOT NULL, value JSON"
        + (f", CONSTRAINT pk_settings PRIMARY KEY ({key}))" if keyed else ")"),
        "INSERT INTO revoked_token VALUES ('u1', 100), ('u2', 200)",
        "INSERT INTO settings VALUES ('flavor_families', '[{\"architecture\": \"x86\"}]')",
    )
    if not keyed:
        _sql(
            db_url,
            "CREATE INDEX ix_revoked_token_uuid ON revoked_token (uuid)",
            f"CREATE INDEX ix_settings_key ON settings ({key})",
            "INSERT INTO revoked_token VALUES ('u1', 150)",
            "INSERT INTO settings VALUES ('gpu_models', '[]'), ('gpu_models', '[]')",
        )
    migrate.upgrade(db_url, "console")
    assert _differences(db_url, "console") == []
    db = Database(db_url)
    try:
        assert db.read(lambda s: [console.is_revoked(s, u) for u in ("u1", "u2", "u3")]) == [
            True,
            True,
            False,
        ]
        settings = db.read(console.list_settings)
        assert settings["flavor_families"] == [{"architecture": "x86"}]
        assert set(settings) == {"flavor_families"} | (set() if keyed else {"gpu_models"})
        db.write(lambda s: console.revoke(s, "u1", 300))
        db.write(lambda s: console.set_setting(s, "gpu_models", ["a"]))
    finally:
        db.dispose()
    with _engine(db_url).connect() as connection:
        # Skyline's own table is left alone: the way back stays open.
        found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
        assert found == f"00{int(keyed)}"


def test_a_migration_that_died_half_way_is_finished_by_the_next(db_url: str):
    migrate.upgrade(db_url, "all")
    # As MySQL leaves it: tables made, the version not yet written.
    _sql(db_url, "DELETE FROM trimaran_version", "DROP TABLE work_leases")
    migrate.upgrade(db_url, "all")
    assert migrate.check(db_url, "all").ok
    assert _differences(db_url, "all") == []


def test_processes_that_migrate_at_the_same_time(db_url: str):
    with Fleet() as fleet:
        children = [fleet.start(work_processes.upgrade, db_url, "all") for _ in range(4)]
        fleet.until(lambda events: len(fleet.named("ready")) == 4)
        for child in children:
            child.say("go")
        done = fleet.until(lambda events: len(fleet.named("done")) == 4 and fleet.named("done"))
    assert {tuple(event.data["heads"]) for event in done} == {tuple(migrate.current(db_url))}
    assert _differences(db_url, "all") == []


def test_a_process_killed_while_it_migrates_does_not_block_the_next(
    db_url: str, migrated: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(migration_lock, "TTL", 1.0)
    with Fleet() as fleet:
        child = fleet.start(work_processes.upgrade_and_hang, db_url, 1.0)
        fleet.until(lambda events: fleet.named("inside"))
        child.kill()
        migrated(db_url, "all")
    assert migrate.check(db_url, "all").ok


def test_another_s_migration_is_waited_for_longer_than_a_table_s_lock(
    db_url: str, migrated: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(migration_lock, "TTL", 1.0)
    kind = sa.make_url(db_url).get_backend_name()
    if limit := {"sqlite": "CONNECT_TIMEOUT", "postgresql": "LOCK_TIMEOUT"}.get(kind):
        monkeypatch.setattr(urls, limit, 1)
    with Fleet() as fleet, ThreadPoolExecutor(1) as pool:
        child = fleet.start(work_processes.upgrade_and_hang, db_url, 1.0)
        fleet.until(lambda events: fleet.named("inside"))
        second = pool.submit(migrated, db_url, "console")
        with pytest.raises(TimeoutError):
            second.result(2.5)
        child.kill()
        second.result(PATIENCE)
    assert migrate.check(db_url, "console").ok


def test_a_newer_database_is_told_and_left_alone(db_url: str):
    migrate.upgrade(db_url, "console")
    _sql(db_url, "UPDATE trimaran_version SET version_num='later' WHERE version_num LIKE 'con%'")
    result = migrate.check(db_url, "console")
    assert (result.ok, result.newer) == (False, True)
    with pytest.raises(errors.ConfigError, match="cannot be migrated by this release"):
        migrate.upgrade(db_url, "console")
    assert "later" in migrate.current(db_url)


def test_the_command_and_its_exit_codes(db_url: str):
    def run(*args: str) -> tuple[int, str]:
        result = CliRunner().invoke(db_command, [*args, "--url", db_url])
        return result.exit_code, result.output

    assert run("check", "console")[0] == 2
    assert "trimaran db upgrade console" in run("check", "console")[1]
    assert "not migrated yet" in run("current")[1]
    code, output = run("upgrade", "console")
    assert (code, "console" in output) == (0, True)
    assert run("check", "console")[0] == 0
    assert run("check", "all")[0] == 2
    assert "deck_0001" in run("current")[1]
    assert sa.make_url(db_url).password is None or "trimaran:trimaran" not in output


def test_the_command_when_nothing_answers(free_port):
    url = f"mysql://root:hush@127.0.0.1:{free_port()}/x"
    result = CliRunner().invoke(db_command, ["check", "--url", url])
    assert result.exit_code == 1
    assert "does not answer" in result.output
    assert "hush" not in result.output


def test_a_downgraded_sqlite_journal_is_put_right(tmp_path):
    path = tmp_path / "old.sqlite"
    sqlite3.connect(path).execute("CREATE TABLE other (a)").connection.close()
    migrate.upgrade(f"sqlite:///{path}", "console")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
