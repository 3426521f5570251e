"""Our EC2 API and ec2-api 17 as daemons, each with SQLite and one worker, for the same cloud."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cloud import CloudEnv
from tests.support.ec2 import running, write_conf
from tests.support.ports import free_port
from tests.support.served import listens, served
from trimaran.db import migrate


@dataclass(frozen=True)
class Upstream:
    """Where ec2-api 17.0.0 is.

    Attributes:
        venv: virtual environment with it and the libraries of its time.
        paste: its ``etc/ec2api/api-paste.ini``.
    """

    venv: Path
    paste: Path


@contextlib.contextmanager
def ours(home: Path, cloud: CloudEnv, auth_url: str, **options: Any) -> Iterator[str]:
    """Runs ours; yields its URL.

    Args:
        home: a directory for it, not there yet.
        cloud: the cloud.
        auth_url: Keystone's URL, if it is not the cloud's own.
        options: more options of its configuration.
    """
    home.mkdir()
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    conf = write_conf(
        home,
        cloud,
        url,
        ec2api_listen_port=port,
        keystone_authtoken__auth_url=auth_url,
        **options,
    )
    with running("ec2-api", conf, port) as daemon:
        yield daemon.url


@contextlib.contextmanager
def upstream(
    peer: Upstream, home: Path, cloud: CloudEnv, auth_url: str, **options: Any
) -> Iterator[str]:
    """Runs ec2-api 17; yields its URL.  Arguments as of `ours`."""
    home.mkdir()
    port = free_port()
    theirs = {
        "ec2api_listen_port": port,
        "api_paste_config": peer.paste.absolute(),
        "my_ip": "127.0.0.1",
        "ec2_host": "127.0.0.1",
        "keystone_ec2_tokens_url": f"{auth_url}/ec2tokens",
        "keystone_authtoken__auth_url": auth_url,
        "oslo_concurrency__lock_path": home,
        **options,
    }
    conf = write_conf(home, cloud, f"sqlite:///{home}/ec2.sqlite", **theirs)
    place = peer.venv.absolute() / "bin"
    env = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    log = home / "log"
    named = ["--config-file", str(conf)]
    try:
        with log.open("wb") as output:
            subprocess.run(
                [str(place / "ec2-api-manage"), *named, "db_sync"],
                check=True,
                timeout=120,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
            )
        with served(
            [str(place / "ec2-api"), *named], log, lambda: listens(port), patience=60, env=env
        ):
            yield f"http://127.0.0.1:{port}"
    except BaseException:
        print(f"--- ec2-api\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
        raise
