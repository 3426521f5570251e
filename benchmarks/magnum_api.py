"""What requests to the Magnum API cost, side by side with magnum 23.0.0.

    python benchmarks/magnum_api.py --peer VENV [--sandbox STATE] [--clusters 1000] [--only NAME …]

VENV is an environment with ``magnum==23.0.0 gunicorn PyMySQL``; without
``--peer`` ours is measured alone.  Both serve the same MariaDB database (made by
upstream's migrations and taken over by ours, dropped at the end) with one
worker process each, and ask the same Keystone, that of the sandbox.

For each request: answers a second with four clients, the time of one client's
request (p50), CPU time of the server's process per request, and the SQL
statements and calls of Keystone that one request makes once the service is
warm.  Statements and calls are counted by proxies which are taken out for the
timing.  Rounds alternate between the two, so that a busy machine is so for both.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
import yaml
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3

from trimaran.db import migrate
from trimaran.db.models.magnum import Cluster, ClusterTemplate, NodeGroup

CLIENTS = 4
LATEST = "container-infra latest"


class Counter:
    """A proxy that counts what goes to a server.

    Args:
        host: of the server.
        port: of the server.
        count: how many of what is counted begin in a piece of traffic.
    """

    def __init__(self, host: str, port: int, count: Callable[[bytes], int]) -> None:
        self._server = (host, port)
        self._count = count
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.total = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            for source, target, counted in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pump, args=(source, target, counted), daemon=True
                ).start()

    def _pump(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if counted:
                    self.total += self._count(piece)
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.close()


def selects(piece: bytes) -> int:
    """SELECT statements in a piece of MySQL's protocol (COM_QUERY, which is sent in one go)."""
    return int(piece[4:5] == b"\x03" and piece[5:].lstrip()[:6].upper() == b"SELECT")


def calls(piece: bytes) -> int:
    """HTTP requests in a piece of traffic."""
    return piece.count(b" HTTP/1.1\r\n")


@dataclass
class Sandbox:
    """Where the parts of the cloud are."""

    auth_url: str
    mysql: sa.URL
    amqp: str

    @classmethod
    def read(cls, state: Path) -> Sandbox:
        """Takes the addresses from the sandbox's files."""
        clouds = yaml.safe_load((state / "clouds.yaml").read_text())["clouds"]
        with contextlib.suppress(FileNotFoundError):
            told = json.loads((state / "sandbox.json").read_text())
            return cls(
                clouds["sandbox-demo"]["auth"]["auth_url"],
                sa.make_url(told["mysql_url"]),
                told["amqp_url"],
            )
        return cls(
            clouds["sandbox-demo"]["auth"]["auth_url"],
            sa.make_url("mysql+pymysql://root@127.0.0.1:3306/"),
            "rabbit://guest:guest@127.0.0.1:5672/",
        )

    def session(self, user: str) -> ksession.Session:
        """A session of a user in the project of the same name."""
        auth = v3.Password(
            auth_url=self.auth_url,
            username=user,
            password="password",
            project_name=user,
            user_domain_name="Default",
            project_domain_name="Default",
        )
        return ksession.Session(auth=auth)


@contextlib.contextmanager
def region(sandbox: Sandbox, url: str) -> Iterator[str]:
    """A region whose identity service is behind a proxy: upstream takes it from the catalog."""
    admin = sandbox.session("admin")
    name = f"bench-{uuid.uuid4().hex[:8]}"
    base = sandbox.auth_url
    (service,) = admin.get(f"{base}/services?type=identity").json()["services"]
    admin.post(f"{base}/regions", json={"region": {"id": name}})
    made = []
    try:
        for interface in ("public", "internal", "admin"):
            endpoint = {
                "service_id": service["id"],
                "interface": interface,
                "region_id": name,
                "url": url,
            }
            answer = admin.post(f"{base}/endpoints", json={"endpoint": endpoint})
            made.append(answer.json()["endpoint"]["id"])
        yield name
    finally:
        for ident in made:
            admin.delete(f"{base}/endpoints/{ident}")
        admin.delete(f"{base}/regions/{name}")


