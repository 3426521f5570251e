"""The runner of an EC2 process: its kinds are measured, and its finished jobs go in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY

from tests.support.ec2_deaths import crew_of
from tests.support.ec2_jobs import jobs_of
from tests.support.ec2_openstack import Caller
from trimaran import work
from trimaran.config import common
from trimaran.db.queries import work_jobs
from trimaran.ec2 import journal
from trimaran.work import housekeeping

KINDS = (journal.CREATE_IMAGE, journal.START, journal.BUNDLE, journal.COPY_IMAGE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_handler_and_is_measured(me: Caller, kind: str) -> None:
    kinds = frozenset(crew_of(me).runner._kinds)
    assert kind in kinds
    me.db.write(lambda session: work.enqueue(session, kind, {}))
    housekeeping.Measure(me.db, kinds)()
    labels = {"kind": kind, "state": "queued"}
    assert REGISTRY.get_sample_value("trimaran_work_jobs", labels) == 1


def test_a_job_whose_failure_is_settled_is_settled_when_it_is_cancelled(me: Caller) -> None:
    assert set(crew_of(me)._failures) == journal.SETTLED


class Schedule:
    """Keeps what is to be run again and again."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[], object]] = {}

    def periodic(self, name: str, interval: Any, fn: Callable[[], object], **_: Any) -> None:
        self.functions[name] = fn


@pytest.mark.parametrize(("days", "left"), [(7.0, 1), (0.0, 0)])
def test_finished_jobs_are_kept_as_long_as_the_option_says(
    me: Caller, days: float, left: int
) -> None:
    job_id = me.db.write(lambda session: work.enqueue(session, journal.START, {}))
    me.db.write(lambda session: work_jobs.cancel(session, job_id))
    schedule = Schedule()
    own = common.defaults(work_keep_days=days)
    housekeeping.add_to(schedule, me.db, frozenset(), own)
    schedule.functions["work.purge"]()
    assert len(jobs_of(me.db, journal.START)) == left
