"""An EC2 API with a database of its own, and the AWS CLI as somebody would type it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import _database
from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ports import free_port
from trimaran.db import migrate

Aws = Callable[..., Any]


@contextlib.contextmanager
def service(cloud: CloudEnv, home: Path, kind: str = "sqlite", **options: Any) -> Iterator[Daemon]:
    """Runs ``trimaran ec2-api``.

    Args:
        cloud: the sandbox.
        home: a directory for it.
        kind: of the database: ``sqlite``, ``mariadb`` or ``postgresql``.
        options: as of `write_conf`.
    """
    with contextlib.contextmanager(_database)(kind, home) as url:
        migrate.upgrade(url, "ec2")
        port = free_port()
        conf = write_conf(home, cloud, url, ec2api_listen_port=port, **options)
        with running("ec2-api", conf, port) as daemon:
            yield daemon


def aws_cli(keys: tuple[str, str]) -> tuple[str, dict[str, str]]:
    """The AWS CLI's program, and an environment with these keys and nothing of the machine's."""
    program = shutil.which("aws", path=str(Path(sys.executable).parent)) or shutil.which("aws")
    assert program, "the AWS CLI is not installed"
    return program, {
        **os.environ,
        "AWS_ACCESS_KEY_ID": keys[0],
        "AWS_SECRET_ACCESS_KEY": keys[1],
        "AWS_DEFAULT_REGION": "RegionOne",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_PAGER": "",
    }


def cli(api: Daemon, keys: tuple[str, str]) -> Aws:
    """A function that runs ``aws`` and returns its JSON, or its stderr where it must fail."""
    program, environment = aws_cli(keys)

    def run(*arguments: str, fails: bool = False) -> Any:
        done = subprocess.run(
            [program, "--endpoint-url", api.url, "--output", "json", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if fails:
            assert done.returncode != 0, done.stdout
            return done.stderr
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else {}

    return run
