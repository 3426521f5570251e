"""Databases of the services: made from the cache, or by each service's migrations.

What has been done is recorded in the database server itself (one small database per
sandbox), because that is what can disappear under a state directory: a reused server
that was emptied, a database that was dropped.  A database without its mark is
half-made and starts over.
"""

from __future__ import annotations

import hashlib
import inspect
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trimaran.sandbox import dump, mariadb
from trimaran.sandbox.migrations import migrate
from trimaran.sandbox.places import pins_digest
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.seed import identity, people
from trimaran.sandbox.settings import DAEMONS, DATABASES, Settings
from trimaran.sandbox.venv import Environment

MARKS = "sandbox"
# the step that says: services have referred to each other's rows
SEEDED = "seeded"
# part of the cache's key: change it when the way schemas are made changes
SCHEMA_FORMAT = "1"


class Databases:
    """The databases of one sandbox."""

    def __init__(
        self, settings: Settings, processes: Processes, venv: Environment, say: Progress
    ) -> None:
        self.settings = settings
        self.processes = processes
        self.venv = venv
        self.say = say

    def names(self) -> list[str]:
        """All databases of this sandbox."""
        services = [name for group in DATABASES.values() for name in group]
        return [self.settings.database(name) for name in [*services, MARKS]]

    # -- what is there -----------------------------------------------------
    def adopt(self) -> bool:
        """Open the record of what was done.

        Returns:
            False when it does not belong to this state directory (either of them was
            emptied): the caller then has nothing that can be trusted.
        """
        marks = self.settings.database(MARKS)
        with mariadb.connect(self.settings.mysql_port) as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {marks} CHARACTER SET utf8mb4")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {marks}.marks "
                "(step VARCHAR(64) PRIMARY KEY, value VARCHAR(64) NOT NULL)"
            )
            cursor.execute(f"SELECT value FROM {marks}.marks WHERE step = 'generation'")
            row = cursor.fetchone()
            if row and row[0] == self.settings.generation:
                return True
            self.settings.generation = uuid.uuid4().hex
            cursor.execute(f"DELETE FROM {marks}.marks")
            cursor.execute(
                f"INSERT INTO {marks}.marks VALUES ('generation', %s)", [self.settings.generation]
            )
            return False

    def mark(self, step: str, value: str = "done") -> None:
        """Record that a step is done."""
        marks = self.settings.database(MARKS)
        with mariadb.connect(self.settings.mysql_port) as cursor:
            cursor.execute(f"REPLACE INTO {marks}.marks VALUES (%s, %s)", [step, value])

    def done(self) -> dict[str, str]:
        """The recorded steps; a service whose database is gone is not among them."""
        marks = self.settings.database(MARKS)
        with mariadb.connect(self.settings.mysql_port) as cursor:
            cursor.execute(f"SELECT step, value FROM {marks}.marks")
            steps = dict(cursor.fetchall())
            cursor.execute("SELECT schema_name FROM information_schema.schemata")
            present = {row[0] for row in cursor.fetchall()}
        for service, names in DATABASES.items():
            if not {self.settings.database(name) for name in names} <= present:
                steps.pop(service, None)
        return steps

    def seeded(self) -> bool:
        """Whether an ``up`` has gone to its end before."""
        return SEEDED in self.done()

    def lost(self) -> bool:
        """Whether a database is gone that others refer to by now."""
        steps = self.done()
        return SEEDED in steps and not DATABASES.keys() <= steps.keys()

    def forget(self) -> None:
        """Have all databases made anew."""
        marks = self.settings.database(MARKS)
        with mariadb.connect(self.settings.mysql_port) as cursor:
            cursor.execute(f"DELETE FROM {marks}.marks WHERE step <> 'generation'")

    def drop(self) -> None:
        """Forget all databases of this sandbox."""
        with mariadb.connect(self.settings.mysql_port) as cursor:
            for name in self.names():
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")

    # -- making --------------------------------------------------------------
    def ensure(self, when_ready: Callable[[str], None]) -> None:
        """Make all databases that are not made, two at a time.

        Args:
            when_ready: called with each service's name as soon as its database is there.
        """
        steps = self.done()
        if any(steps.get(service, pins_digest()) != pins_digest() for service in DATABASES):
            self.say("the pins have changed: stopping the services to migrate their databases")
            names = [f"{name}-api" for name in self.settings.apis]
            self.processes.stop([*names, *DAEMONS])

        def one(service: str) -> None:
            if steps.get(service) != pins_digest():
                self._make(service, keep=service in steps)
                self.mark(service, pins_digest())
            when_ready(service)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, DATABASES))

    def _make(self, service: str, keep: bool) -> None:
        begin = time.monotonic()
        names = DATABASES[service]
        cache = self._cache(service)
        kept = None if keep else self._kept(service)
        with mariadb.connect(self.settings.mysql_port) as cursor:
            for name in map(self.settings.database, names):
                if not keep:
                    cursor.execute(f"DROP DATABASE IF EXISTS {name}")
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4")
        if kept is not None and kept.keys() == set(names):
            for name in names:
                with self._open(name) as cursor:
                    dump.put(cursor, kept[name])
            how = "restored"
        else:
            migrate(service, self.settings, self.processes, self.venv)
            how = "migrated"
            if not keep:
                dump.save(cache, {name: self._dump(name) for name in names})
        self._adjust(service)
        self.say(f"database of {service} {how} ({time.monotonic() - begin:.0f} s)")

    def _cache(self, what: str) -> Path:
        server = mariadb.kind(self.settings.mysql_port)
        return self.venv.root / "schema" / f"{what}-{server}-{SCHEMA_FORMAT}.json"

    def _kept(self, service: str) -> dict[str, list[str]] | None:
        seeded = dump.load(self._cache(_seeded_identity())) if service == "keystone" else None
        return seeded or dump.load(self._cache(service))

    def keep_identity(self) -> None:
        """Keep Keystone's database with the people and the catalog in it.

        Without credentials, which are encrypted with the keys of one sandbox.
        """
        cache = self._cache(_seeded_identity())
        if not cache.exists():
            with self._open("keystone") as cursor:
                dump.save(cache, {"keystone": dump.take(cursor, without_rows=["credential"])})

    def _open(self, name: str):  # type: ignore[no-untyped-def]
        return mariadb.connect(self.settings.mysql_port, self.settings.database(name))

    def _dump(self, name: str) -> list[str]:
        with self._open(name) as cursor:
            return dump.take(cursor)

    def _adjust(self, service: str) -> None:
        """Write this sandbox's addresses where a schema carries those of its maker."""
        settings = self.settings
        if service == "nova":
            with self._open("nova_api") as cursor:
                for name, database, queue in (
                    ("cell0", "nova_cell0", "none:///"),
                    ("cell1", "nova", settings.amqp_url),
                ):
                    cursor.execute(
                        "UPDATE cell_mappings SET database_connection = %s, transport_url = %s "
                        "WHERE name = %s",
                        [settings.database_url(database), queue, name],
                    )
        elif service == "keystone":
            urls = [(kind, url) for kind, _, url in identity.catalog(settings)]
            with self._open("keystone") as cursor:
                for kind, url in [("identity", settings.auth_url), *urls]:
                    cursor.execute(
                        "UPDATE endpoint SET url = %s WHERE service_id IN "
                        "(SELECT id FROM service WHERE type = %s)",
                        [url, kind],
                    )


def _seeded_identity() -> str:
    """The name of the cache of what the present code seeds."""
    code = [inspect.getsource(module).encode() for module in (people, identity)]
    return f"keystone-seeded-{hashlib.sha256(b''.join(code)).hexdigest()[:12]}"
