"""A Magnum of our own in front of the sandbox cloud, for tests with real clients.

Either API and conductor in one process on ``fake://`` and SQLite, or two
processes with RabbitMQ.  Run as a module it is the one-process form.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.support.cloud import ADMIN, DEMO, CloudEnv, Person
from tests.support.ports import free_port
from tests.support.servers import AMQP_URL
from trimaran.config import magnum as options

REPOSITORY = Path(__file__).parents[2]
#: seconds; a dozen processes that start at once take a minute on a busy machine
PATIENCE = 240.0
LATEST = {"OpenStack-API-Version": "container-infra latest"}


def write_conf(
    folder: Path, cloud: CloudEnv, database: str, transport: str, port: int, **settings: Any
) -> Path:
    """Writes a ``magnum.conf`` for the sandbox.

    Args:
        folder: where to.
        cloud: the sandbox.
        database: URL of the database.
        transport: URL of the message bus.
        port: of the API.
        settings: more options as ``section__name``.
    """
    credentials = {
        "auth_type": "password",
        "auth_url": cloud.auth_url,
        "username": "magnum",
        "password": "password",
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": cloud.region,
    }
    sections: dict[str, dict[str, Any]] = {
        "DEFAULT": {"transport_url": transport, "host": f"test-{uuid.uuid4().hex[:8]}"},
        "api": {"host": "127.0.0.1", "port": port, "workers": 1},
        # Of its own, so that no other Magnum on this broker takes the messages.
        "conductor": {"topic": f"magnum-test-{uuid.uuid4().hex}"},
        "database": {"connection": database},
        "keystone_authtoken": {**credentials, "www_authenticate_uri": cloud.auth_url},
        "keystone_auth": credentials,
        "nova_client": {"region_name": cloud.region},
        "certificates": {"cert_manager_type": "barbican"},
        "trimaran": {"threads": 8, "work_poll_seconds": 0.2},
    }
    for name, value in settings.items():
        section, _, option = name.rpartition("__")
        sections.setdefault(section or "DEFAULT", {})[option] = value
    path = folder / "magnum.conf"
    path.write_text(
        "\n\n".join(
            "\n".join([f"[{section}]", *(f"{name} = {value}" for name, value in values.items())])
            for section, values in sections.items()
        )
        + "\n"
    )
    return path


@dataclass
class Magnum:
    """A running Magnum.

    Attributes:
        url: of the API, with ``/v1``.
        processes: command to process.
        logs: command to file.
    """

    url: str
    folder: Path
    cloud: CloudEnv
    conf: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)

    def call(self, method: str, path: str, who: Person = DEMO, **kwargs: Any) -> requests.Response:
        """One request with a fresh token of this person; the newest microversion."""
        headers = {"X-Auth-Token": self.cloud.session(who).get_token(), **LATEST}
        headers |= kwargs.pop("headers", {})
        return requests.request(
            method, f"{self.url}{path}", headers=headers, timeout=PATIENCE, **kwargs
        )

    def start(self, command: str, *arguments: str) -> None:
        """Starts a process of this deployment."""
        log = self.folder / f"{command}.log"
        with log.open("ab") as output:
            self.processes[command] = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
                env={**os.environ, "MAGNUM_SANDBOX_DIR": str(self.folder / "sandbox")},
            )
        self.logs[command] = log

    def start_daemon(self, command: str) -> None:
        """Starts ``trimaran <command>`` with this deployment's configuration."""
        self.start(command, "-m", "trimaran", command, "--config-file", str(self.conf))

    def wait_until_ready(self) -> None:
        """Waits for the API to answer."""
        deadline = time.monotonic() + PATIENCE
        root = self.url.removesuffix("/v1")
        while True:
            with contextlib.suppress(requests.ConnectionError, requests.Timeout):
                if requests.get(f"{root}/healthcheck", timeout=30).status_code == 200:
                    return
            self.check()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.1)

    def check(self) -> None:
        """Fails when a process has ended by itself."""
        for command, process in self.processes.items():
            assert process.poll() is None, f"{command} ended: {self.said()}"

    def said(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"--- {name}\n{log.read_text(errors='replace')[-4000:]}"
            for name, log in self.logs.items()
        )

    def kill(self, command: str) -> None:
        """kill -9, and waits for its end."""
        self.processes[command].kill()
        self.processes.pop(command).wait(60)

    def stop(self) -> None:
        """SIGTERM to all, and waits for their ends."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
                raise AssertionError(f"did not stop in {PATIENCE} s\n{self.said()}") from None

    def wait_for(self, cluster: str, *statuses: str, who: Person = DEMO) -> dict[str, Any]:
        """The cluster once it has one of these statuses; "gone" is one too."""
        deadline = time.monotonic() + 2 * PATIENCE
        session = self.cloud.session(who)
        while True:
            headers = {"X-Auth-Token": session.get_token(), **LATEST}
            url = f"{self.url}/clusters/{cluster}"
            answer = requests.get(url, headers=headers, timeout=PATIENCE)
            body = answer.json()
            status = "gone" if answer.status_code == 404 else body.get("status")
            if status in statuses:
                return dict(body)
            failed = str(status).endswith("FAILED") or time.monotonic() > deadline
            assert not failed, f"{status}: {body.get('status_reason')}\n{self.said()}"
            self.check()
            time.sleep(0.5)


@contextlib.contextmanager
def one_process(folder: Path, cloud: CloudEnv, database: str, **settings: Any) -> Iterator[Magnum]:
    """API and conductor in one process, on ``fake://``.

    Args:
        folder: for configuration, logs and the driver's files.
        cloud: the sandbox.
        database: URL of a migrated database.
        settings: more options as ``section__name``.
    """
    port = free_port()
    conf = write_conf(folder, cloud, database, "fake://", port, **settings)
    magnum = Magnum(f"http://127.0.0.1:{port}/v1", folder, cloud, conf)
    magnum.start("embedded", "-m", "tests.support.magnum_daemons", str(conf))
    try:
        magnum.wait_until_ready()
        yield magnum
    finally:
        magnum.stop()


@contextlib.contextmanager
def two_processes(
    folder: Path, cloud: CloudEnv, database: str, **settings: Any
) -> Iterator[Magnum]:
    """API and conductor as two daemons with RabbitMQ; arguments as for :func:`one_process`."""
    port = free_port()
    conf = write_conf(folder, cloud, database, AMQP_URL, port, **settings)
    magnum = Magnum(f"http://127.0.0.1:{port}/v1", folder, cloud, conf)
    magnum.start_daemon("magnum-api")
    magnum.start_daemon("magnum-conductor")
    try:
        magnum.wait_until_ready()
        yield magnum
    finally:
        magnum.stop()


@contextlib.contextmanager
def image(cloud: CloudEnv, distro: str | None = "ubuntu") -> Iterator[str]:
    """The name of an image that says its distribution, if any; it is removed at the end."""
    name = f"magnum-{uuid.uuid4().hex[:8]}"
    body = {
        "name": name,
        **({"os_distro": distro} if distro else {}),
        "disk_format": "raw",
        "container_format": "bare",
        "visibility": "private",
    }
    made = cloud.call(DEMO, "image", "POST", "/v2/images", json=body)
    path = f"/v2/images/{made['id']}"
    try:
        cloud.session(DEMO).put(
            f"{path}/file",
            data=b"\0" * 1024,
            headers={"Content-Type": "application/octet-stream"},
            endpoint_filter={"service_type": "image", "interface": "public"},
        )
        yield name
    finally:
        cloud.session(DEMO).delete(
            path, endpoint_filter={"service_type": "image", "interface": "public"}
        )


@contextlib.contextmanager
def in_catalog(cloud: CloudEnv, url: str) -> Iterator[str]:
    """A region of its own in which ``container-infra`` is at this URL; its name."""
    region = f"magnum-{uuid.uuid4().hex[:8]}"
    admin = cloud.session(ADMIN)
    services = admin.get(f"{cloud.auth_url}/services?type=container-infra").json()["services"]
    made = None
    if not services:
        body = {"service": {"type": "container-infra", "name": "magnum"}}
        made = admin.post(f"{cloud.auth_url}/services", json=body).json()["service"]
        services = [made]
    admin.post(f"{cloud.auth_url}/regions", json={"region": {"id": region}})
    endpoints = []
    try:
        for interface in ("public", "internal", "admin"):
            body = {
                "endpoint": {
                    "service_id": services[0]["id"],
                    "interface": interface,
                    "region_id": region,
                    "url": url,
                }
            }
            answer = admin.post(f"{cloud.auth_url}/endpoints", json=body)
            endpoints.append(answer.json()["endpoint"]["id"])
        yield region
    finally:
        for endpoint in endpoints:
            admin.delete(f"{cloud.auth_url}/endpoints/{endpoint}")
        admin.delete(f"{cloud.auth_url}/regions/{region}")
        if made:
            # Another test may use it by now; it is harmless then.
            with contextlib.suppress(Exception):
                left = f"{cloud.auth_url}/endpoints?service_id={made['id']}"
                if not admin.get(left).json()["endpoints"]:
                    admin.delete(f"{cloud.auth_url}/services/{made['id']}")


def main(conf_file: str) -> None:
    """Serves API and conductor until SIGTERM."""
    from trimaran.config import common, logs
    from trimaran.magnum import rpc
    from trimaran.magnum.api import app
    from trimaran.magnum.conductor import service
    from trimaran.web import server

    conf = options.load([conf_file])
    logs.setup(conf, "magnum")
    own = common.own(conf)
    transport = rpc.open_transport(conf)
    conductor = service.build(conf, transport=transport)
    server.serve_many(
        [(app.build(conf, transport=transport), str(conf.api.host), conf.api.port)],
        own,
        on_start=[conductor.start],
        on_stop=[lambda: conductor.stop(own.shutdown_timeout)],
    )


if __name__ == "__main__":
    main(sys.argv[1])
