"""Items, tags and client tokens on each database: what concurrent processes agree on."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from trimaran.db import Database, migrate
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tags
from trimaran.db.queries import ec2_tokens as tokens
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.errors import Conflict

MINE = "a" * 32
THEIRS = "b" * 32


@pytest.fixture
def database(db_url: str) -> Iterator[Database]:
    migrate.upgrade(db_url, "ec2")
    made = Database(db_url, pool_size=12)
    yield made
    made.dispose()


def _server(os_id: str, project: str | None = MINE, **data: object) -> NewItem:
    return NewItem("i", os_id, project, data)


def _add(database: Database, *wanted: NewItem) -> list[queries.Item]:
    return database.write(lambda s: queries.add_items(s, list(wanted), ids.mint))


def test_an_item_comes_back_as_it_was_stored(database: Database) -> None:
    os_id = str(uuid.uuid4())
    data = {"reservation_id": "r-1", "launch_index": 0, "name": "ünïcode 🦊"}
    [made] = _add(database, NewItem("i", os_id, MINE, data, vpc_id="vpc-00000001"))
    [read] = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert (read.id, read.os_id, read.vpc_id, read.data) == (made.id, os_id, "vpc-00000001", data)
    assert ids.is_id(read.id, ["i"])
    assert read.dead_for is None
    assert 0 <= (read.age or 0) < 60
    assert database.read(lambda s: queries.items_of(s, THEIRS, ["i"])) == []
    assert database.read(lambda s: queries.items_of(s, MINE, ["ami"])) == []
    assert database.read(lambda s: queries.items_by_ids(s, THEIRS, [made.id])) == []


def test_many_writers_of_the_same_objects_agree_on_every_id(database: Database) -> None:
    os_ids = [str(uuid.uuid4()) for _ in range(25)]
    start = threading.Barrier(10)
    seen: list[list[str]] = []
    failures: list[BaseException] = []

    def writer(turn: int) -> None:
        order = os_ids[turn:] + os_ids[:turn]
        try:
            start.wait(30)
            made = _add(database, *(_server(os_id) for os_id in order))
            by_os_id = {item.os_id: item.id for item in made}
            seen.append([by_os_id[os_id] for os_id in os_ids])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=writer, args=(turn,)) for turn in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(seen) == 10
    assert all(answer == seen[0] for answer in seen)
    stored = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert sorted(item.id for item in stored) == sorted(seen[0])


def test_an_id_that_is_taken_is_minted_again(database: Database) -> None:
    [first] = _add(database, _server(str(uuid.uuid4())))
    offered = iter([first.id, first.id, "i-0000beef"])
    wanted = [_server(str(uuid.uuid4()))]
    [second] = database.write(lambda s: queries.add_items(s, wanted, lambda kind: next(offered)))
    assert second.id == "i-0000beef"
    assert second.os_id == wanted[0].os_id


def test_a_chosen_id_that_is_taken_is_refused_and_repeating_is_harmless(
    database: Database,
) -> None:
    pending = NewItem("i", None, MINE, {"reservation_id": "r-x"}, id="i-00000001")
    [made] = _add(database, pending)
    [again] = _add(database, pending)
    assert made.id == again.id == "i-00000001"
    with pytest.raises(Conflict):
        _add(database, NewItem("i", None, THEIRS, {"reservation_id": "r-y"}, id="i-00000001"))


def test_a_mapping_is_adopted_with_its_id_by_its_owner(database: Database) -> None:
    os_id = str(uuid.uuid4())
    [mapping] = _add(database, NewItem("ami", os_id, None))
    [theirs] = _add(database, NewItem("ami", os_id, None))
    assert theirs.id == mapping.id
    [adopted] = _add(database, NewItem("ami", os_id, MINE, {"description": "d"}, is_public=True))
    assert adopted.id == mapping.id
    [read] = database.read(lambda s: queries.items_of(s, MINE, ["ami"]))
    assert (read.project_id, read.data, read.is_public) == (MINE, {"description": "d"}, True)
    [mapped] = _add(database, NewItem("ami", os_id, None))
    assert mapped.project_id == MINE


def test_an_object_that_moved_is_taken_over_without_its_tags(database: Database) -> None:
    os_id = str(uuid.uuid4())
    [before] = _add(database, NewItem("vol", os_id, THEIRS, {"secret": "theirs"}))
    database.write(lambda s: tags.set_tags(s, THEIRS, [tags.Tag(before.id, "k", "v")]))
    [after] = _add(database, NewItem("vol", os_id, MINE))
    assert (after.id, after.project_id, after.data) == (before.id, MINE, {})
    assert database.read(lambda s: queries.items_by_ids(s, THEIRS, [before.id])) == []
    assert database.read(lambda s: tags.tags_of(s, THEIRS)) == []


def test_another_kind_of_the_same_object_is_refused_unless_alike(database: Database) -> None:
    os_id = str(uuid.uuid4())
    [image] = _add(database, NewItem("ami", os_id, MINE))
    [kernel] = _add(database, NewItem("aki", os_id, MINE, alike=("ami", "ari")))
    assert kernel.id == image.id
    with pytest.raises(Conflict):
        _add(database, NewItem("vol", os_id, MINE))


def test_an_os_id_is_set_once(database: Database) -> None:
    _add(database, NewItem("i", None, MINE, {"a": 1}, id="i-00000001"))
    first, second = str(uuid.uuid4()), str(uuid.uuid4())

    def link(os_id: str) -> bool:
        return database.write(lambda s: queries.update_item(s, MINE, "i-00000001", os_id=os_id))

    assert link(first) is True
    assert link(first) is True
    assert link(second) is False
    [item] = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert item.os_id == first


def test_an_update_with_an_old_version_changes_nothing(database: Database) -> None:
    [item] = _add(database, _server(str(uuid.uuid4()), a=1))

    def change(version: int, value: int, project: str = MINE) -> bool:
        return database.write(
            lambda s: queries.update_item(s, project, item.id, version=version, data={"a": value})
        )

    assert change(item.version, 2) is True
    assert change(item.version, 3) is False
    assert change(item.version + 1, 4, THEIRS) is False
    [read] = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert (read.data, read.version) == ({"a": 2}, item.version + 1)


def test_tombstones_keep_their_tags_and_can_be_revived(database: Database) -> None:
    [item] = _add(database, _server(str(uuid.uuid4())))
    database.write(lambda s: tags.set_tags(s, MINE, [tags.Tag(item.id, "Name", "x")]))
    assert database.write(lambda s: queries.bury_items(s, MINE, [item.id])) == 1
    assert database.write(lambda s: queries.bury_items(s, MINE, [item.id])) == 0
    [dead] = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert dead.dead_for is not None
    assert 0 <= dead.dead_for < 60
    assert len(database.read(lambda s: tags.tags_of(s, MINE, ["i"]))) == 1
    database.write(lambda s: queries.update_item(s, MINE, item.id, revive=True))
    [alive] = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert alive.dead_for is None
    assert database.write(lambda s: queries.delete_items(s, THEIRS, [item.id])) == 0
    assert database.write(lambda s: queries.delete_items(s, MINE, [item.id])) == 1
    assert database.read(lambda s: tags.tags_of(s, MINE)) == []


def test_tags_are_exact_and_belong_to_their_project(database: Database) -> None:
    rows = [
        tags.Tag("i-1", "Name", "a"),
        tags.Tag("i-1", "name", "b"),
        tags.Tag("i-1", "emoji 🦊", "<&\"'>"),
        tags.Tag("igw-1", "Name", "c"),
    ]
    database.write(lambda s: tags.set_tags(s, MINE, rows))
    database.write(lambda s: tags.set_tags(s, THEIRS, [tags.Tag("i-1", "Name", "theirs")]))
    database.write(lambda s: tags.set_tags(s, MINE, [tags.Tag("i-1", "Name", "new")]))
    mine = database.read(lambda s: tags.tags_of(s, MINE, ["i"]))
    assert {(tag.key, tag.value) for tag in mine} == {
        ("Name", "new"),
        ("name", "b"),
        ("emoji 🦊", "<&\"'>"),
    }
    assert len(database.read(lambda s: tags.tags_of(s, MINE))) == 4

    def delete(*pairs: tuple[str, str | None]) -> int:
        return database.write(lambda s: tags.delete_tags(s, MINE, ["i-1"], list(pairs)))

    assert delete(("Name", "other"), ("name", "")) == 0
    assert delete(("name", "b")) == 1
    assert delete(("Name", None)) == 1
    assert database.write(lambda s: tags.delete_tags(s, MINE, ["i-1"], None)) == 1
    assert [tag.value for tag in database.read(lambda s: tags.tags_of(s, THEIRS))] == ["theirs"]


def test_of_equal_requests_at_once_one_owns_the_token(database: Database) -> None:
    start = threading.Barrier(6)
    seen: list[str] = []

    def request(turn: int) -> None:
        start.wait(30)
        stored = database.write(
            lambda s: tokens.take_token(s, MINE, "RunInstances", "tok", "f", f"r-{turn}")
        )
        seen.append(stored.result)

    threads = [threading.Thread(target=request, args=(turn,)) for turn in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 6
    assert len(set(seen)) == 1
    other = database.write(
        lambda s: tokens.take_token(s, THEIRS, "RunInstances", "tok", "f", "r-theirs")
    )
    assert other.result == "r-theirs"
    database.write(lambda s: tokens.drop_token(s, MINE, "RunInstances", "tok", seen[0]))
    assert database.read(lambda s: tokens.find_token(s, MINE, "RunInstances", "tok")) is None
    assert database.write(lambda s: tokens.drop_old_tokens(s, 3600)) == 0
    assert database.write(lambda s: tokens.drop_old_tokens(s, -10)) == 1


def test_a_database_of_upstream_is_adopted_in_place(db_url: str) -> None:
    engine = sa.create_engine(db_url)
    mysql = engine.dialect.name == "mysql"
    options = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb3" if mysql else ""
    quoted = "`key`" if mysql else "key"
    image, server = str(uuid.uuid4()), str(uuid.uuid4())
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE items (id VARCHAR(30) NOT NULL PRIMARY KEY, project_id VARCHAR(64), "
            f"vpc_id VARCHAR(12), os_id VARCHAR(36), data TEXT){options}"
        )
        connection.exec_driver_sql("CREATE UNIQUE INDEX items_os_id_idx ON items (os_id)")
        connection.exec_driver_sql(
            "CREATE TABLE tags (project_id VARCHAR(64) NOT NULL, item_id VARCHAR(30) NOT NULL, "
            f"{quoted} VARCHAR(127) NOT NULL, value VARCHAR(255), "
            f"PRIMARY KEY (project_id, item_id, {quoted})){options}"
        )
        insert = sa.text("INSERT INTO items VALUES (:id, :project, NULL, :os, :data)")
        for row in (
            {
                "id": "i-00000001",
                "project": MINE,
                "os": server,
                "data": json.dumps({"reservation_id": "r-abcdefgh", "launch_index": 0}),
            },
            {
                "id": "ami-00000002",
                "project": THEIRS,
                "os": image,
                "data": json.dumps({"is_public": True}),
            },
            {"id": "igw-00000003", "project": MINE, "os": None, "data": None},
        ):
            connection.execute(insert, row)
        connection.execute(
            sa.text("INSERT INTO tags VALUES (:p, 'i-00000001', 'Name', 'kept')"), {"p": MINE}
        )
    engine.dispose()
    migrate.upgrade(db_url, "ec2")
    database = Database(db_url)
    try:
        [item] = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
        assert (item.id, item.os_id) == ("i-00000001", server)
        assert item.data == {"reservation_id": "r-abcdefgh", "launch_index": 0}
        assert item.age is None
        found = database.read(lambda s: queries.by_os_ids(s, [image]))
        assert (found[image].id, found[image].is_public) == ("ami-00000002", True)
        [tag] = database.read(lambda s: tags.tags_of(s, MINE))
        assert tag == ("i-00000001", "Name", "kept")
        # What upstream writes after the migration has no kind, and is seen all the same.
        with database.engine.begin() as connection:
            connection.execute(
                sa.text(
                    "INSERT INTO items (id, project_id, os_id, data) "
                    "VALUES ('i-00000009', :p, :os, NULL)"
                ),
                {"p": MINE, "os": str(uuid.uuid4())},
            )
        later = database.read(lambda s: queries.items_of(s, MINE, ["i"]))
        assert {item.id for item in later} == {"i-00000001", "i-00000009"}
        _add(database, NewItem("snap", str(uuid.uuid4()), MINE, {"name": "🦊"}))
        database.write(lambda s: tags.set_tags(s, MINE, [tags.Tag("i-00000001", "name", "🦊")]))
        assert len(database.read(lambda s: tags.tags_of(s, MINE))) == 2
    finally:
        database.dispose()
