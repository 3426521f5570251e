"""What the metadata service costs: a hit, a miss, and many guests that boot at once.

    python -m benchmarks.ec2_metadata [--guests 200] [--rounds 1000] [--latency 0.1] \
        [--upstream VENV --paste API-PASTE.INI]

The service runs as an operator starts it, with one process; a cloud of prepared
answers runs in another, and each of its answers takes ``--latency`` seconds.
Printed are a hit (over a connection that stays open, and with one of its own,
as Neutron's agent asks), a first question about a server beside its slowest
backend call and with the number of its calls, and a crawl of the whole tree by
all guests at the same time.  ``--upstream``, a virtual environment with ec2-api
17.0.0, has the same measured of that, with its cache in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import hmac
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.ec2_cloud import Answers
from benchmarks.ec2_describe import PROJECT, server
from benchmarks.ec2_played import Played, Server

from tests.support.ports import free_port
from tests.support.served import listens, served

SECRET = "benchmark"
SUBNET = str(uuid.uuid5(uuid.NAMESPACE_URL, "subnet"))
GROUP = str(uuid.uuid5(uuid.NAMESPACE_URL, "group"))
CONF = """
[DEFAULT]
state_path = {home}
api_paste_config = {paste}
my_ip = 127.0.0.1
metadata_listen = 127.0.0.1
metadata_listen_port = {port}
metadata_workers = 1
keystone_ec2_tokens_url = {cloud}/v3/ec2tokens
[database]
connection = {database}
[keystone_authtoken]
auth_type = password
auth_url = {cloud}/v3
username = ec2api
password = x
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne
[metadata]
metadata_proxy_shared_secret = {secret}
cache_expiration = 3600
[cache]
enabled = true
backend = dogpile.cache.memory
[oslo_concurrency]
lock_path = {home}
"""


def port_of(number: int, server_id: str) -> dict[str, Any]:
    """The port of a server."""
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"port{number}")),
        "device_id": server_id,
        "mac_address": f"fa:16:3e:00:{number // 256:02x}:{number % 256:02x}",
        "fixed_ips": [{"subnet_id": SUBNET, "ip_address": f"10.0.{number // 250}.{number % 250}"}],
        "security_groups": [GROUP],
        "created_at": "2026-01-02T03:04:05Z",
    }


def serve(guests: int, latency: float, ready: Any) -> None:
    """The cloud: the answers are made before the first question."""
    servers = [server(number) for number in range(guests)]
    answers: dict[str, Any] = {
        "/neutron/v2.0/subnets": {
            "subnets": [{"id": SUBNET, "cidr": "10.0.0.0/16", "ip_version": 4}]
        },
        "/nova/v2.1/os-keypairs/key": {"keypair": {"name": "key", "public_key": "ssh-rsa AAAA"}},
    }
    texts = Answers(guests, latency, 0).bodies
    ports = {}
    for number, row in enumerate(servers):
        base = f"/nova/v2.1/servers/{row['id']}"
        known = json.loads(texts[base])["server"]
        answers[base] = {"server": {**known, "OS-EXT-SRV-ATTR:user_data": "IyEvYmluL3NoCg=="}}
        volume = row["os-extended-volumes:volumes_attached"][0]["id"]
        attachment = {"volumeId": volume, "device": "/dev/vdb", "delete_on_termination": False}
        answers[f"{base}/os-volume_attachments"] = {"volumeAttachments": [attachment]}
        ports[row["id"]] = port_of(number, row["id"])
    texts |= {path: json.dumps(answer).encode() for path, answer in answers.items()}

    class Cloud(Played):
        def found(self, path: str, query: str) -> tuple[bytes | None, float]:
            wanted = parse_qs(query).get("device_id")
            if path == "/neutron/v2.0/ports" and wanted:
                return json.dumps({"ports": [ports[each] for each in wanted]}).encode(), latency
            return texts.get(path), latency

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send(201, self.token())

    httpd = Server(Cloud)
    ready.send((httpd.server_address[1], [row["id"] for row in servers]))
    httpd.serve_forever()


@contextlib.contextmanager
def cloud(guests: int, latency: float) -> Iterator[tuple[str, list[str]]]:
    """The cloud's process: its URL and its servers."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=serve, args=(guests, latency, theirs), daemon=True)
    process.start()
    try:
        port, servers = ours.recv()
        yield f"http://127.0.0.1:{port}", servers
    finally:
        process.terminate()
        process.join()


@contextlib.contextmanager
def service(
    cloud_url: str, directory: Path, migrate: list[str], serve: list[str], paste: str = ""
) -> Iterator[int]:
    """A metadata service with one process; its port.

    Args:
        cloud_url: the cloud.
        directory: for its files.
        migrate: the command that makes the schema; the configuration follows its first word.
        serve: the daemon's command.
        paste: upstream's paste file.
    """
    port = free_port()
    conf = directory / "ec2api.conf"
    made = CONF.format(
        port=port,
        database=f"sqlite:///{directory}/ec2.sqlite",
        cloud=cloud_url,
        secret=SECRET,
        home=directory,
        paste=paste,
    )
    conf.write_text(made)
    env = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    log = directory / "log"
    named = ["--config-file", str(conf)]
    try:
        with log.open("wb") as output:
            subprocess.run(
                [*migrate[:1], *named, *migrate[1:]],
                check=True,
                timeout=120,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
            )
        with served([*serve, *named], log, lambda: listens(port), patience=60, env=env):
            yield port
    except BaseException:
        print(log.read_text()[-4000:], file=sys.stderr)
        raise


