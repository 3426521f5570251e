"""What becomes of an action's entry in the journal when OpenStack refuses, or does not answer."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.support.ec2_openstack import Caller
from trimaran.db.models import work as states
from trimaran.db.models.work import Job
from trimaran.ec2 import journal
from trimaran.errors import Conflict, TrimaranError, Unavailable


def _entry(me: Caller) -> str:
    payload = {"project": "p1", "vpc": "vpc-1"}
    return me.db.write(lambda s: journal.begin(s, me.conf, journal.TOPOLOGY, "k", payload))


def _waits(me: Caller) -> list[bool]:
    """Of each entry that has not ended: whether it waits for the process's silence."""
    rows = me.db.read(lambda s: list(s.scalars(sa.select(Job).where(Job.state == states.QUEUED))))
    return [(row.due_at or 0.0) - row.created_at > 60 for row in rows]


def test_when_all_goes_well_the_last_step_ends_the_entry(me: Caller) -> None:
    job_id = _entry(me)
    with journal.settled(me.db, job_id):
        pass
    assert _waits(me) == [True]
    me.db.write(lambda s: journal.end(s, job_id))
    assert _waits(me) == []


@pytest.mark.parametrize(
    ("error", "left"),
    [
        pytest.param(Unavailable(service="network"), [False], id="no answer: the job is due"),
        pytest.param(Conflict("no"), [], id="a refusal: there is nothing to do"),
    ],
)
def test_what_neutron_says_decides(me: Caller, error: TrimaranError, left: list[bool]) -> None:
    job_id = _entry(me)
    with pytest.raises(type(error)), journal.settled(me.db, job_id):
        raise error
    assert _waits(me) == left


def test_a_refusal_may_have_something_to_take_back(me: Caller) -> None:
    job_id = _entry(me)
    done = []

    def take_back(session: object) -> None:
        done.append(session)

    for error in (Unavailable(service="network"), Conflict("no")):
        with pytest.raises(type(error)), journal.settled(me.db, job_id, take_back):
            raise error
        assert len(done) == isinstance(error, Conflict)


def test_our_own_mistakes_leave_the_entry_to_the_patience_of_others(me: Caller) -> None:
    job_id = _entry(me)
    with pytest.raises(ZeroDivisionError), journal.settled(me.db, job_id):
        raise ZeroDivisionError
    assert _waits(me) == [True]
