"""Units of work: one function, one session, one transaction, run again when it must be.

A unit is a function of a session.  Deadlocks, Galera conflicts and lost
connections end a transaction as a whole, so the only correct retry is to run
the whole function again; a `commit()` in the caller's hands would make that
impossible, and so would a second session of the same thread, which blocks for
ever when the pool has one connection.

There is no ping before each use of a connection: it would be one round trip
for every unit, and the re-run already covers a connection that died in the
pool (it also covers the one that dies a millisecond after the ping).
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from prometheus_client import Counter
from sqlalchemy import event, exc, text
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.orm import ORMExecuteState, Session

from trimaran import errors
from trimaran.db import urls
from trimaran.db.faults import Fault, classify

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds after which a unit is not begun again because there is no connection.
DOWN_WINDOW = 2.0
#: Seconds after which a unit is not begun again at all.
RETRY_WINDOW = 30.0
#: Runs of a reading unit.
READ_ATTEMPTS = 3

RERUNS = Counter(
    "trimaran_database_reruns_total", "Units of work run again, by the reason.", ["reason"]
)
FAILURES = Counter(
    "trimaran_database_unavailable_total",
    "Units of work given up because of the database's state, by the reason.",
    ["reason"],
)


class _ReadSession(Session):
    """A session that refuses to write, so that a mistake shows in any test."""


class Database:
    """One database of the process: its engine and the way to run units of work.

    Args:
        url: the operator's URL (see ``trimaran.db.urls.parse``).
        pool_size: connections at most, at least 1.
        pool_timeout: seconds that a unit waits for a free connection.

    Raises:
        ConfigError: the URL cannot be used.  A server that does not answer is
            no such error: it may be back when it is needed.
    """

    def __init__(self, url: str, *, pool_size: int = 5, pool_timeout: float = 30.0) -> None:
        parsed = urls.parse(url)
        self.url_safe: str = parsed.render_as_string(hide_password=True)
        self.engine: Engine = urls.make_engine(
            parsed, pool_size=pool_size, pool_timeout=pool_timeout
        )
        event.listen(self.engine, "handle_error", _mark_lost)
        self._writer = self.engine.execution_options(trimaran_write=True)
        self._local = threading.local()
        self._pool_timeout = pool_timeout
        # SQLite has one writer, and lets the others poll for their turn with growing
        # pauses; the threads of one process queue here instead.
        self._turn = threading.Lock() if self.engine.dialect.name == "sqlite" else None

    def read(self, fn: Callable[[Session], T]) -> T:
        """Runs a unit that only reads; what it changes is refused.

        Args:
            fn: called with the session; may be called more than once.  Objects
                that it returns stay usable, with what was loaded.

        Returns:
            What ``fn`` returned.

        Raises:
            Unavailable: no answer from the database (service "database").
            RuntimeError: called inside another unit, or ``fn`` tried to write.
        """
        return self._unit(fn, self.engine, _ReadSession, READ_ATTEMPTS, commit=False)

    def write(self, fn: Callable[[Session], T], *, attempts: int = 5) -> T:
        """Runs a unit as one transaction, committed when ``fn`` returns.

        When the connection dies during COMMIT nobody knows whether it took
        place; the unit is run again all the same.  A unit that must not take
        effect twice says so with a unique key or a compare-and-set.

        Args:
            fn: called with the session; may be called more than once, each
                time in a new transaction, so it must not change anything but
                the database.
            attempts: runs at most.

        Returns:
            What ``fn`` returned in the run that was committed.

        Raises:
            Unavailable: no answer, or conflicts without end (service "database").
            RuntimeError: called inside another unit of this thread.
        """
        return self._unit(fn, self._writer, Session, attempts, commit=True)

    def rehearse(self, fn: Callable[[Session], T], *, attempts: int = 5) -> T:
        """Runs a writing unit and takes back what it wrote; what it found and raised stays true.

        Args:
            fn: as for ``write``.
            attempts: runs at most.

        Returns:
            What ``fn`` returned; objects of it are as if they had been written.

        Raises:
            Unavailable, RuntimeError: as for ``write``.
        """
        return self._unit(fn, self._writer, Session, attempts, commit=False)

    def ping(self) -> None:
        """Asks the database for a sign of life.

        Raises:
            Unavailable: there is none (service "database").
        """
        self.read(lambda session: session.execute(text("SELECT 1")).scalar_one())

    def dispose(self) -> None:
        """Closes the pool's connections; the object can still be used afterwards."""
        self.engine.dispose()

    def _unit(
        self,
        fn: Callable[[Session], T],
        engine: Engine,
        session_class: type[Session],
        attempts: int,
        *,
        commit: bool,
    ) -> T:
        if getattr(self._local, "busy", False):
            raise RuntimeError(
                "a unit of work inside a unit of work: pass the session on instead; "
                "the pool may have one connection only"
            )
        self._local.busy = True
        try:
            with self._alone() if commit else contextlib.nullcontext():
                return self._run(fn, engine, session_class, attempts, commit=commit)
        finally:
            self._local.busy = False

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One writing thread of this process at a time, where there is one writer at all."""
        if self._turn is None:
            yield
            return
        if not self._turn.acquire(timeout=self._pool_timeout):
            FAILURES.labels(Fault.CONFLICT.value).inc()
            LOG.error("Database %s: another thread writes without end", self.url_safe)
            raise errors.Unavailable(service="database")
        try:
            yield
        finally:
            self._turn.release()

    def _run(
        self,
        fn: Callable[[Session], T],
        engine: Engine,
        session_class: type[Session],
        attempts: int,
        *,
        commit: bool,
    ) -> T:
        started = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            connecting = True
            try:
                writing = session_class is Session
                with session_class(engine, expire_on_commit=False, autoflush=writing) as session:
                    session.connection()
                    connecting = False
                    result = fn(session)
                    if commit:
                        session.commit()
                    return result
            except exc.SQLAlchemyError as error:
                fault = classify(error, connecting=connecting)
                if fault is None:
                    raise
                self._retry_or_raise(error, fault, attempt, attempts, started)

    def _retry_or_raise(
        self,
        error: exc.SQLAlchemyError,
        fault: Fault,
        attempt: int,
        attempts: int,
        started: float,
    ) -> None:
        elapsed = time.monotonic() - started
        if fault is Fault.DOWN:
            # A connection is not the unit's doing: try as long as it stays quick.
            again = elapsed < DOWN_WINDOW and not isinstance(error, exc.TimeoutError)
        else:
            again = fault is not Fault.REFUSED and attempt < attempts and elapsed < RETRY_WINDOW
        if not again:
            FAILURES.labels(fault.value).inc()
            LOG.error(
                "Database %s: %s; given up after %d runs in %.1f s%s",
                self.url_safe,
                _brief(error),
                attempt,
                elapsed,
                " (the schema may need `trimaran db upgrade`, or the account its rights)"
                if fault is Fault.REFUSED
                else "",
            )
            raise errors.Unavailable(service="database") from error
        RERUNS.labels(fault.value).inc()
        LOG.info("Database: %s; the unit is run again (run %d)", _brief(error), attempt + 1)
        time.sleep(_pause(fault, attempt))


def after_commit(session: Session, action: Callable[[], None]) -> None:
    """Calls something once the unit of work is committed; never when it is rolled back.

    Args:
        session: of the writing unit.
        action: must be quick, must not raise and must not touch the database.
    """

    def call(_session: Session) -> None:
        action()

    event.listen(session, "after_commit", call, once=True)


def _pause(fault: Fault, attempt: int) -> float:
    """Seconds to wait before the next run; random, so that two rivals part."""
    if fault is Fault.LOST and attempt == 1:
        return 0.0  # the pool was emptied: a fresh connection is at hand
    longest: float = min(1.0, 0.02 * 2**attempt)
    if fault is Fault.DOWN:
        longest = min(0.5, 0.1 * 2**attempt)
    return random.uniform(longest / 4, longest)  # noqa: S311 - no secret


def _brief(error: exc.SQLAlchemyError) -> str:
    """The driver's own words in one line: no statement, no parameters (they may hold secrets)."""
    orig = getattr(error, "orig", None)
    return " ".join(str(orig if orig is not None else error).split())[:300]


def _mark_lost(context: ExceptionContext) -> None:
    """Empties the pool for faults that SQLAlchemy does not take for a lost connection."""
    error = context.sqlalchemy_exception
    if error is not None and classify(error) is Fault.LOST:
        context.is_disconnect = True


@event.listens_for(_ReadSession, "before_flush")
def _refuse_flush(session: Session, _context: Any, _instances: Any) -> None:
    raise RuntimeError("a reading unit of work has changed objects; use Database.write")


@event.listens_for(_ReadSession, "do_orm_execute")
def _refuse_dml(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        raise RuntimeError("a reading unit of work writes; use Database.write")
