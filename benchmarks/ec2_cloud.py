"""A cloud of prepared answers that both our EC2 API and upstream's can be put in front of.

One process plays Keystone, Nova, Neutron, Glance and Cinder for one project
with so many servers, each with a port and a volume.  A listing costs
``latency`` plus ``per_row`` seconds for each row that it returns, which is what
makes calls and listings worth sparing.  ``GET /control`` tells the requests to
the services since it was last asked.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from benchmarks.ec2_describe import PROJECT, server, volume
from benchmarks.ec2_played import Played, Server

IMAGES = 20


def image(number: int) -> dict[str, Any]:
    """A public image, named by servers of `ec2_describe.server`."""
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"image{number}")),
        "name": f"image-{number}",
        "status": "active",
        "visibility": "public",
        "owner": PROJECT,
        "container_format": "bare",
        "disk_format": "qcow2",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "os_hidden": False,
        "min_disk": 0,
        "min_ram": 0,
        "size": 1 << 20,
        "tags": [],
        "schema": "/v2/schemas/image",
        "file": "/v2/images/x/file",
        "self": "/v2/images/x",
    }


def port(row: dict[str, Any], number: int) -> dict[str, Any]:
    """The port of a server."""
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"port{number}")),
        "name": "",
        "device_id": row["id"],
        "device_owner": "compute:nova",
        "network_id": str(uuid.uuid5(uuid.NAMESPACE_URL, "network")),
        "project_id": PROJECT,
        "tenant_id": PROJECT,
        "mac_address": f"fa:16:3e:00:{number // 256:02x}:{number % 256:02x}",
        "fixed_ips": [
            {
                "subnet_id": str(uuid.uuid5(uuid.NAMESPACE_URL, "subnet")),
                "ip_address": row["addresses"]["private"][0]["addr"],
            }
        ],
        "security_groups": [str(uuid.uuid5(uuid.NAMESPACE_URL, "group"))],
        "allowed_address_pairs": [],
        "status": "ACTIVE",
    }


class Answers:
    """What the services answer, by path.

    Args:
        instances: servers.
        latency: seconds of each answer.
        per_row: further seconds of each row of a listing.
    """

    def __init__(self, instances: int, latency: float, per_row: float) -> None:
        servers = [server(number) for number in range(instances)]
        for row in servers:
            row |= {
                "progress": 0,
                "links": [],
                "accessIPv4": "",
                "accessIPv6": "",
                "OS-EXT-SRV-ATTR:host": "host",
                "OS-EXT-SRV-ATTR:instance_name": row["name"],
            }
            # Upstream asks with a microversion in which the flavor is a link.
            row["flavor"] = {**row["flavor"], "id": "1"}
        volumes = [
            {
                **volume(row),
                "name": "",
                "description": None,
                "created_at": "2026-01-02T03:04:05.000000",
                "volume_type": "plain",
                "snapshot_id": None,
                "encrypted": False,
                "multiattach": False,
                "metadata": {},
            }
            for row in servers
        ]
        for row in volumes:
            row["attachments"][0] |= {"id": row["id"], "volume_id": row["id"]}
        flavor = {"id": "1", "name": "m1.small", "ram": 2048, "disk": 20, "vcpus": 1}
        group = {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, "group")),
            "name": "default",
            "description": "",
            "project_id": PROJECT,
            "tenant_id": PROJECT,
            "security_group_rules": [],
        }
        self.latency, self.per_row = latency, per_row
        self.bodies: dict[str, bytes] = {}
        self.seconds: dict[str, float] = {}
        cinder = f"/cinder/v3/{PROJECT}"
        self._listing("/nova/v2.1/servers/detail", "servers", servers)
        self._listing("/nova/v2.1/flavors/detail", "flavors", [flavor])
        self._listing(f"{cinder}/volumes/detail", "volumes", volumes)
        self._listing("/glance/v2/images", "images", [image(n) for n in range(IMAGES)])
        ports = [port(row, number) for number, row in enumerate(servers)]
        self._listing("/neutron/v2.0/ports", "ports", ports)
        self._listing("/neutron/v2.0/security-groups", "security_groups", [group])
        for empty in ("floatingips", "networks", "subnets", "routers"):
            self._listing(f"/neutron/v2.0/{empty}", empty, [])
        for row in servers:
            self._one(f"/nova/v2.1/servers/{row['id']}", {"server": row})
        for row in volumes:
            self._one(f"{cinder}/volumes/{row['id']}", {"volume": row})

    def _listing(self, path: str, name: str, rows: list[dict[str, Any]]) -> None:
        self._one(path, {name: rows})
        self.seconds[path] += self.per_row * len(rows)

    def _one(self, path: str, body: Any) -> None:
        self.bodies[path] = json.dumps(body).encode()
        self.seconds[path] = self.latency


def serve(instances: int, latency: float, per_row: float, ready: Any) -> None:
    """Runs the cloud until it is terminated."""
    known = Answers(instances, latency, per_row)

    class Cloud(Played):
        def found(self, path: str, query: str) -> tuple[bytes | None, float]:
            return known.bodies.get(path), known.seconds.get(path, latency)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = urlsplit(self.path).path
            if path not in ("/v3/auth/tokens", "/v3/ec2tokens"):
                self.send(403, b'{"forbidden": {"message": "no"}}')
                return
            if path == "/v3/ec2tokens":
                self.note(path)
                time.sleep(latency)
            self.send(201 if path == "/v3/auth/tokens" else 200, self.token())

    httpd = Server(Cloud)
    ready.send(httpd.server_address[1])
    httpd.serve_forever()


@contextlib.contextmanager
def cloud(instances: int, latency: float, per_row: float) -> Iterator[str]:
    """Runs the cloud in a process of its own; yields its URL."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=serve, args=(instances, latency, per_row, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()
