"""Runs jobs in the test's own thread, dies where the test says, and goes on as another process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.ec2_jobs import make_due
from tests.support.ec2_openstack import Caller
from trimaran.config import common
from trimaran.db.models.work import Lease
from trimaran.db.queries import work_jobs
from trimaran.ec2.jobs import Crew
from trimaran.ec2.parts import Parts
from trimaran.work.outcome import settle
from trimaran.work.run import JobRun

MOST_RUNS = 200


class Death(BaseException):
    """The process is gone: nothing may catch it."""


class Deaths:
    """Counts what a job does to the world, and dies at one of these moments.

    Args:
        at: the moment's number, from 0; each call has one before and one after it.
        error: what happens then, in place of a death.

    Attributes:
        fired: whether that moment came.
        moment: its name.
    """

    def __init__(self, at: int, error: Exception | None = None) -> None:
        self._at = at
        self._error = error
        self._count = itertools.count()
        self.fired = False
        self.moment = ""

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self._pass(f"before {name}")
            result = call(*args, **kwargs)
            self._pass(f"after {name}")
            return result

        return wrapped

    def _pass(self, moment: str) -> None:
        if next(self._count) == self._at:
            self.fired, self.moment = True, moment
            raise self._error or Death(moment)


@contextmanager
def dying(deaths: Deaths, *targets: tuple[type, str]) -> Iterator[None]:
    """Watches methods of classes."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in targets:
            patch.setattr(
                owner, name, deaths.wrap(f"{owner.__name__}.{name}", getattr(owner, name))
            )
        yield


def crew_of(caller: Caller) -> Crew:
    own = common.defaults()
    parts = Parts(
        caller.conf, own, caller.cloud.identity, caller.cloud, caller.db, region="RegionOne"
    )
    return Crew(parts)


def run_one(caller: Caller, crew: Crew) -> bool:
    """Claims one job, due or not, and runs it once; False when there is none."""
    make_due(caller.db)
    kinds = crew.runner._kinds
    claimed = caller.db.write(
        lambda s: work_jobs.claim(s, owner="process", kinds=list(kinds), limit=1, ttl=30)
    )
    for each in claimed:
        run = JobRun(caller.db, each, owner="process", ttl=30)
        settle(caller.db, "process", kinds[run.kind], run)
    return bool(claimed)


def run_all(caller: Caller) -> int:
    """Runs jobs until none is left; returns how many runs that took.

    By then the leases of the process that died have ended.
    """
    caller.db.write(lambda s: s.execute(sa.update(Lease).values(expires_at=0.0)))
    crew = crew_of(caller)
    for runs in range(MOST_RUNS):
        if not run_one(caller, crew):
            return runs
    raise AssertionError("the jobs do not end")