@dataclass
class Peer:
    """A service that is measured.

    Args:
        name: as the table says it.
        command: what starts it; ``{conf}`` and ``{port}`` are filled in.
        environment: variables on top of ours.
    """

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    port: int = 0

    def start(self, folder: Path, settings: dict[str, dict[str, Any]]) -> None:
        """Starts it with a configuration and waits for its answer."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        sections = {**settings, "api": {"port": self.port, "workers": 1, **settings["api"]}}
        conf = folder / f"{self.name}.conf"
        conf.write_text(
            "".join(
                f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
                for section, values in sections.items()
            )
        )
        filled = [part.format(conf=conf, port=self.port) for part in self.command]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("OS_")},
            **{key: value.format(conf=conf) for key, value in self.environment.items()},
        }
        with (folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                filled, stdout=log, stderr=log, cwd=folder, env=environment
            )
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.2)
        raise SystemExit((folder / f"{self.name}.log").read_text()[-3000:])

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def cpu(self) -> float:
        """CPU seconds of its processes until now."""
        assert self.process is not None
        parent = psutil.Process(self.process.pid)
        times = [process.cpu_times() for process in (parent, *parent.children(recursive=True))]
        return sum(item.user + item.system for item in times)


class Client:
    """One connection that stays.

    Args:
        port: of the service.
        token: sent with each request.
    """

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self._headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": LATEST,
            "Accept": "application/json",
        }

    def get(self, path: str) -> bytes:
        """The body of an answer that must be a success."""
        for attempt in (1, 2):
            try:
                self._connection.request("GET", path, headers=self._headers)
                answer = self._connection.getresponse()
                body = answer.read()
                break
            except (http.client.HTTPException, ConnectionError):
                # The server ended a connection that was idle.
                self._connection.close()
                if attempt == 2:
                    raise
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
        return body


def fill(url: sa.URL, clusters: int, project: str, user: str) -> str:
    """Inserts one template and clusters with two node groups each; returns a cluster's UUID."""
    engine = sa.create_engine(url)
    template = str(uuid.uuid4())
    idents = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{template}/{n}")) for n in range(clusters)]
    owned = {"project_id": project, "created_at": sa.func.now()}
    labels = {"kube_tag": "v1.31.1", "auto_scaling_enabled": "true", "zone": "nova"}
    with engine.begin() as connection:
        connection.execute(
            sa.insert(ClusterTemplate).values(
                uuid=template, name="bench", user_id=user, image_id="i", flavor_id="m1",
                master_flavor_id="m1", coe="kubernetes", server_type="vm",
                cluster_distro="ubuntu", labels={"kube_tag": "v1.30.0", "other": "1"}, **owned,
            )
        )  # fmt: skip
        for number, ident in enumerate(idents):
            connection.execute(
                sa.insert(Cluster).values(
                    uuid=ident, name=f"bench-{number}", user_id=user, cluster_template_id=template,
                    labels=labels, status="CREATE_COMPLETE", stack_id=f"stack-{number}",
                    create_timeout=60, api_address="https://203.0.113.10:6443", keypair="k",
                    flavor_id="m1", master_flavor_id="m1", health_status="HEALTHY",
                    health_status_reason={"api": "ok"}, **owned,
                )
            )  # fmt: skip
            for role, count in (("master", 1), ("worker", 3)):
                connection.execute(
                    sa.insert(NodeGroup).values(
                        uuid=str(uuid.uuid4()), name=f"default-{role}", cluster_id=ident,
                        role=role, node_count=count, is_default=True, labels=labels,
                        flavor_id="m1", image_id="i", status="CREATE_COMPLETE", min_node_count=0,
                        node_addresses=[f"10.0.0.{n}" for n in range(count)], **owned,
                    )
                )  # fmt: skip
    engine.dispose()
    return idents[clusters // 2]


def timed(peer: Peer, token: str, path: str, seconds: float) -> dict[str, float]:
    """Seconds of one client's requests, answers a second of four, CPU seconds per request."""
    client = Client(peer.port, token)
    single: list[float] = []
    end = time.monotonic() + seconds
    while len(single) < 3 or time.monotonic() < end:
        begin = time.perf_counter()
        client.get(path)
        single.append(time.perf_counter() - begin)
    done = [0] * CLIENTS
    cpu, begin = peer.cpu(), time.perf_counter()

    def run(number: int) -> None:
        mine = Client(peer.port, token)
        while time.perf_counter() < begin + seconds or not done[number]:
            mine.get(path)
            done[number] += 1

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - begin
    return {
        "p50": statistics.median(single),
        "rate": sum(done) / spent,
        "cpu": (peer.cpu() - cpu) / sum(done),
    }


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="environment of magnum 23.0.0")
    parser.add_argument("--sandbox", type=Path, default=os.environ.get("TRIMARAN_SANDBOX"))
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="*", metavar="REQUEST", help="show, node groups…")
    options = parser.parse_args()
    sandbox = Sandbox.read(Path(options.sandbox or ".sandbox"))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        run(options, sandbox, Path(name), stack)


