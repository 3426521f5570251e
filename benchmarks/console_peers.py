"""The two consoles that are compared, as processes, and the cloud that they share."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from start import free_port
from trimaran.db import migrate

HERE = Path(__file__).parent
API = "/api/v1"
SECRET = "0123456789abcdef0123456789abcdef"


@dataclass
class Cloud:
    """Where the parts of the sandbox are.

    Attributes:
        auth_url: Keystone's v3 URL.
        mysql: the server's URL.
        services: base URLs by service.
    """

    auth_url: str
    mysql: sa.URL
    services: dict[str, str]

    @classmethod
    def read(cls, state: Path) -> Cloud:
        """Reads the sandbox's description."""
        told = json.loads((state / "sandbox.json").read_text())
        return cls(told["auth_url"], sa.make_url(told["mysql_url"]), told["urls"])

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """A database with the console's tables, gone at the end."""
        name = f"bench_{uuid.uuid4().hex[:8]}"
        engine = sa.create_engine(self.mysql, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
        url = self.mysql.set(database=name).render_as_string(hide_password=False)
        try:
            migrate.upgrade(url, "console")
            yield url
        finally:
            with engine.connect() as connection:
                connection.execute(sa.text(f"DROP DATABASE {name}"))
            engine.dispose()


@dataclass
class Peer:
    """One console under the benchmark.

    Attributes:
        name: in the tables.
        venv: environment of skyline-apiserver; None is ours.
        port: where it listens while it runs.
    """

    name: str
    venv: Path | None = None
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(
        self,
        folder: Path,
        auth_url: str,
        database: str,
        groups: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Starts it with one worker and waits until it answers.

        Args:
            folder: for its files.
            auth_url: Keystone's.
            database: URL of its own database.
            groups: more settings of skyline.yaml.
        """
        self.port = free_port()
        etc = folder / f"{'ours' if self.venv is None else 'upstream'}-{self.port}"
        etc.mkdir()
        settings: dict[str, dict[str, Any]] = {
            "default": {
                "database_url": database,
                "secret_key": SECRET,
                "log_dir": str(etc),
                "policy_file_path": str(folder / "policy"),
            },
            "openstack": {
                "keystone_url": f"{auth_url}/",
                "system_user_name": "skyline",
                "system_user_password": "password",
                "system_project": "service",
                "default_region": "RegionOne",
            },
        }
        for group, values in (groups or {}).items():
            settings[group] = {**settings.get(group, {}), **values}
        file = etc / "skyline.yaml"
        file.write_text(yaml.safe_dump(settings))
        env = {**os.environ, "OS_CONFIG_DIR": str(etc), "PYTHONWARNINGS": "ignore"}
        if self.venv is None:
            words = [sys.executable, str(HERE / "console_probe.py"), str(file), str(self.port)]
        else:
            env["PYTHONPATH"] = str(HERE)
            words = [
                str(self.venv / "bin/gunicorn"), "-k", "uvicorn.workers.UvicornWorker", "-w", "1",
                "-b", f"127.0.0.1:{self.port}", "--timeout", "300", "--keep-alive", "75",
                "console_probe:upstream",
            ]  # fmt: skip
        with (etc / "out").open("wb") as out:
            self.process = subprocess.Popen(words, env=env, stdout=out, stderr=out)
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                if self.call("GET", "/config")[0] == 200:
                    return
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{self.name} does not start:\n{(etc / 'out').read_text()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
            self.process = None

    def call(
        self,
        method: str,
        path: str,
        *,
        cookie: str = "",
        body: Any = None,
        form: str | None = None,
        headers: Mapping[str, str] | None = None,
        prefix: str = API,
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Sends one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = dict(headers or {})
        if cookie:
            headers["Cookie"] = f"session={cookie}"
        data = form
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, prefix + path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def login(self, user: str) -> str:
        """Logs in; returns the session cookie."""
        body = {"username": user, "password": "password", "domain": "Default"}
        status, headers, text = self.call("POST", "/login", body=body)
        if status != 200:
            raise SystemExit(f"{self.name}: login of {user}: {status} {text[:300]!r}")
        for cookie in headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            if name == "session":
                return value.strip('"')
        raise SystemExit(f"{self.name}: no session cookie")

    def stall(self) -> float:
        """The longest stall of its event loop since the last question, in milliseconds."""
        _, _, body = self.call("GET", "/bench/stall", prefix="")
        return float(json.loads(body)["longest_ms"])


class Bystander(Peer):
    """A process that only turns its event loop, to tell the machine's part in a stall."""

    def begin(self) -> None:
        """Starts it."""
        self.port = free_port()
        words = [sys.executable, str(HERE / "console_probe.py"), "idle", str(self.port)]
        self.process = subprocess.Popen(words)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.stall()
                return
            time.sleep(0.1)
        raise SystemExit("the bystander does not start")
