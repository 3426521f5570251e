"""What VPCs need of the database, on each kind of it: rows as locks, and notes on default VPCs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db import Database
from trimaran.db.models.ec2 import DefaultVpcRow
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_default_vpc as markers
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids

MINE = "p1"
PATIENCE = 30.0


@pytest.fixture
def db(db_url: str, migrated: Callable[[str, str], str]) -> Iterator[Database]:
    made = Database(migrated(db_url, "ec2"), pool_size=4)
    yield made
    made.dispose()


def test_who_adds_to_a_vpc_and_who_deletes_it_do_not_meet(db: Database) -> None:
    vpc = NewItem("vpc", None, MINE, {"n": 0}, id="vpc-00000001")
    db.write(lambda s: queries.add_items(s, [vpc], ids.mint))
    holds, begun = threading.Event(), threading.Event()

    def first(session: Session) -> None:
        [item] = queries.locked_items(session, MINE, [vpc.id])
        holds.set()
        assert begun.wait(PATIENCE)
        queries.update_item(session, MINE, vpc.id, data={"n": item.data["n"] + 1})

    def second(session: Session) -> int:
        [item] = queries.locked_items(session, MINE, [vpc.id])
        return int(item.data["n"])

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(db.write, first)
        assert holds.wait(PATIENCE)
        two = pool.submit(db.write, second)
        begun.set()
        one.result(PATIENCE)
        assert two.result(PATIENCE) == 1, "it saw what the first one did"
    assert db.write(lambda s: queries.locked_items(s, "p2", [vpc.id])) == []


def test_a_failure_holds_off_for_a_while_and_a_deletion_for_good(db: Database) -> None:
    def held_off() -> bool:
        return db.read(lambda s: markers.is_held_off(s, MINE))

    def waits() -> float:
        query = sa.select(DefaultVpcRow.retry_at - DefaultVpcRow.failures)
        return db.read(lambda s: float(s.scalars(query).one() or 0.0))

    assert not held_off()
    db.write(lambda s: markers.note_failure(s, MINE, 100.0, 250.0))
    assert held_off()
    first = waits()
    for _ in range(3):
        db.write(lambda s: markers.note_failure(s, MINE, 100.0, 250.0))
    assert 140.0 < waits() - first < 200.0, "from 100 s to the longest, 250 s"
    db.write(lambda s: s.execute(sa.update(DefaultVpcRow).values(retry_at=0.0)))
    assert not held_off()
    db.write(lambda s: markers.opt_out(s, MINE))
    assert held_off()
    assert not db.read(lambda s: markers.is_held_off(s, "p2"))
    db.write(lambda s: markers.forget(s, MINE))
    assert not held_off()
