"""The database server: the machine's own when it lets us in, else one of ours.

A MariaDB on 127.0.0.1:3306 whose root has no password over TCP is used and never
stopped.  Otherwise a server is started from Debian's package with its data in the
state directory, as the user who runs the command, tuned for a throw-away cloud: no
flush on commit, no performance schema, a small buffer pool.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pymysql

from trimaran.sandbox import packages
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes, clean_environment
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import HOST, Settings

SHARED_PORT = 3306


@contextlib.contextmanager
def connect(port: int, database: str | None = None) -> Iterator[Any]:
    """A cursor as root, autocommitting."""
    connection = pymysql.connect(
        host=HOST,
        port=port,
        user="root",
        password="",
        database=database,
        autocommit=True,
        charset="utf8mb4",
        connect_timeout=10,
        client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
    )
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def answers(port: int) -> bool:
    """Whether a server lets root in without a password."""
    try:
        with connect(port) as cursor:
            cursor.execute("SELECT 1")
        return True
    except (pymysql.Error, OSError):
        return False


def kind(port: int) -> str:
    """The make and major version of a server: a dump of one is not for the other."""
    with connect(port) as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
    make = "mariadb" if "mariadb" in version.lower() else "mysql"
    return f"{make}{version.partition('.')[0]}"


def choose(settings: Settings, own: bool = False) -> None:
    """Decide whose server is used; a choice made before stays."""
    if settings.mysql_port:
        return
    settings.mysql_own = own or not answers(SHARED_PORT)
    settings.mysql_port = settings.port("mariadb") if settings.mysql_own else SHARED_PORT


def missing(settings: Settings) -> list[str]:
    """The Debian packages needed and not installed."""
    return ["mariadb-server"] if settings.mysql_own and not packages.tool("mariadbd") else []


def ensure(settings: Settings, processes: Processes, say: Progress) -> None:
    """Have the server answer.

    Raises:
        SandboxError: it cannot be started, or the shared one is gone.
    """
    if not settings.mysql_own:
        if not answers(settings.mysql_port):
            raise SandboxError(
                f"The MariaDB at {HOST}:{settings.mysql_port} that this sandbox was made with "
                "no longer answers: start it again, or run reset."
            )
        say(f"database: the MariaDB that runs at {HOST}:{settings.mysql_port}")
        return
    data = settings.path("data", "mysql")
    env = clean_environment()
    # mysql_install_db fills the directory in several steps; its own last is not known
    complete = settings.path("run", "mysql-data-complete")
    if not complete.exists():
        _create_data(settings, processes, env)
        complete.touch()
    command = [
        packages.tool("mariadbd") or "mariadbd",
        "--no-defaults",
        f"--datadir={data}",
        f"--bind-address={HOST}",
        f"--port={settings.mysql_port}",
        "--socket=mysql.sock",  # relative to the data directory: a path may be too long
        f"--pid-file={data}/mysqld.pid",
        "--skip-name-resolve",
        "--max-connections=400",
        "--performance-schema=OFF",
        "--innodb-buffer-pool-size=160M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
        "--sync-binlog=0",
        "--innodb-log-file-size=64M",
        "--innodb-flush-method=fsync",
        "--character-set-server=utf8mb4",
        "--collation-server=utf8mb4_general_ci",
    ]
    if os.geteuid() == 0:
        command.append("--user=root")
    started = processes.start("mariadb", command, env)
    processes.wait("mariadb", lambda: answers(settings.mysql_port), 90)
    if started:
        say(f"database: own MariaDB at {HOST}:{settings.mysql_port}")


def _create_data(settings: Settings, processes: Processes, env: dict[str, str]) -> None:
    data = settings.path("data", "mysql")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    processes.run(
        "mariadb",
        [
            packages.tool("mariadb-install-db") or "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            # a machine whose own name nobody can look up will do
            "--force",
            *(["--user=root"] if os.geteuid() == 0 else []),
        ],
        env,
    )
