"""A Magnum deployment for tests: a database, conductors in processes of their own,
and the part that an API plays (rows and recorded operations)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tests.support.processes import PATIENCE, Child, Fleet, Link, preload
from tests.support.servers import AMQP_URL
from tests.support.tcp_proxy import Proxy
from trimaran.config import magnum as options
from trimaran.db import Database, migrate
from trimaran.db.models import work as work_tables
from trimaran.db.queries import magnum as queries
from trimaran.magnum import objects, operations
from trimaran.magnum.context import RequestContext

# Importing a conductor takes seconds, and some tests start dozens.
preload("trimaran.magnum.conductor.service")

#: nobody listens there
NO_BROKER = "rabbit://guest:guest@127.0.0.1:9/"
POLL = 1.0
#: seconds of a lease: short for those who wait for the end of a dead one's, and long enough
#: that a living one misses none on a busy machine
LEASE = 5


def conductor(link: Link, conf_file: str, folder: str, interval: float) -> None:
    """A conductor; ends when told to."""
    os.environ["MAGNUM_SANDBOX_DIR"] = folder
    from trimaran.magnum.conductor import service

    running = service.build(options.load([conf_file]), sync_interval=interval)
    running.start()
    if not conf_file.endswith("no-broker.conf"):
        assert running.rpc.wait_started(PATIENCE)
    link.tell("ready")
    link.wait()
    running.stop(30)
    link.tell("stopped")


@contextlib.contextmanager
def cuttable_broker() -> Iterator[tuple[Proxy, str]]:
    """A way to the broker that a test can cut, and the URL of it."""
    url = urlsplit(AMQP_URL)
    with Proxy(url.hostname or "127.0.0.1", url.port or 5672) as way:
        who = url.netloc.rpartition("@")[0]
        yield way, urlunsplit(url._replace(netloc=f"{who}@127.0.0.1:{way.port}"))


class Deployment:
    """One Magnum without an API.

    Args:
        folder: of the test.
        url: of an empty database.
        auth_url: Keystone's; by default nobody listens there.
        lease: seconds that a conductor's leases last.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        auth_url: str = "http://127.0.0.1:9/v3",
        lease: int = LEASE,
    ) -> None:
        migrate.upgrade(url, "magnum")
        self.folder = folder
        self.sandbox = folder / "sandbox"
        self.sandbox.mkdir()
        self.topic = f"test-{uuid.uuid4().hex[:8]}"
        self.url = url
        #: options of every conductor, as section__name
        self.settings: dict[str, str] = {}
        self.auth_url = auth_url
        self.lease = lease
        self.db = Database(url)
        self.context = RequestContext(project_id="p1", user_id="u1", user_name="u")
        self.conf = options.load([self.write_conf("api")])
        self.operations = operations.Operations.from_conf(self.conf)

    def write_conf(self, name: str, transport: str | None = None, **more: str) -> str:
        """Writes a magnum.conf and returns its path."""
        transport = transport or AMQP_URL
        sections = {
            "DEFAULT": {
                "transport_url": transport,
                "control_exchange": self.topic,
                "host": name,
                "rpc_response_timeout": "60",
            },
            "conductor": {"topic": self.topic},
            "database": {"connection": self.url.replace("%", "%%")},
            "certificates": {"cert_manager_type": "x509keypair"},
            "drivers": {"disabled_drivers": "sandbox_disabled"},
            "trimaran": {"work_lease_seconds": str(self.lease), "work_poll_seconds": "0.1"},
            "oslo_messaging_rabbit": {"amqp_auto_delete": "true"},
            # Small keys are made quickly; their size is not what is tested here.
            "x509": {"rsa_key_size": "1024"},
            "nova_client": {"region_name": "RegionOne"},
            "keystone_authtoken": {
                "auth_type": "password",
                "auth_url": self.auth_url,
                "username": "magnum",
                "password": "password",
                "project_name": "service",
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
        }
        for key, value in (self.settings | more).items():
            section, _, option = key.partition("__")
            sections.setdefault(section, {})[option] = value
        path = self.folder / f"{name}.conf"
        path.write_text(
            "".join(
                f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items())
                for section, values in sections.items()
            )
        )
        return str(path)

    def start(
        self, fleet: Fleet, name: str, transport: str | None = None, *, interval: float = POLL
    ) -> Child:
        """Starts a conductor and waits until it receives messages."""
        child = self.begin(fleet, name, transport, interval=interval)
        fleet.until(lambda events: any(e.pid == child.pid and e.name == "ready" for e in events))
        return child

    def begin(
        self, fleet: Fleet, name: str, transport: str | None = None, *, interval: float = POLL
    ) -> Child:
        """Starts a conductor."""
        conf = self.write_conf(name, transport)
        return fleet.start(conductor, conf, str(self.sandbox), interval)

    # what an API does

    def template(self, **values: Any) -> Any:
        """Inserts a template of the sandbox driver."""
        row = {
            "uuid": str(uuid.uuid4()),
            "name": "t",
            "coe": "kubernetes",
            "server_type": "vm",
            "cluster_distro": "ubuntu",
            "image_id": "image",
            "flavor_id": "m1.tiny",
            "master_flavor_id": "m1.tiny",
            "driver": "sandbox_ubuntu",
            "project_id": self.context.project_id,
        } | values
        return self.db.write(lambda s: queries.insert_template(s, row))

    def new_cluster(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        template: Any = None,
        masters: int = 1,
        workers: int = 1,
        timeout: int | None = 60,
        **values: Any,
    ) -> dict[str, Any]:
        """Returns the values of a cluster's row, and inserts its template."""
        template = template or self.template()
        return {
            "uuid": str(uuid.uuid4()),
            "name": "c",
            "project_id": self.context.project_id,
            "user_id": self.context.user_id,
            "cluster_template_id": template.uuid,
            "labels": dict(labels or {}),
            "status": "CREATE_IN_PROGRESS",
            "create_timeout": timeout,
            "_template": template,
            "_sizes": (masters, workers),
        } | values

    def create(self, labels: Mapping[str, str] | None = None, **values: Any) -> str:
        """Writes a cluster and the operation to create it; returns the UUID."""
        row = self.new_cluster(labels, **values)
        template, sizes = row.pop("_template"), row.pop("_sizes")
        groups = objects.default_nodegroups(row, template, *sizes)

        def unit(session: Session) -> None:
            queries.create_cluster(session, row, groups)
            self.operations.record(
                session,
                self.context,
                "cluster_create",
                row["uuid"],
                {"create_timeout": row["create_timeout"]},
            )

        self.db.write(unit)
        return str(row["uuid"])

    def ask(self, name: str, cluster: str, **args: Any) -> str:
        """Records an operation; returns its id."""
        return self.db.write(lambda s: self.operations.record(s, self.context, name, cluster, args))

    def delete(self, cluster: str) -> str:
        """Records a deletion as the API does."""

        def unit(session: Session) -> str:
            queries.mark_cluster_deleting(session, cluster)
            return self.operations.record(session, self.context, "cluster_delete", cluster, {})

        return self.db.write(unit)

    # what there is

    def cluster(self, uuid: str) -> Any:
        """Returns the cluster's row, or None."""
        return self.db.read(lambda s: queries.find_cluster(s, uuid))

    def groups(self, cluster: str) -> dict[str, Any]:
        """Returns the node groups by name."""
        rows = self.db.read(lambda s: queries.nodegroups_of(s, cluster))
        return {row.name: row for row in rows}

    def relabel(self, cluster: str, **labels: str) -> None:
        """Changes how the sandbox driver goes on with a cluster from its next call on."""
        self.db.write(lambda s: queries.update_cluster(s, cluster, {"labels": labels}))

    def end_leases_of(self, pid: int) -> None:
        """Ends what a dead process held, as their time would a little later."""
        leases, jobs = work_tables.Lease, work_tables.Job
        mine = f"%{socket.gethostname()}:{pid}"

        def unit(session: Session) -> None:
            for table, held, ended in (
                (leases, leases.expires_at > 0, {"expires_at": 0.0}),
                (jobs, jobs.state == work_tables.RUNNING, {"due_at": 0.0}),
            ):
                owner = sa.or_(table.owner.like(mine), table.owner.like(f"{mine}:%"))
                session.execute(sa.update(table).where(held, owner).values(**ended))

        self.db.write(unit)

    def log(self, name: str, cluster: str | None = None) -> list[dict[str, Any]]:
        """Returns the records of events.log or polls.log."""
        path = self.sandbox / name
        records = (
            [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        )
        return [item for item in records if cluster in (None, item["cluster"])]

    def events(self, cluster: str, name: str | None = None) -> list[dict[str, Any]]:
        """Returns the driver's calls for a cluster."""
        return [e for e in self.log("events.log", cluster) if name in (None, e["event"])]

    def until(self, condition: Callable[[], Any], timeout: float = PATIENCE) -> Any:
        """Waits for a condition of what is outside of this process."""
        limit = time.monotonic() + timeout
        while not (met := condition()):
            assert time.monotonic() < limit, f"not in {timeout} s; {self.log('events.log')[-10:]}"
            time.sleep(0.05)
        return met

    def until_status(self, cluster: str, status: str | None, timeout: float = PATIENCE) -> Any:
        """Waits until a cluster has a status; None: until it is gone."""

        def met() -> bool:
            row = self.cluster(cluster)
            return row is None if status is None else row is not None and row.status == status

        try:
            self.until(met, timeout)
        except AssertionError as problem:
            row = self.cluster(cluster)
            raise AssertionError(
                f"{row and (row.status, row.status_reason)} instead of {status}; {problem}"
            ) from None
        return self.cluster(cluster)
