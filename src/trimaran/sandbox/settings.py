"""Where things are and on which ports: the settings of one sandbox.

A sandbox is a state directory.  What was chosen at its first ``up`` (base port,
database and broker in use, extras) is kept in ``settings.json`` there, so that later
commands need no options.  Names of databases and of the broker's virtual host carry
the base port and a digest of the state directory: several sandboxes share one
MariaDB and one RabbitMQ without seeing each other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimaran.sandbox.places import write_file
from trimaran.sandbox.problem import SandboxError

HOST = "127.0.0.1"
REGION = "RegionOne"
PASSWORD = "password"
DEFAULT_BASE_PORT = 15000


@dataclass(frozen=True)
class Api:
    """One API process: its port is base port + ``offset``."""

    offset: int
    threads: int
    probe: str = "/"


APIS: dict[str, Api] = {
    "keystone": Api(0, 4, "/v3"),
    "glance": Api(292, 3),
    "barbican": Api(311, 2),
    "neutron": Api(696, 4),
    "nova": Api(774, 4),
    "cinder": Api(776, 4),
    "placement": Api(778, 4),
}
OPTIONAL_APIS: dict[str, Api] = {"nova-metadata": Api(775, 2)}
DAEMONS = ("nova-conductor", "nova-scheduler", "nova-compute", "cinder-scheduler", "cinder-volume")
EXTRAS = (*OPTIONAL_APIS, "postgresql")
# Servers of our own, used when none can be reused; upstream's default ports stay free
# for whatever the machine runs or will run itself.
SERVER_OFFSETS = {"mariadb": 306, "postgresql": 432, "rabbitmq": 567, "epmd": 569}
# the port on which Erlang nodes talk to each other, and rabbitmqctl to the broker
AMQP_DISTRIBUTION_OFFSET = 568

# Keystone first, because everything waits for it; then by the time the migrations take.
DATABASES: dict[str, tuple[str, ...]] = {
    "keystone": ("keystone",),
    "neutron": ("neutron",),
    "nova": ("nova_api", "nova", "nova_cell0"),
    "cinder": ("cinder",),
    "glance": ("glance",),
    "barbican": ("barbican",),
    "placement": ("placement",),
}


@dataclass
class Settings:
    """What one sandbox is; saved as ``settings.json`` in its state directory."""

    state: Path
    base_port: int = DEFAULT_BASE_PORT
    extras: tuple[str, ...] = ()
    console_port: int = 9998
    ec2_port: int = 8788
    magnum_port: int = 9511
    ident: str = ""
    generation: str = ""
    mysql_port: int = 0
    mysql_own: bool = False
    amqp_port: int = 0
    amqp_own: bool = False
    amqp_vhost: str = "/"

    def __post_init__(self) -> None:
        if not self.ident:
            self.ident = hashlib.sha256(str(self.state).encode()).hexdigest()[:6]

    # -- saved form ------------------------------------------------------
    @classmethod
    def load(cls, state: str | os.PathLike[str], **given: Any) -> Settings:
        """Settings of a state directory, with the options of this command on top.

        Args:
            state: the state directory; need not exist.
            given: options of the command line; None means "as it was".

        Raises:
            SandboxError: another base port than the one the state was made with, or a
                base port that leaves no room for the others.
        """
        path = Path(state).expanduser().resolve()
        saved: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError, ValueError):
            loaded = json.loads((path / "settings.json").read_text())
            saved = loaded if isinstance(loaded, dict) else {}
        if not re.fullmatch(r"[A-Za-z0-9/._+@=~-]+", str(path)):
            raise SandboxError(
                f"The state directory's path {str(path)!r} has characters that some of the "
                "services cannot take: use letters, digits and ._+@=~- only."
            )
        known = {field.name for field in dataclasses.fields(cls)} - {"state"}
        values = {key: value for key, value in saved.items() if key in known}
        extras = tuple(values.pop("extras", ()))
        wanted = {key: value for key, value in given.items() if value is not None}
        extras += tuple(name for name in wanted.pop("extras", ()) if name not in extras)
        base = wanted.get("base_port")
        if base and values.get("base_port", base) != base:
            raise SandboxError(
                f"{path} was made with base port {values['base_port']}, not {base}: "
                "use another --state, or run reset first."
            )
        values.update(wanted)
        result = cls(state=path, extras=extras, **values)
        if not 1024 <= result.base_port <= 65535 - 800:
            raise SandboxError("The base port must be between 1024 and 64735.")
        return result

    def save(self) -> None:
        """Write ``settings.json`` so that a reader sees the old or the new one, whole."""
        values = dataclasses.asdict(self)
        del values["state"]
        write_file(self.state / "settings.json", json.dumps(values, indent=1) + "\n")

    # -- places ----------------------------------------------------------
    def path(self, *parts: str) -> Path:
        """A path below the state directory."""
        return self.state.joinpath(*parts)

    def config_file(self, service: str) -> Path:
        """The main configuration file of a service (``nova-compute`` has its own)."""
        name = "glance-api" if service == "glance" else service
        return self.path("etc", service.split("-")[0], f"{name}.conf")

    # -- addresses -------------------------------------------------------
    @property
    def apis(self) -> dict[str, Api]:
        """All API processes of this sandbox, the optional ones included."""
        return APIS | {name: api for name, api in OPTIONAL_APIS.items() if name in self.extras}

    def port(self, name: str) -> int:
        """The port of an API process, or of a server of ours."""
        apis = APIS | OPTIONAL_APIS
        return self.base_port + (apis[name].offset if name in apis else SERVER_OFFSETS[name])

    @property
    def own_servers(self) -> tuple[str, ...]:
        """The servers that are started, not reused; epmd is a part of RabbitMQ."""
        return (
            *(("mariadb",) if self.mysql_own else ()),
            *(("epmd", "rabbitmq") if self.amqp_own else ()),
            *(("postgresql",) if "postgresql" in self.extras else ()),
        )

    def url(self, api: str, tail: str = "") -> str:
        """The URL of an API process, without a trailing slash unless in ``tail``."""
        return f"http://{HOST}:{self.port(api)}{tail}"

    @property
    def auth_url(self) -> str:
        """Keystone's v3 root."""
        return self.url("keystone", "/v3")

    @property
    def postgresql_port(self) -> int:
        """The port of ``--with postgresql``."""
        return self.port("postgresql")

    @property
    def amqp_url(self) -> str:
        """transport_url of this sandbox (its own virtual host on a shared broker)."""
        return f"rabbit://guest:guest@{HOST}:{self.amqp_port}/{self.amqp_vhost.strip('/')}"

    @property
    def mysql_url(self) -> str:
        """SQLAlchemy URL of the database server, no database in it."""
        return f"mysql+pymysql://root@{HOST}:{self.mysql_port}"

    def database(self, name: str) -> str:
        """The name of a service's database."""
        return f"sbx{self.base_port}_{self.ident}_{name}"

    def database_url(self, name: str) -> str:
        """SQLAlchemy URL of a service's database."""
        return f"{self.mysql_url}/{self.database(name)}?charset=utf8mb4"

    # -- our services ----------------------------------------------------
    @property
    def own_services(self) -> tuple[tuple[str, str, str], ...]:
        """(type, name, URL) of the three services under test, for the catalog."""
        return (
            ("panel", "skyline", f"http://{HOST}:{self.console_port}"),
            ("ec2", "ec2", f"http://{HOST}:{self.ec2_port}/"),
            ("container-infra", "magnum", f"http://{HOST}:{self.magnum_port}/v1"),
        )

    def process_names(self) -> list[str]:
        """Long-running processes, in the order in which ``status`` lists them."""
        return [*self.own_servers, *(f"{name}-api" for name in self.apis), *DAEMONS]
