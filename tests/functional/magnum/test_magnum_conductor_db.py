"""Magnum's tables on three databases: quota under rivalry, paging, adoption."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran import errors
from trimaran.db import Database, migrate
from trimaran.db.queries import magnum as queries


@pytest.fixture
def db(magnum_url: str) -> Iterator[Database]:
    made = Database(magnum_url)
    yield made
    made.dispose()


def cluster(**values: Any) -> dict[str, Any]:
    return {"uuid": str(uuid.uuid4()), "name": "c", "project_id": "p1"} | values


def test_rivals_do_not_pass_the_quota(db: Database) -> None:
    def create(_: int) -> bool:
        def unit(session: Session) -> None:
            queries.reserve_cluster_quota(session, "p1", 2)
            queries.create_cluster(session, cluster(), [])

        try:
            db.write(unit, attempts=20)
        except errors.QuotaExceeded:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        passed = sum(pool.map(create, range(10)))
    assert passed == 2
    with pytest.raises(errors.QuotaExceeded, match="maximum clusters per project, 2\\."):
        db.write(lambda s: queries.reserve_cluster_quota(s, "p1", 2))
    assert db.read(lambda s: queries.stats(s, "p1")) == (2, 0)


def test_a_projects_own_quota_wins(db: Database) -> None:
    quota = {"project_id": "p1", "resource": "Cluster", "hard_limit": 0}
    db.write(lambda s: queries.insert_quota(s, quota))
    with pytest.raises(errors.QuotaExceeded):
        db.write(lambda s: queries.reserve_cluster_quota(s, "p1", 20))
    with pytest.raises(errors.Conflict, match="already exists for resource Cluster"):
        db.write(lambda s: queries.insert_quota(s, quota))


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("key", ["id", "name", "status", "floating_ip_enabled", "created_at"])
def test_pages_hold_every_row_once_in_one_order(db: Database, key: str, direction: str) -> None:
    def fill(session: Session) -> None:
        for number in range(7):
            queries.insert_cluster(
                session,
                cluster(
                    name=f"n{number % 3}",
                    status=None if number % 2 else "CREATE_COMPLETE",
                    floating_ip_enabled=bool(number % 3),
                ),
            )

    db.write(fill)
    scope = queries.Scope(project_id="p1")
    whole = db.read(
        lambda s: queries.list_clusters(s, scope, queries.Page(None, None, key, direction))
    )
    paged: list[str] = []
    marker: str | None = None
    while True:
        page = queries.Page(2, marker, key, direction)
        rows = db.read(lambda s, page=page: queries.list_clusters(s, scope, page))
        paged += [row.uuid for row in rows]
        if len(rows) < 2:
            break
        marker = rows[-1].uuid
    assert paged == [row.uuid for row in whole]
    assert len(set(paged)) == 7
    values = [getattr(row, key) for row in whole]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=direction == "desc")
    # NULLs are at the low end everywhere.
    nulls = [value is None for value in values]
    assert nulls == sorted(nulls, reverse=direction == "asc")


def test_a_bad_page_is_refused(db: Database) -> None:
    scope = queries.Scope(project_id="p1")
    with pytest.raises(errors.BadRequest) as problem:
        db.read(lambda s: queries.list_clusters(s, scope, queries.Page(1, None, "foo")))
    assert problem.value.message == 'The sort_key value "foo" is an invalid field for sorting'
    with pytest.raises(errors.NotFound):
        db.read(lambda s: queries.list_clusters(s, scope, queries.Page(1, str(uuid.uuid4()))))


def test_totals_of_a_page_are_one_statement(db: Database) -> None:
    def fill(session: Session) -> list[str]:
        made = []
        for _ in range(5):
            values = cluster()
            groups = [
                {
                    "uuid": str(uuid.uuid4()),
                    "name": name,
                    "role": role,
                    "cluster_id": values["uuid"],
                    "project_id": "p1",
                    "node_count": count,
                    "node_addresses": [f"10.0.0.{count}"],
                }
                for name, role, count in (("m", "master", 1), ("w", "worker", 2), ("x", "gpu", 3))
            ]
            made.append(queries.create_cluster(session, values, groups).uuid)
        return made

    uuids = db.write(fill)
    statements: list[str] = []
    sa.event.listen(db.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    totals = db.read(lambda s: queries.node_totals(s, uuids))
    assert len([s for s in statements if "SELECT" in s.upper()]) == 1
    assert {(t.master_count, t.node_count) for t in totals.values()} == {(1, 5)}
    assert totals[uuids[0]].node_addresses == ["10.0.0.2", "10.0.0.3"]


def test_names_and_uuids_in_any_form(db: Database) -> None:
    values = cluster(name="one")
    db.write(lambda s: queries.create_cluster(s, values, []))
    db.write(lambda s: queries.create_cluster(s, cluster(name="two"), []))
    db.write(lambda s: queries.create_cluster(s, cluster(name="two"), []))
    scope = queries.Scope(project_id="p1")
    for ident in ("one", values["uuid"], values["uuid"].upper(), values["uuid"].replace("-", "")):
        found = db.read(lambda s, ident=ident: queries.get_cluster(s, scope, ident))
        assert found.uuid == values["uuid"]
    with pytest.raises(errors.Conflict) as several:
        db.read(lambda s: queries.get_cluster(s, scope, "two"))
    assert several.value.message == (
        "Multiple clusters exist with same name. Please use the cluster uuid instead."
    )
    with pytest.raises(errors.NotFound, match=r"Cluster one could not be found\."):
        db.read(lambda s: queries.get_cluster(s, queries.Scope(project_id="p2"), "one"))


def test_templates_in_use_change_only_harmlessly(db: Database) -> None:
    def template(session: Session, **values: Any) -> str:
        row = {"uuid": str(uuid.uuid4()), "name": "t", "project_id": "p1"} | values
        return queries.insert_template(session, row).uuid

    used = db.write(template)
    db.write(lambda s: queries.create_cluster(s, cluster(cluster_template_id=used), []))
    for changes in ({"tags": "a"}, {"name": "n"}, {"hidden": True}, {"public": True}):
        db.write(lambda s, changes=changes: queries.update_template(s, used, changes))
    for changes in ({"flavor_id": "x"}, {"name": "m", "tags": "b"}, {"public": False}):
        with pytest.raises(errors.BadRequest, match="referenced by one or multiple clusters"):
            db.write(lambda s, changes=changes: queries.update_template(s, used, changes))
    with pytest.raises(errors.BadRequest, match="referenced by one or multiple clusters"):
        db.write(lambda s: queries.delete_template(s, used))


def test_who_sees_which_template(db: Database) -> None:
    def fill(session: Session) -> None:
        for name, public, hidden in (
            ("own", False, True),
            ("private", False, False),
            ("public", True, False),
            ("hidden", True, True),
        ):
            owner = "p1" if name == "own" else "p2"
            queries.insert_template(
                session,
                {
                    "uuid": str(uuid.uuid4()),
                    "name": name,
                    "project_id": owner,
                    "public": public,
                    "hidden": hidden,
                },
            )

    db.write(fill)

    def seen(scope: queries.Scope) -> list[str | None]:
        return [row.name for row in db.read(lambda s: queries.list_templates(s, scope))]

    assert seen(queries.Scope(project_id="p1")) == ["own", "public"]
    assert seen(queries.Scope(project_id="p1", is_admin=True)) == ["own", "public", "hidden"]
    assert seen(queries.EVERYTHING) == ["own", "private", "public", "hidden"]


def test_an_upstream_database_is_taken_over_in_place(db_url: str) -> None:
    """As an older upstream left it: a column too many, two too few, NULL for JSON."""
    engine = sa.create_engine(db_url)
    metadata = sa.MetaData()
    sa.Table("alembic_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True))
    common = (
        lambda: sa.Column("id", sa.Integer, primary_key=True),
        lambda: sa.Column("created_at", sa.DateTime),
        lambda: sa.Column("updated_at", sa.DateTime),
    )
    old_cluster = sa.Table(
        "cluster",
        metadata,
        *(make() for make in common),
        sa.Column("uuid", sa.String(36), unique=True),
        *(
            sa.Column(name, sa.String(255))
            for name in ("name", "project_id", "user_id", "cluster_template_id", "stack_id")
        ),
        sa.Column("trust_id", sa.String(255)),
        sa.Column("labels", sa.Text),
        sa.Column("status", sa.String(20)),
        mysql_engine="InnoDB",
    )
    old_group = sa.Table(
        "nodegroup",
        metadata,
        *(make() for make in common),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        *(
            sa.Column(name, sa.String(255), nullable=False)
            for name in ("name", "cluster_id", "project_id")
        ),
        sa.Column("role", sa.String(255)),
        sa.Column("node_count", sa.Integer),
        sa.Column("node_addresses", sa.Text),
        sa.UniqueConstraint("cluster_id", "name", name="uniq_nodegroup0cluster_id0name"),
        mysql_engine="InnoDB",
    )
    metadata.create_all(engine)
    known = str(uuid.uuid4())
    with engine.begin() as connection:
        connection.execute(
            old_cluster.insert().values(
                uuid=known, name="old", project_id="p1", trust_id="t", labels='{"a": "b"}'
            )
        )
        connection.execute(
            old_group.insert().values(
                uuid=str(uuid.uuid4()),
                name="default-worker",
                cluster_id=known,
                project_id="p1",
                role="worker",
                node_count=2,
            )
        )
    engine.dispose()

    migrate.upgrade(db_url, "magnum")
    migrate.upgrade(db_url, "magnum")

    db = Database(db_url)
    row = db.read(lambda s: queries.get_cluster(s, queries.Scope(project_id="p1"), "old"))
    assert (row.labels, row.health_status_reason, row.front_proxy_ca_cert_ref) == (
        {"a": "b"},
        {},
        None,
    )
    (group,) = db.read(lambda s: queries.nodegroups_of(s, known))
    assert (group.node_count, group.node_addresses, group.node_taints) == (2, [], [])
    kept = db.read(lambda s: s.execute(sa.text("SELECT trust_id FROM cluster")).scalar())
    assert kept == "t"
    db.dispose()
