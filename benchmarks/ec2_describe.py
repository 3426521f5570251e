"""What a DescribeInstances costs: calls, statements, wall and CPU time, by number of instances.

    python -m benchmarks.ec2_describe [--instances 150 500 1000] [--rounds 5] [--latency 0.02]

A cloud of prepared answers runs in a process of its own, so that the CPU time
shown is the facade's alone: the JSON of the listings parsed, items and tags
read (SQLite), instances described, and the XML rendered.  For each size it
prints the first describe of all (which stores the items), a later one, its
rendering, and a describe of one id, as medians of the rounds.  The slowest
backend listing is timed alone, as the measure that the describe is held to.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from trimaran.cloud import Cloud
from trimaran.config import ec2 as ec2_config
from trimaran.config.common import defaults
from trimaran.db import Database, migrate
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.protocol import model, render
from trimaran.identity import Token, count_calls, from_password

PROJECT = "0123456789abcdef0123456789abcdef"
HOUR = "2030-01-01T00:00:00.000000Z"


def catalog(base: str) -> list[dict[str, Any]]:
    """A catalog whose services are all in one process."""
    paths = {
        "compute": "/nova/v2.1",
        "network": "/neutron",
        "image": "/glance",
        "volumev3": f"/cinder/v3/{PROJECT}",
    }
    return [
        {
            "type": kind,
            "endpoints": [
                {
                    "interface": "public",
                    "region": "RegionOne",
                    "region_id": "RegionOne",
                    "url": base + path,
                }
            ],
        }
        for kind, path in paths.items()
    ]


def token_body(base: str) -> dict[str, Any]:
    """A token's body, good for both the caller and the service user."""
    return {
        "token": {
            "user": {"id": "u1", "name": "demo", "domain": {"id": "default", "name": "Default"}},
            "project": {
                "id": PROJECT,
                "name": "demo",
                "domain": {"id": "default", "name": "Default"},
            },
            "roles": [{"id": "r", "name": "member"}],
            "methods": ["password"],
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": HOUR,
            "catalog": catalog(base),
        }
    }


