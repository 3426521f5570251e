"""A MariaDB server that a test may kill and start again."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from trimaran.sandbox import packages
from trimaran.sandbox.mariadb import answers

_ROOT = ["--user=root"] if os.geteuid() == 0 else []


class OwnMariaDB:
    """A server with its data in a directory.

    Args:
        folder: where to.
        port: to listen on.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder
        self._data = folder / "mariadb"
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "mariadb-install-db",
            f"--datadir={self._data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--force",
        ).wait(300)
        self.start()

    def start(self) -> None:
        """Starts it and waits for its answer; it finds what was committed."""
        self._process = self._run(
            "mariadbd",
            f"--datadir={self._data}",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            # Relative to the data: a path may be too long.
            "--socket=m.sock",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M",
            "--character-set-server=utf8mb4",
        )
        deadline = time.monotonic() + 240
        while not answers(self.port):
            assert self._process.poll() is None, "MariaDB ended"
            assert time.monotonic() < deadline, "MariaDB does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9, and waits for its end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(120)

    def database(self, name: str) -> str:
        """Makes a database and returns its URL."""
        server = f"mysql+pymysql://root@127.0.0.1:{self.port}/"
        engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
        engine.dispose()
        return f"{server}{name}"

    def __enter__(self) -> OwnMariaDB:
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    def _run(self, tool: str, *arguments: str) -> Any:
        with (self._folder / f"{tool}.log").open("ab") as log:
            return subprocess.Popen(
                [packages.tool(tool) or tool, "--no-defaults", *arguments, *_ROOT],
                stdout=log,
                stderr=log,
            )
