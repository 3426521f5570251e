"""Migrations: one tree with a branch for the deck and one for each hull.

A hull's database holds the deck's tables and the hull's; all may share one
database or have one each.  Two processes may be told to migrate at the same
moment (two replicas' init containers): the second waits and then finds
nothing to do.  On PostgreSQL and SQLite everything is one transaction under a
lock of that transaction.  MySQL commits each DDL statement, and its GET_LOCK
is local to one Galera node, so there a lease in a row of a table keeps the
others out.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import exc

from trimaran import errors
from trimaran.db import models, urls
from trimaran.db.migration_lock import row_lease
from trimaran.db.models.base import Base

VERSION_TABLE = "trimaran_version"
DECK = "deck"
#: The branches that a hull's database holds.
HULLS: dict[str, tuple[str, ...]] = {
    "console": (DECK, "console"),
    "ec2": (DECK, "ec2"),
    "magnum": (DECK, "magnum"),
    "all": (DECK, "console", "ec2", "magnum"),
}
# Any fixed number that no other application is likely to take.
_ADVISORY_LOCK = 0x7472696D6172616E & 0x7FFFFFFFFFFFFFFF


@dataclass(frozen=True)
class Check:
    """What a look at a database said.

    Attributes:
        ok: the schema is what this release needs.
        newer: a newer release has migrated it (expand-only: this one still runs).
        text: one sentence for the operator.
    """

    ok: bool
    newer: bool
    text: str


def location() -> Path:
    """The directory of the migrations: in the wheel, or in the source tree.

    Raises:
        ConfigError: neither is there (a broken installation).
    """
    package = Path(__file__).resolve().parent.parent
    for path in (package / "_alembic", package.parent.parent / "alembic"):
        if (path / "env.py").is_file():
            return path
    raise errors.ConfigError("the migrations are missing from this installation of trimaran")


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration, without a file.

    Args:
        connection: what to migrate; None when only the scripts are read.
    """
    where = location()
    made = Config()
    made.set_main_option("script_location", str(where).replace("%", "%%"))
    made.set_main_option("path_separator", "newline")
    made.set_main_option(
        "version_locations",
        "\n".join(str(where / "versions" / branch) for branch in HULLS["all"]).replace("%", "%%"),
    )
    made.attributes["connection"] = connection
    return made


def all_metadata() -> sa.MetaData:
    """The tables of all hulls, for comparison with a database."""
    for module in pkgutil.iter_modules(models.__path__):
        importlib.import_module(f"{models.__name__}.{module.name}")
    return Base.metadata


def heads() -> dict[str, str]:
    """The newest revision of each branch, by the branch's label."""
    scripts = ScriptDirectory.from_config(config())
    return {
        label: revision.revision
        for revision in scripts.get_revisions(scripts.get_heads())
        for label in revision.branch_labels
    }


def upgrade(url: str, hull: str = "all") -> list[str]:
    """Brings a database to this release's schema; what exists is kept.

    Args:
        url: of the database; the database itself must exist (an SQLite file
            is created).
        hull: "console", "ec2", "magnum" or "all".

    Returns:
        The revisions that the database is at afterwards.

    Raises:
        ConfigError: the URL cannot be used, or the database is newer than this release.
        Unavailable: the database does not answer (service "database").
    """
    engine = urls.make_migration_engine(urls.parse(url))
    # All branches in one go where that is asked for: each go reads the whole tree.
    targets = ["heads"] if hull == "all" else [f"{branch}@head" for branch in _branches(hull)]
    try:
        with _reachable(), _exclusive(engine) as connection:
            try:
                settings = config(connection)
                for target in targets:
                    command.upgrade(settings, target)
            except CommandError as error:
                raise errors.ConfigError(
                    f"the database {_safe(engine)} cannot be migrated by this release: {error}"
                ) from error
            return _heads_of(connection)
    finally:
        engine.dispose()


def current(url: str) -> list[str]:
    """The revisions that a database is at; empty for one that was never migrated.

    Raises:
        ConfigError: the URL cannot be used.
        Unavailable: the database does not answer (service "database").
    """
    engine = urls.make_migration_engine(urls.parse(url))
    try:
        with _reachable(), engine.connect() as connection:
            return _heads_of(connection)
    finally:
        engine.dispose()


def check(url: str, hull: str = "all") -> Check:
    """Compares a database's revisions with this release's.

    Args:
        url: of the database.
        hull: "console", "ec2", "magnum" or "all".

    Raises:
        ConfigError: the URL cannot be used.
        Unavailable: the database does not answer (service "database").
    """
    there = set(current(url))
    scripts = ScriptDirectory.from_config(config())
    ancestors = {revision.revision for revision in scripts.walk_revisions()}
    behind = [
        branch for branch, head in heads().items() if branch in HULLS[hull] and head not in there
    ]
    unknown = sorted(there - ancestors)
    if unknown:
        return Check(
            ok=False,
            newer=True,
            text=f"the database was migrated by a newer release ({', '.join(unknown)})",
        )
    if behind:
        return Check(
            ok=False,
            newer=False,
            text=f"the database needs `trimaran db upgrade {hull}` (behind: {', '.join(behind)})",
        )
    return Check(ok=True, newer=False, text=f"the database is up to date for {hull}")


def _branches(hull: str) -> tuple[str, ...]:
    if hull not in HULLS:
        raise errors.ConfigError(f"{hull!r} is none of {', '.join(sorted(HULLS))}")
    return HULLS[hull]


def _safe(engine: sa.Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


def _heads_of(connection: sa.Connection) -> list[str]:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return sorted(context.get_current_heads())


@contextlib.contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except exc.OperationalError as error:
        text = " ".join(str(error.orig).split())
        raise errors.Unavailable(
            f"The database does not answer: {text}", service="database"
        ) from error


@contextlib.contextmanager
def _exclusive(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection that no other process migrates the same database with."""
    if engine.dialect.name == "mysql":
        with row_lease(engine), engine.connect() as connection:
            yield connection
        return
    with engine.execution_options(trimaran_write=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            # Another's migration may take longer than a table's lock may be waited for.
            _wait_for_locks(connection, urls.MIGRATION_PATIENCE)
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            _wait_for_locks(connection, urls.LOCK_TIMEOUT)
        yield connection


def _wait_for_locks(connection: sa.Connection, seconds: int) -> None:
    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{seconds}s'"))
