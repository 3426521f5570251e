"""Tables, types, and the migration tree as files."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.schema import CreateTable

from trimaran import errors
from trimaran.db import migrate
from trimaran.db.clock import db_now
from trimaran.db.models.base import Base, JSONText, LongText

DIALECTS = {
    "mysql": mysql.dialect(),
    "postgresql": postgresql.dialect(),
    "sqlite": sqlite.dialect(),
}


def test_the_tree_has_one_branch_a_hull_and_one_for_the_deck():
    assert set(migrate.heads()) == {"deck", "console", "ec2", "magnum"}


def test_every_revision_is_documented_and_expands_only():
    files = sorted(migrate.location().glob("versions/*/*.py"))
    assert files
    for path in files:
        text = path.read_text()
        assert text.startswith('"""'), path
        assert f'revision = "{path.parent.name}_' in text, path
        # Dropped: only what the same file replaces, through helpers that look first.
        assert not re.search(r"op\.drop_(table|column)", text), path


def test_an_unknown_hull_is_refused():
    with pytest.raises(errors.ConfigError, match="'boat' is none of"):
        migrate.upgrade("sqlite://", "boat")


def test_every_table_has_a_key_and_every_constraint_a_name():
    for table in migrate.all_metadata().tables.values():
        assert table.primary_key.columns, table.name
        for constraint in table.constraints:
            assert constraint.name, (table.name, constraint)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_table_can_be_made(name: str):
    for table in migrate.all_metadata().tables.values():
        made = str(CreateTable(table).compile(dialect=DIALECTS[name]))
        assert f"CREATE TABLE {table.name}" in made.replace("`", "").replace('"', "")
        if name == "mysql":
            assert "ENGINE=InnoDB" in made
            assert "CHARSET=utf8mb4" in made


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mysql", "UNIX_TIMESTAMP(NOW(6))"),
        ("postgresql", "statement_timestamp()"),
        ("sqlite", "julianday('now')"),
    ],
)
def test_the_clock_is_the_databases(name: str, words: str):
    assert words in str(sa.select(db_now()).compile(dialect=DIALECTS[name]))


class _Sample(sa.orm.DeclarativeBase):
    pass


class _Row(_Sample):
    __tablename__ = "sample"
    id: Mapped[int] = mapped_column(primary_key=True)
    plain: Mapped[object] = mapped_column(JSONText(), nullable=True)
    mapping: Mapped[dict[str, object]] = mapped_column(JSONText(dict), nullable=True)
    sequence: Mapped[list[object]] = mapped_column(JSONText(list), nullable=True)
    text: Mapped[str] = mapped_column(LongText(), nullable=True)


def test_json_is_text_and_null_is_empty():
    engine = sa.create_engine("sqlite://")
    _Sample.metadata.create_all(engine)
    with sa.orm.Session(engine) as session:
        session.add(_Row(id=1, plain=None, mapping=None, sequence=None))
        session.add(_Row(id=2, plain=[1], mapping={"a": "ü"}, sequence=["x", None]))
        session.commit()
        session.execute(sa.text("INSERT INTO sample (id, mapping) VALUES (3, '')"))
        session.commit()
        rows = {row.id: row for row in session.scalars(sa.select(_Row))}
        assert (rows[1].plain, rows[1].mapping, rows[1].sequence) == (None, {}, [])
        assert (rows[2].plain, rows[2].mapping, rows[2].sequence) == ([1], {"a": "ü"}, ["x", None])
        assert (rows[3].plain, rows[3].mapping, rows[3].sequence) == (None, {}, [])
        raw = session.execute(sa.text("SELECT mapping, sequence FROM sample WHERE id < 3")).all()
        assert raw == [("{}", "[]"), ('{"a":"\\u00fc"}', '["x",null]')]
    engine.dispose()


@pytest.mark.parametrize(
    ("type_", "on_mysql"),
    [(LongText(), "LONGTEXT"), (JSONText(long=True), "LONGTEXT"), (JSONText(), "TEXT")],
)
def test_long_texts_are_long_everywhere(type_: sa.types.TypeEngine, on_mysql: str):
    assert type_.compile(dialect=DIALECTS["mysql"]) == on_mysql
    assert type_.compile(dialect=DIALECTS["postgresql"]) == "TEXT"
    assert type_.compile(dialect=DIALECTS["sqlite"]) == "TEXT"


def test_the_base_names_what_has_no_name():
    assert Base.metadata.naming_convention["pk"] == "pk_%(table_name)s"
