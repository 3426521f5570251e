"""A runner whose database goes away and comes back."""

from __future__ import annotations

import threading
import time

import sqlalchemy as sa

from tests.support.tcp_proxy import Proxy
from tests.support.work_processes import runner_of
from trimaran import work
from trimaran.db import Database
from trimaran.db.models.work import Job
from trimaran.db.queries import work_jobs

#: Seconds for what takes a busy machine long, and never fails to come.
PATIENCE = 60.0


def _ended(db: Database, id_: str) -> Job:
    deadline = time.monotonic() + PATIENCE
    while True:
        job = db.read(lambda session: work_jobs.show(session, id_))
        assert job is not None
        if job.state not in ("queued", "running"):
            return job
        assert time.monotonic() < deadline, (job.state, job.error)
        time.sleep(0.02)


def test_a_runner_outlives_a_database_that_is_away(server_url: str):
    server = sa.make_url(server_url)
    direct = Database(server_url, pool_size=1)

    def ask() -> str:
        return direct.write(lambda session: work.enqueue(session, "k", {}))

    with Proxy(server.host, server.port) as proxy:
        through = server.set(port=proxy.port).render_as_string(hide_password=False)
        db = Database(through, pool_size=3)
        runner = runner_of(db, ttl=4 * PATIENCE)
        inside, over = threading.Event(), threading.Event()

        @runner.job("k")
        def handler(job: work.JobRun) -> None:
            inside.set()
            over.wait(2 * PATIENCE)

        runner.start()
        try:
            first = ask()
            assert inside.wait(PATIENCE)
            proxy.cut()
            over.set()  # the job ends while its end cannot be written
            second = ask()
            proxy.mend()
            job = _ended(direct, first)
            assert (job.state, job.attempt, job.fence) == ("done", 1, 1), "run once"
            assert _ended(direct, second).state == "done"
        finally:
            runner.stop(PATIENCE)
            db.dispose()
            direct.dispose()
