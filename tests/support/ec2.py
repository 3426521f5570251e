"""An EC2 API of our own, as an operator would start it, for tests with real clients."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import requests
from botocore.config import Config
from keystoneauth1.exceptions import Forbidden

from tests.support.cloud import ADMIN, DEMO, CloudEnv, Person

#: seconds; a dozen processes that start at once take a minute on a busy machine
PATIENCE = 240.0


def write_conf(directory: Path, cloud: CloudEnv, database: str, **options: Any) -> Path:
    """Writes an ``ec2api.conf`` for the sandbox.

    Args:
        directory: where to.
        cloud: the sandbox.
        database: URL of the database.
        options: more options of ``[DEFAULT]``, or of another section as ``section__name``.
    """
    sections: dict[str, dict[str, Any]] = {
        "DEFAULT": {
            "ec2api_listen": "127.0.0.1",
            "ec2api_workers": 1,
            "metadata_listen": "127.0.0.1",
            "metadata_workers": 1,
            "s3_listen": "127.0.0.1",
            "state_path": str(directory),
            "disable_ec2_classic": True,
            "external_network": "public",
        },
        "database": {"connection": database},
        "keystone_authtoken": {
            "auth_type": "password",
            "auth_url": cloud.auth_url,
            "username": "ec2api",
            "password": "password",
            "project_name": "service",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
            "region_name": cloud.region,
        },
        "metadata": {"metadata_proxy_shared_secret": "s3cret"},
        "trimaran": {"threads": 8},
    }
    for name, value in options.items():
        section, _, option = name.rpartition("__")
        sections.setdefault(section or "DEFAULT", {})[option] = value
    path = directory / "ec2api.conf"
    lines = [
        "\n".join([f"[{section}]", *(f"{name} = {value}" for name, value in values.items())])
        for section, values in sections.items()
    ]
    path.write_text("\n\n".join(lines) + "\n")
    return path


@dataclass
class Daemon:
    """One running daemon.

    Attributes:
        url: where it listens.
        log: the file with its output.
    """

    url: str
    log: Path
    process: subprocess.Popen[bytes]
    killed: bool = False

    def kill(self) -> None:
        """kill -9, and waits for its end."""
        self.killed = True
        self.process.kill()
        self.process.wait(60)

    def client(self, keys: tuple[str, str], service: str = "ec2", **config: Any) -> Any:
        """A boto3 client that never retries, so that a test sees each answer."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="RegionOne",
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
            config=Config(retries={"max_attempts": 0}, read_timeout=PATIENCE, **config),
        )

    def lines(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")


def keys_of(cloud: CloudEnv, who: Person = DEMO) -> tuple[str, str]:
    """The (access, secret) keys of a person, made by the administrator where it may not."""
    try:
        return cloud.ec2_credentials(who)
    except Forbidden:
        theirs = cloud.session(who)
        made = cloud.session(ADMIN).post(
            f"{cloud.auth_url}/users/{theirs.get_user_id()}/credentials/OS-EC2",
            json={"tenant_id": theirs.get_project_id()},
        )
        row = made.json()["credential"]
        return row["access"], row["secret"]


@contextlib.contextmanager
def running(
    command: str, conf: Path, port: int, *, dies: bool = False, **environment: str
) -> Iterator[Daemon]:
    """Starts ``trimaran <command>`` and stops it with SIGTERM.

    Args:
        command: such as ``ec2-api``.
        conf: its configuration, which names the port.
        port: where it will listen.
        dies: it is killed by somebody else than :meth:`Daemon.kill`.
        environment: more environment variables.
    """
    log = conf.parent / f"{command}-{port}.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "trimaran", command, "--config-file", str(conf)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
    try:
        _wait(url, process, log)
        daemon = Daemon(url, log, process)
        yield daemon
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
    wanted = -signal.SIGKILL if dies or daemon.killed else 0
    assert process.returncode == wanted, log.read_text(errors="replace")[-4000:]


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(requests.ConnectionError, requests.Timeout):
            if requests.get(f"{url}/healthcheck", timeout=30).status_code == 200:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(log.read_text(errors="replace")[-4000:])
        time.sleep(0.1)
