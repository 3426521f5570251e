"""PostgreSQL for the tests (``--with postgresql``).

PostgreSQL refuses to run as root: then Debian's user ``postgres`` runs it, with the
data below that user's own home, because a state directory under /root is closed to it.
It listens on loopback only, trusts every local user and never syncs: tests only.
"""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path

import psycopg

from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes, clean_environment
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import HOST, Settings


@dataclass(frozen=True)
class Place:
    """Where the data is and who runs the server (None: we ourselves)."""

    data: Path
    uid: int | None
    gid: int | None


def programs() -> Path | None:
    """The directory of the newest installed server's programs, off the PATH in Debian."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def missing(settings: Settings) -> list[str]:
    """The Debian packages needed and not installed."""
    return ["postgresql"] if "postgresql" in settings.extras and programs() is None else []


def url(settings: Settings) -> str:
    """SQLAlchemy URL of the server's own database, as superuser."""
    return f"postgresql+psycopg://postgres@{HOST}:{settings.postgresql_port}/postgres"


def place(settings: Settings) -> Place:
    """Where and as whom the server runs.

    Raises:
        SandboxError: we are root and there is no user postgres.
    """
    if os.geteuid() != 0:
        return Place(settings.path("data", "postgresql"), None, None)
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise SandboxError(
            "PostgreSQL cannot run as root, and there is no user postgres."
        ) from None
    # found again also when settings.json is gone: the name depends on the path alone
    name = f"trimaran-sandbox-{settings.ident}"
    return Place(Path(user.pw_dir) / name, user.pw_uid, user.pw_gid)


def ensure(settings: Settings, processes: Processes, say: Progress) -> None:
    """Have the server answer."""
    bin_dir, where = programs(), place(settings)
    if bin_dir is None:
        raise SandboxError("PostgreSQL's server programs are not installed.")
    env = clean_environment() | {"LC_ALL": "C.UTF-8"}
    complete = settings.path("run", "postgresql-data-complete")
    if not complete.exists() or not where.data.exists():
        _create_data(bin_dir, where, processes, env)
        complete.touch()
    options = {
        "listen_addresses": HOST,
        "port": str(settings.postgresql_port),
        "unix_socket_directories": "",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "shared_buffers": "32MB",
        "max_connections": "200",
    }
    command = [str(bin_dir / "postgres"), "-D", str(where.data)]
    for key, value in options.items():
        command += ["-c", f"{key}={value}"]
    started = processes.start(
        "postgresql", command, env, cwd=where.data, user=where.uid, group=where.gid
    )
    processes.wait("postgresql", lambda: answers(settings.postgresql_port), 60)
    if started:
        say(f"PostgreSQL at {HOST}:{settings.postgresql_port}")


def answers(port: int) -> bool:
    """Whether the server at this port serves (not only starts)."""
    try:
        with psycopg.connect(
            host=HOST, port=port, user="postgres", dbname="postgres", connect_timeout=2
        ):
            return True
    except psycopg.Error:
        return False


def remove(settings: Settings) -> None:
    """Forget the data."""
    if programs() is not None and place(settings).data.exists():
        shutil.rmtree(place(settings).data, ignore_errors=True)


def _create_data(bin_dir: Path, where: Place, processes: Processes, env: dict[str, str]) -> None:
    shutil.rmtree(where.data, ignore_errors=True)
    where.data.mkdir(parents=True, mode=0o700)
    command = [str(bin_dir / "initdb"), "-D", str(where.data), "-U", "postgres"]
    command += ["--auth=trust", "--encoding=UTF8", "--no-sync"]
    if where.uid is not None and where.gid is not None:
        os.chown(where.data, where.uid, where.gid)
        command = [
            "setpriv",
            f"--reuid={where.uid}",
            f"--regid={where.gid}",
            "--clear-groups",
            "--",
            *command,
        ]
    processes.run("postgresql", command, env)