def headers_of(server_id: str) -> dict[str, str]:
    """What the agent adds for a server."""
    signature = hmac.new(SECRET.encode(), server_id.encode(), hashlib.sha256).hexdigest()
    return {
        "X-Instance-ID": server_id,
        "X-Tenant-ID": PROJECT,
        "X-Instance-ID-Signature": signature,
        "X-Forwarded-For": "10.0.0.5",
    }


def ask(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> bytes:
    """One question; anything but 200 ends the benchmark."""
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body[:200]!r}")
    return body


def median(rounds: int, run: Callable[[], Any]) -> float:
    """Milliseconds of one of many runs."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def hits(port: int, server_id: str, rounds: int) -> None:
    """Prints what a hit costs."""
    headers, path = headers_of(server_id), "/latest/meta-data/instance-id"
    kept = http.client.HTTPConnection("127.0.0.1", port)
    ask(kept, path, headers)

    def anew() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        ask(connection, path, {**headers, "Connection": "close"})
        connection.close()

    print(f"hit, open connection       {median(rounds, lambda: ask(kept, path, headers)):8.2f} ms")
    print(f"hit, connection of its own {median(rounds, anew):8.2f} ms")


def misses(port: int, cloud_url: str, servers: list[str]) -> None:
    """Prints what a first question costs beside its slowest backend call."""
    kept = http.client.HTTPConnection("127.0.0.1", port)
    nova = http.client.HTTPConnection(urlsplit(cloud_url).netloc)
    left = iter(servers)

    def first() -> None:
        server_id = next(left)
        ask(kept, "/latest/meta-data/instance-id", headers_of(server_id))

    first()  # the service's own token, and the connections
    ask(nova, "/control", {})
    first()
    calls = len(json.loads(ask(nova, "/control", {})))
    rounds = len(servers) - 2
    miss = median(rounds, first)
    call = median(rounds, lambda: ask(nova, f"/nova/v2.1/servers/{servers[0]}", {}))
    print(f"miss                       {miss:8.2f} ms, {calls} backend calls")
    print(f"its slowest backend call   {call:8.2f} ms, miss / call = {miss / call:.2f}")


class Guest:
    """A guest that boots: it reads everything that it is shown, one after the other."""

    def __init__(self, port: int, server_id: str, version: str) -> None:
        self._port, self._version = port, version
        self._headers = "".join(f"{n}: {v}\r\n" for n, v in headers_of(server_id).items())
        self.times: list[float] = []
        self.errors: list[str] = []

    async def crawl(self) -> None:
        """Reads the tree as cloud-init does."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await self._get(f"/{self._version}/user-data")
            await self._below(f"/{self._version}/meta-data/")
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(type(error).__name__)
        self._writer.close()

    async def _below(self, path: str) -> None:
        for line in filter(None, (await self._get(path)).decode().split("\n")):
            name = f"{line.split('=')[0]}/openssh-key" if "=" in line else line
            if name.endswith("/"):
                await self._below(path + name)
            else:
                await self._get(path + name)

    async def _get(self, path: str) -> bytes:
        started = time.perf_counter()
        request = f"GET {path} HTTP/1.1\r\nHost: metadata\r\n{self._headers}\r\n"
        self._writer.write(request.encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        body = await self._reader.readexactly(length)
        self.times.append(time.perf_counter() - started)
        status = head.split(" ")[1]
        if status != "200":
            self.errors.append(f"{status} {path}")
            return b""
        return body


def crawl(port: int, servers: list[str], version: str) -> None:
    """Prints how many guests fare that boot at the same time."""
    guests = [Guest(port, server_id, version) for server_id in servers]

    async def boot() -> None:
        await asyncio.gather(*(guest.crawl() for guest in guests))

    started = time.perf_counter()
    asyncio.run(boot())
    wall = time.perf_counter() - started
    times = sorted(each for guest in guests for each in guest.times)
    errors = [error for guest in guests for error in guest.errors]
    print(
        f"{len(guests)} guests at once: {len(times)} answers in {wall:.1f} s "
        f"({len(times) / wall:.0f}/s), median {times[len(times) // 2] * 1000:.0f} ms, "
        f"slowest {times[-1] * 1000:.0f} ms, errors: {len(errors)} {errors[:3] or ''}"
    )


def measure(
    arguments: argparse.Namespace, migrate: list[str], serve: list[str], paste: str = ""
) -> None:
    """Prints the figures of one service."""
    with (
        cloud(arguments.misses + 2 + arguments.guests, arguments.latency) as (cloud_url, servers),
        tempfile.TemporaryDirectory() as directory,
        service(cloud_url, Path(directory), migrate, serve, paste) as port,
    ):
        first = servers[: arguments.misses + 2]
        misses(port, cloud_url, first)
        hits(port, first[0], arguments.rounds)
        crawl(port, servers[len(first) :], arguments.version)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="What the metadata service costs.")
    parser.add_argument("--guests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--misses", type=int, default=30)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds per answer")
    parser.add_argument("--version", default="2021-03-23", help="of the tree that guests crawl")
    parser.add_argument("--upstream", help="virtual environment with ec2-api 17.0.0")
    parser.add_argument("--paste", default="", help="its etc/ec2api/api-paste.ini")
    arguments = parser.parse_args()
    place = Path(sys.executable).parent
    ours = [sys.executable, "-m", "trimaran", "ec2-metadata"]
    measure(arguments, [str(place / "ec2-api-manage"), "db_sync"], ours)
    if arguments.upstream:
        place = Path(arguments.upstream).absolute() / "bin"
        # The newest tree that it has.
        arguments.version = "2009-04-04"
        print(f"--- ec2-api 17, of which guests crawl the tree {arguments.version}")
        measure(
            arguments,
            [str(place / "ec2-api-manage"), "db_sync"],
            [str(place / "ec2-api-metadata")],
            str(Path(arguments.paste).absolute()),
        )


if __name__ == "__main__":
    main()
