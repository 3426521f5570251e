"""One thread a runner that keeps all its leases alive: those of jobs and the named ones.

Two statements a beat however many leases there are, and none when there are
none.  A run that takes longer than its kind allows is not renewed any more:
its thread hangs, and another process shall have the job.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from trimaran import errors
from trimaran.db import Database
from trimaran.db.queries import work_jobs, work_leases
from trimaran.work import metrics
from trimaran.work.leases import RENEWALS, Leases
from trimaran.work.run import JobRun

LOG = logging.getLogger(__name__)


@dataclass
class _Kept:
    run: JobRun
    timeout: float


class Heartbeat:
    """Renews what a runner holds, from ``start`` to ``stop``.

    Args:
        db: where the leases are.
        owner: the runner's name in the rows of its jobs.
        ttl: seconds that a lease lasts; it is renewed ``RENEWALS`` times in that time.
    """

    def __init__(self, db: Database, owner: str, ttl: float) -> None:
        self._db = db
        self._owner = owner
        self._ttl = ttl
        self._lock = threading.Lock()
        self._runs: dict[str, _Kept] = {}
        self._leases: set[Leases] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="work-heartbeat", daemon=True)

    def start(self) -> None:
        """Begins to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Ends; what is still held ends by itself after the lease's time."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=5)

    def add_run(self, run: JobRun, timeout: float) -> None:
        """Keeps a job's lease while it runs, for ``timeout`` seconds at most."""
        with self._lock:
            self._runs[run.id] = _Kept(run, timeout)
            self._count()

    def remove_run(self, run: JobRun) -> None:
        """Keeps it no more."""
        with self._lock:
            kept = self._runs.get(run.id)
            if kept is not None and kept.run is run:
                del self._runs[run.id]
            self._count()

    def runs(self) -> list[JobRun]:
        """The runs that are kept."""
        with self._lock:
            return [kept.run for kept in self._runs.values()]

    def named(self) -> list[Leases]:
        """The named leases that are kept."""
        with self._lock:
            return list(self._leases)

    def add_leases(self, leases: Leases) -> None:
        """Keeps named leases."""
        with self._lock:
            self._leases.add(leases)
            self._count()

    def remove_leases(self, leases: Leases) -> None:
        """Keeps them no more."""
        with self._lock:
            self._leases.discard(leases)
            self._count()

    def _count(self) -> None:
        named = sum(len(leases.tokens()) for leases in self._leases)
        metrics.LEASES.set(len(self._runs) + named)

    def _keep(self) -> None:
        pause = self._ttl / RENEWALS
        while not self._over.wait(pause):
            pause = self._ttl / RENEWALS
            try:
                self._beat()
            except errors.Unavailable:
                # Said by the database layer; sooner again, a third of the time is gone.
                pause = min(pause, 1.0)
            except Exception:
                LOG.exception("Leases could not be renewed")

    def _beat(self) -> None:
        with self._lock:
            runs = list(self._runs.values())
            named = list(self._leases)
        self._renew_runs(runs)
        self._renew_named(named)

    def _renew_runs(self, runs: list[_Kept]) -> None:
        now = time.monotonic()
        fences: dict[str, int] = {}
        for kept in runs:
            if now - kept.run.started < kept.timeout:
                fences[kept.run.id] = kept.run.fence
            elif not kept.run.lost:
                kept.run.mark_lost()
                LOG.error(
                    "Job %s (%s) has run for %.0f s, longer than its kind may; "
                    "it will be run again when its lease ends",
                    kept.run.id,
                    kept.run.kind,
                    now - kept.run.started,
                )
        if not fences:
            return
        held = self._db.write(
            lambda session: work_jobs.renew(session, self._owner, fences, self._ttl)
        )
        for kept in runs:
            if kept.run.id in fences and kept.run.id not in held:
                kept.run.mark_lost()

    def _renew_named(self, named: list[Leases]) -> None:
        tokens: dict[str, str] = {}
        for leases in named:
            tokens.update(leases.tokens())
        if not tokens:
            return
        asked = time.monotonic()
        held = self._db.write(lambda session: work_leases.renew(session, tokens, self._ttl))
        for leases in named:
            mine = leases.tokens()
            leases.renewed({n for n, t in mine.items() if n in held and tokens.get(n) == t}, asked)
