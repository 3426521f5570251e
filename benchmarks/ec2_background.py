"""What EC2's background work costs: memory and time of a large bundle, and many jobs done once.

    python -m benchmarks.ec2_background --state .sandbox [--gib 1] [--jobs 500] [--processes 4]

A bundle of random bytes is put into our own S3 in parts of 10 MiB, registered,
and imported into a real Glance by one process that does nothing else; its peak
of resident memory is the kernel's own figure (VmHWM).  Then many jobs are
queued for several processes, and each run is counted.  The database is a
SQLite file for the bundle and MariaDB, as the sandbox has it, for the jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support import ec2_victims
from tests.support.cloud import CloudEnv
from tests.support.ec2 import keys_of, running, write_conf
from tests.support.ec2_bundle import write_large, write_pem
from tests.support.ec2_direct import requester
from tests.support.ec2_jobs import jobs_of
from tests.support.ports import free_port
from tests.support.processes import Fleet, Link
from trimaran import work
from trimaran.db import Database, migrate
from trimaran.db.models import work as states
from trimaran.ec2 import journal
from trimaran.ec2.jobs import Crew, start
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.images.image_register import register_image

PATIENCE = 1800.0
MIB = 1 << 20
WORKER = """
import sys
from trimaran.config import ec2
from trimaran.ec2.jobs import Crew
from trimaran.ec2.parts import assemble

crew = Crew(assemble(ec2.load(sys.argv[1:])))
print("ready", flush=True)
sys.stdin.readline()
crew.start()
sys.stdin.readline()
crew.stop()
"""


def peak(pid: int) -> float:
    """MiB of a process's largest resident memory so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmHWM")


@contextlib.contextmanager
def worker(conf: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that does background work, with nothing of ours but the service in it."""
    command = [sys.executable, "-c", WORKER, str(conf)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


def say(child: subprocess.Popen[str]) -> None:
    """Has the worker begin, then stop."""
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def import_bundle(cloud: CloudEnv, home: Path, gib: float) -> None:
    """One large bundle, from S3 to Glance."""
    size = int(gib * (1 << 30))
    migrate.upgrade(f"sqlite:///{home}/ec2.sqlite", "ec2")
    port = free_port()
    conf = write_conf(
        home,
        cloud,
        f"sqlite:///{home}/ec2.sqlite",
        s3_listen_port=port,
        s3_url=f"http://127.0.0.1:{port}",
        x509_root_private_key=write_pem(home),
        image_decryption_dir=home,
    )
    parts = ec2_victims.parts_of(conf)
    with running("ec2-s3", conf, port) as daemon:
        s3 = daemon.client(keys_of(cloud), "s3", s3={"addressing_style": "path"})
        s3.create_bucket(Bucket="large")
        began = time.monotonic()
        for name in write_large(home, size):
            with (home / name).open("rb") as source:
                s3.put_object(Bucket="large", Key=name, Body=source)
            (home / name).unlink()
        print(f"bundle of {size / MIB:.0f} MiB into S3: {time.monotonic() - began:.0f} s")
        call = requester(parts, cloud)
        image = call(register_image, Name="large", ImageLocation="large/image.manifest.xml")
        with worker(conf) as child:
            idle = peak(child.pid)
            began = time.monotonic()
            say(child)
            while jobs_of(parts.db, journal.BUNDLE)[0].state in states.UNFINISHED:
                time.sleep(0.5)
            took = time.monotonic() - began
            [job] = jobs_of(parts.db, journal.BUNDLE)
            print(
                f"import: {job.state} {job.error} in {took:.0f} s, {size / MIB / took:.0f} MiB/s, "
                f"peak memory {peak(child.pid):.0f} MiB (idle {idle:.0f} MiB)"
            )
            server = max(peak(pid) for pid in _family(daemon.process.pid))
            print(f"the S3 daemon's largest process: {server:.0f} MiB")
            say(child)
            child.wait(60)
        call(deregister_image, ImageId=image["ImageId"])
        left = [path.name for path in home.glob("trimaran-bundle-*")]
        print(f"temporary directories left: {len(left)}")
    parts.close()


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(int(child) for child in children)]


def count(link: Link, conf: str) -> None:
    """Does background work and tells each run of a job."""
    run = start.run

    def counted(ctx: Any, job: work.JobRun) -> None:
        link.tell("ran", id=job.id)
        run(ctx, job)

    start.run = counted
    parts = ec2_victims.parts_of(Path(conf))
    crew = Crew(parts)
    link.tell("ready")
    link.wait()
    crew.start()
    link.wait()
    crew.stop()
    parts.close()
    link.tell("stopped")


def many_jobs(cloud: CloudEnv, home: Path, url: str, jobs: int, processes: int) -> None:
    """Many jobs; each asks Nova for a server that is gone."""
    migrate.upgrade(url, "ec2")
    conf = write_conf(home, cloud, url)
    db = Database(url)

    def ask(session: Any) -> list[str]:
        rows = ({"project": "p", "server": str(uuid.uuid4())} for _ in range(jobs))
        return [work.enqueue(session, journal.START, row) for row in rows]

    ids = db.write(ask)
    with Fleet() as fleet:
        children = [fleet.start(count, str(conf)) for _ in range(processes)]
        fleet.until(lambda _: len(fleet.named("ready")) == processes, PATIENCE)
        began = time.monotonic()
        for child in children:
            child.say("work")
        while any(job.state in states.UNFINISHED for job in jobs_of(db, journal.START)):
            time.sleep(0.2)
        took = time.monotonic() - began
        for child in children:
            child.say("stop")
        fleet.until(lambda _: len(fleet.named("stopped")) == processes, PATIENCE)
        runs = Counter(event.data["id"] for event in fleet.named("ran"))
        shares = Counter(event.pid for event in fleet.named("ran"))
    done = Counter(job.state for job in jobs_of(db, journal.START))
    once = runs == Counter(ids)
    print(
        f"{jobs} jobs on {processes} processes in {took:.1f} s: {dict(done)}, "
        f"each run exactly once: {once}, shares {sorted(shares.values())}"
    )
    db.dispose()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=Path(".sandbox"))
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--processes", type=int, default=4)
    options = parser.parse_args()
    cloud = CloudEnv(options.state)
    server = json.loads((options.state / "sandbox.json").read_text())["mysql_url"]
    with tempfile.TemporaryDirectory() as home:
        if options.gib:
            import_bundle(cloud, Path(home), options.gib)
        if options.jobs:
            name = f"trimaran_bench_{uuid.uuid4().hex[:8]}"
            with _database(server, name) as url:
                many_jobs(cloud, Path(home), url, options.jobs, options.processes)


class _database:
    """A database of its own for as long as it is needed."""

    def __init__(self, server: str, name: str) -> None:
        self._server, self._name = server, name

    def __enter__(self) -> str:
        self._run(f"CREATE DATABASE {self._name} CHARACTER SET utf8mb4")
        return f"{self._server}{self._name}"

    def __exit__(self, *_: object) -> None:
        self._run(f"DROP DATABASE {self._name}")

    def _run(self, statement: str) -> None:
        import sqlalchemy as sa

        engine = sa.create_engine(self._server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(statement))
        engine.dispose()


if __name__ == "__main__":
    main()
