"""Consoles as real processes, and the parts around them that tests break."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import requests
import yaml

from tests.support.keystone import token_body

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
SECRET = "0123456789abcdef0123456789abcdef"


def eventually(check: Callable[[], Any], what: str, *, pause: float = 0.05) -> Any:
    """Waits until the check is true; returns its value."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        value = check()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


class Console:
    """One replica: a parent with its workers.

    Args:
        place: its directory.
        port: where it listens.
        settings: content of skyline.yaml.
        workers: processes.
    """

    def __init__(self, place: Path, port: int, settings: dict[str, Any], workers: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{port}/api/v1"
        self.base = f"http://127.0.0.1:{port}"
        self.log = place / "log"
        file = place / "skyline.yaml"
        file.write_text(yaml.safe_dump(settings))
        command = [sys.executable, "-m", "trimaran", "console", "--config", str(file)]
        command += ["--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)]
        self.started = time.monotonic()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def wait_until_ready(self) -> float:
        """Waits for the first answer; returns the seconds that it took."""

        def ready() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(self.log.read_text())
            with contextlib.suppress(requests.RequestException):
                return requests.get(f"{self.url}/config", timeout=30).status_code == 200
            return False

        eventually(ready, "the console answers")
        return time.monotonic() - self.started

    def login(self, username: str = "demo", password: str = "password") -> requests.Response:
        return requests.post(
            f"{self.url}/login",
            json={"username": username, "password": password},
            timeout=PATIENCE,
        )

    def profile(self, cookie: str = "", **headers: str) -> requests.Response:
        """GET /profile on a connection of its own, so that any worker may get it."""
        if cookie:
            headers["Cookie"] = f"session={cookie}"
        return requests.get(f"{self.url}/profile", headers=headers, timeout=PATIENCE)

    def logout(self, cookie: str) -> requests.Response:
        headers = {"Cookie": f"session={cookie}"}
        return requests.post(f"{self.url}/logout", headers=headers, timeout=PATIENCE)

    def stop(self) -> int:
        """Ends it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Ends whatever is left of it."""
        if self.process.poll() is None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            self.process.kill()
            self.process.wait(PATIENCE)
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(children, timeout=PATIENCE)


class SlowKeystone:
    """A Keystone whose password logins wait for a word of the test.

    It names itself in its catalog, so the console's every question comes here.
    """

    def __init__(self) -> None:
        keystone = self
        self.gate = threading.Event()
        self.waiting = threading.Semaphore(0)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                auth = json.loads(self.rfile.read(size))["auth"]["identity"]
                user = auth.get("password", {}).get("user", {}).get("name")
                if user != "skyline":
                    keystone.waiting.release()
                    keystone.gate.wait(PATIENCE)
                self._send(201, keystone.token(), {"X-Subject-Token": f"token-of-{user}"})

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path.endswith("/projects"):
                    self._send(
                        200,
                        {"projects": [{"id": "p1", "name": "demo", "enabled": True}]},
                    )
                elif path.endswith("/auth/tokens"):
                    self._send(200, keystone.token())
                elif path.endswith("/domains"):
                    self._send(200, {"domains": []})
                else:
                    self._send(200, {"user": {"id": "u1"}})

            def _send(
                self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
            ) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v3"

    def token(self) -> dict[str, Any]:
        """A token with a catalog that leads here."""
        endpoint = {"interface": "public", "region_id": "RegionOne", "url": self.url}
        return token_body(catalog=[{"type": "identity", "endpoints": [endpoint]}])

    def close(self) -> None:
        """Ends it."""
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)