def run(
    options: argparse.Namespace, sandbox: Sandbox, folder: Path, stack: contextlib.ExitStack
) -> None:
    """One benchmark, whose parts end with the stack."""
    database = f"bench_{uuid.uuid4().hex[:8]}"
    engine = sa.create_engine(sandbox.mysql, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {database} CHARACTER SET utf8mb4"))

    def drop() -> None:
        with engine.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {database}"))

    stack.callback(drop)
    url = sandbox.mysql.set(database=database)
    keystone = Counter(*_address(sandbox.auth_url), calls)
    mysql = Counter(url.host or "127.0.0.1", url.port or 3306, selects)
    stack.callback(keystone.close)
    stack.callback(mysql.close)
    proxied = f"http://127.0.0.1:{keystone.port}/v3"
    where = stack.enter_context(region(sandbox, proxied))
    counted = _settings(
        url.set(host="127.0.0.1", port=mysql.port), proxied, where, sandbox, folder, options.peer
    )
    direct = _settings(url, sandbox.auth_url, "RegionOne", sandbox, folder, options.peer)
    peers = [
        Peer("ours", [sys.executable, "-m", "trimaran", "magnum-api", "--config-file", "{conf}"])
    ]
    if options.peer:
        peers.append(_upstream(options.peer, folder))
        manage = [options.peer / "bin/magnum-db-manage", "--config-file", folder / "migrate.conf"]
        _write(folder / "migrate.conf", {"database": direct["database"]})
        subprocess.run([*manage, "upgrade", "head"], check=True, stdout=subprocess.DEVNULL)
    migrate.upgrade(url.render_as_string(hide_password=False), "magnum")
    demo = sandbox.session("demo")
    project, user = str(demo.get_project_id()), str(demo.get_user_id())
    one = fill(url, options.clusters, project, user)
    paths = {
        f"list of {options.clusters}": "/v1/clusters",
        f"detail of {options.clusters}": "/v1/clusters/detail",
        "page of 50": "/v1/clusters?limit=50",
        "show": f"/v1/clusters/{one}",
        "node groups": f"/v1/clusters/{one}/nodegroups",
        "stats": f"/v1/stats?project_id={project}",
    }
    if options.only:
        paths = {label: path for label, path in paths.items() if label in options.only}
    token = str(demo.get_token())
    for peer in peers:
        stack.callback(peer.stop)
    costs: dict[tuple[str, str], tuple[int, int]] = {}
    for peer in peers:
        peer.start(folder, counted)
        client = Client(peer.port, token)
        for label, path in paths.items():
            client.get(path)
            before = mysql.total, keystone.total
            client.get(path)
            costs[peer.name, label] = mysql.total - before[0], keystone.total - before[1]
        peer.stop()
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    for peer in peers:
        peer.start(folder, direct)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    for _ in range(options.rounds):
        for label, path in paths.items():
            for peer in peers:
                result = timed(peer, token, path, options.seconds)
                results.setdefault((peer.name, label), []).append(result)
    print(f"load after: {os.getloadavg()[0]:.1f}\n")
    _print(list(paths), [peer.name for peer in peers], results, costs)


def _print(
    labels: list[str],
    names: list[str],
    results: dict[tuple[str, str], list[dict[str, float]]],
    costs: dict[tuple[str, str], tuple[int, int]],
) -> None:
    print("| request | | req/s | p50 ms | CPU ms | SELECTs | Keystone | ratio req/s | ratio CPU |")
    print("|---|---|---|---|---|---|---|---|---|")
    for label in labels:
        middle = {
            name: {
                key: statistics.median(result[key] for result in results[name, label])
                for key in ("rate", "p50", "cpu")
            }
            for name in names
        }
        for name in names:
            mine, ratios = middle[name], " | "
            if name == "ours" and len(names) > 1:
                other = middle[names[1]]
                ratios = f"{mine['rate'] / other['rate']:.1f} | {other['cpu'] / mine['cpu']:.1f}"
            sql, keystone = costs[name, label]
            print(
                f"| {label} | {name} | {mine['rate']:.2f} | {mine['p50'] * 1000:.1f} "
                f"| {mine['cpu'] * 1000:.1f} | {sql} | {keystone} | {ratios} |"
            )


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.split("/")[2].partition(":")
    return host, int(port)


def _write(path: Path, settings: dict[str, dict[str, Any]]) -> None:
    path.write_text(
        "".join(
            f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
            for section, values in settings.items()
        )
    )


def _settings(
    url: sa.URL,
    auth_url: str,
    region_name: str,
    sandbox: Sandbox,
    folder: Path,
    venv: Path | None,
) -> dict[str, dict[str, Any]]:
    credentials = {
        "auth_type": "password",
        "auth_url": auth_url,
        "username": "magnum",
        "password": "password",
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": region_name,
    }
    connection = url.render_as_string(hide_password=False)
    paste = {"api_paste_config": venv / "etc/magnum/api-paste.ini"} if venv else {}
    return {
        "DEFAULT": {"transport_url": sandbox.amqp, "host": "bench", "state_path": folder},
        "api": {"host": "127.0.0.1", **paste},
        "conductor": {"topic": f"bench-{uuid.uuid4().hex[:8]}"},
        "database": {"connection": connection},
        "keystone_authtoken": {**credentials, "www_authenticate_uri": auth_url},
        "keystone_auth": credentials,
        "certificates": {"cert_manager_type": "x509keypair"},
        "cluster": {"temp_cache_dir": folder},
        "oslo_concurrency": {"lock_path": folder},
    }


def _upstream(venv: Path, folder: Path) -> Peer:
    # magnum.wsgi.api reads sys.argv, which gunicorn's own arguments must not reach.
    (folder / "magnum_wsgi.py").write_text(
        "import os, sys\n"
        "sys.argv = ['magnum-api', '--config-file', os.environ['PEER_CONF']]\n"
        "from magnum.wsgi.api import application\n"
    )
    command = [
        str(venv / "bin/gunicorn"), "--bind", "127.0.0.1:{port}", "--workers", "1",
        "--threads", str(CLIENTS), "--timeout", "300", "magnum_wsgi:application",
    ]  # fmt: skip
    return Peer(
        "magnum 23.0.0",
        command,
        {"PEER_CONF": "{conf}", "PYTHONPATH": str(folder), "PYTHONWARNINGS": "ignore"},
    )


if __name__ == "__main__":
    main()