def server(number: int) -> dict[str, Any]:
    """A server as Nova 2.79 shows it to an administrator, with a volume."""
    server_id, volume_id = (str(uuid.uuid5(uuid.NAMESPACE_URL, f"{w}{number}")) for w in "sv")
    return {
        "id": server_id,
        "name": f"server-{number}",
        "tenant_id": PROJECT,
        "user_id": "u1",
        "status": "ACTIVE",
        "created": "2026-01-02T03:04:05Z",
        "updated": "2026-01-02T03:04:15Z",
        "hostId": "c2151aec31e7fb395e3b7c54881919bb638fa3510a4b9b967519e6a8",
        "metadata": {},
        "image": {"id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"image{number % 20}"))},
        "flavor": {
            "original_name": "m1.small",
            "vcpus": 1,
            "ram": 2048,
            "disk": 20,
            "ephemeral": 0,
            "swap": 0,
            "extra_specs": {},
        },
        "key_name": "key",
        "addresses": {
            "private": [
                {
                    "addr": f"10.0.{number // 250}.{number % 250}",
                    "version": 4,
                    "OS-EXT-IPS:type": "fixed",
                    "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:c2:d2:86",
                }
            ]
        },
        "security_groups": [{"name": "default"}],
        "locked": False,
        "host_status": "UP",
        "description": None,
        "tags": [],
        "config_drive": "",
        "OS-DCF:diskConfig": "MANUAL",
        "OS-EXT-AZ:availability_zone": "nova",
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:power_state": 1,
        "OS-SRV-USG:launched_at": "2026-01-02T03:04:09.000000",
        "OS-EXT-SRV-ATTR:reservation_id": f"r-{number:08d}",
        "OS-EXT-SRV-ATTR:launch_index": 0,
        "OS-EXT-SRV-ATTR:root_device_name": "/dev/vda",
        "OS-EXT-SRV-ATTR:hostname": f"server-{number}",
        "OS-EXT-SRV-ATTR:kernel_id": "",
        "OS-EXT-SRV-ATTR:ramdisk_id": "",
        "OS-EXT-SRV-ATTR:user_data": None,
        "os-extended-volumes:volumes_attached": [{"id": volume_id, "delete_on_termination": False}],
    }


def volume(row: dict[str, Any]) -> dict[str, Any]:
    """The volume of a server as Cinder shows it."""
    return {
        "id": row["os-extended-volumes:volumes_attached"][0]["id"],
        "status": "in-use",
        "size": 1,
        "availability_zone": "nova",
        "os-vol-tenant-attr:tenant_id": PROJECT,
        "attachments": [
            {
                "server_id": row["id"],
                "device": "/dev/vdb",
                "attached_at": "2026-01-02T03:04:09.000000",
            }
        ],
    }


def serve(instances: int, latency: float, ready: Any) -> None:
    """The cloud: every answer is made before the first question."""
    servers = [server(number) for number in range(instances)]
    volumes = [volume(row) for row in servers]
    answers = {
        f"/nova/v2.1/servers/{row['id']}": json.dumps({"server": row}).encode() for row in servers
    }
    prefix = f"/cinder/v3/{PROJECT}/volumes"
    answers |= {f"{prefix}/{v['id']}": json.dumps({"volume": v}).encode() for v in volumes}
    answers["/nova/v2.1/servers/detail"] = json.dumps({"servers": servers}).encode()
    answers[f"{prefix}/detail"] = json.dumps({"volumes": volumes}).encode()
    groups = [{"id": str(uuid.uuid5(uuid.NAMESPACE_URL, "group")), "name": "default"}]
    answers["/neutron/v2.0/security-groups"] = json.dumps({"security_groups": groups}).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet an answer: Nagle's algorithm would add 40 ms to two.
        disable_nagle_algorithm = True
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            time.sleep(latency)
            body = answers.get(self.path.split("?")[0])
            self._send(200 if body else 404, body or b"{}")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            base = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            self._send(201, json.dumps(token_body(base)).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Subject-Token", "service-token")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    ready.send((httpd.server_address[1], [row["id"] for row in servers]))
    httpd.serve_forever()


class Timed:
    """Medians of wall and CPU seconds, and of what one run asked for."""

    def __init__(self, rounds: int, db: Database, run: Callable[[], Any]) -> None:
        walls, cpus = [], []
        statements: list[str] = []

        def note(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
            statements.append(statement)

        sa.event.listen(db.engine, "before_cursor_execute", note)
        for _ in range(rounds):
            statements.clear()
            wall, cpu = time.perf_counter(), time.process_time()
            with count_calls() as calls:
                self.result = run()
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        sa.event.remove(db.engine, "before_cursor_execute", note)
        self.wall, self.cpu = statistics.median(walls), statistics.median(cpus)
        self.calls = calls.total
        self.statements = len([each for each in statements if not each.startswith("BEGIN")])

    def row(self, *what: str) -> str:
        return (
            f"{what[0]:>9}  {what[1]:<18} {self.calls:>5} {self.statements:>10} "
            f"{self.wall * 1000:>9.1f} {self.cpu * 1000:>9.1f}"
        )


def measure(instances: int, rounds: int, latency: float) -> None:
    """Prints the rows of one size."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    cloud_process = context.Process(target=serve, args=(instances, latency, theirs), daemon=True)
    cloud_process.start()
    try:
        port, os_ids = ours.recv()
        base = f"http://127.0.0.1:{port}"
        with tempfile.TemporaryDirectory() as directory:
            _measure(base, os_ids, rounds, Path(directory))
    finally:
        cloud_process.terminate()
        cloud_process.join()


def _measure(base: str, os_ids: list[str], rounds: int, directory: Path) -> None:
    url = f"sqlite:///{directory}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    (directory / "ec2api.conf").write_text("[DEFAULT]\n")
    conf = ec2_config.load([str(directory / "ec2api.conf")])
    identity = from_password(
        auth_url=f"{base}/v3",
        username="ec2api",
        password="x",
        project_name="service",
        own=defaults(),
        region="RegionOne",
    )
    cloud = Cloud(identity, region="RegionOne")
    token = Token.from_body("user-token", token_body(base))
    db = Database(url)
    nothing: Any = None

    def describe(**request: Any) -> dict[str, Any]:
        ctx = Context(
            token=token,
            request_id="req-1",
            action="DescribeInstances",
            region="RegionOne",
            user=cloud.as_user(token),
            admin=cloud.as_service(),
            db=db,
            conf=conf,
            enforcer=nothing,
            policy_context=nothing,
        )
        return describe_instances(ctx, request)

    count = str(len(os_ids))
    cloud.as_service().compute.server(os_ids[0])  # the service's token and the connections
    operation = model.load().operation("DescribeInstances")
    assert operation is not None
    first = Timed(1, db, describe)
    print(first.row(count, "all, first"))
    later = Timed(rounds, db, describe)
    assert len(later.result["Reservations"]) == len(os_ids)
    print(later.row(count, "all"))
    xml = Timed(
        rounds,
        db,
        lambda: render.render(operation, later.result, version="2016-11-15", request_id="req-1"),
    )
    print(xml.row(count, "all, render"))
    wanted = later.result["Reservations"][0]["Instances"][0]["InstanceId"]
    print(Timed(rounds, db, lambda: describe(InstanceIds=[wanted])).row(count, "one id"))
    listing = Timed(rounds, db, lambda: cloud.as_service().compute.servers(all_tenants=True))
    print(listing.row(count, "Nova's listing"))
    allowed = listing.wall * 1.3 + 0.001 * len(os_ids)
    print(f"{count:>9}  all / (1.3 x listing + 1 ms each) = {later.wall / allowed:.2f}")
    db.dispose()
    identity.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="What a DescribeInstances costs.")
    parser.add_argument("--instances", type=int, nargs="+", default=[150, 500, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds per answer")
    arguments = parser.parse_args()
    print("instances  what               calls statements   wall ms    cpu ms")
    for instances in arguments.instances:
        measure(instances, arguments.rounds, arguments.latency)


if __name__ == "__main__":
    main()
