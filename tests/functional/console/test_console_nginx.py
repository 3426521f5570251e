"""The generated proxy in Debian's nginx, before a real cloud and a real console API.

What is broken here: the API comes after nginx was asked for, it dies under
nginx, two endpoints of one type appear in the catalog and one goes again.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
import yaml

from tests.support.cloud import ADMIN, CloudEnv
from tests.support.console_service import PATIENCE, SECRET, eventually

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "container" / "start_console.sh"
PAGE = "<!doctype html><title>console</title>"
BINARIES = str(Path(sys.executable).parent)
TOOLS = {
    "skyline-nginx-generator": "trimaran.console.tools.nginx_generator",
    "trimaran": "trimaran",
}


@pytest.fixture(scope="module")
def nginx() -> str:
    """The binary; a machine without it fails, as with every other part."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    assert found, "nginx is not installed: apt-get install nginx-light"
    return found


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Place:
    """A directory with a front end, skyline.yaml and the commands on a path of their own."""

    def __init__(self, root: Path, cloud_env: CloudEnv) -> None:
        self.root = root
        # nginx' workers are another user when the tests run as root.
        root.chmod(0o755)
        for name in ("static", "log", "run", "etc", "bin"):
            (root / name).mkdir()
        (root / "static" / "index.html").write_text(PAGE)
        script = root / "static" / "main.js"
        script.write_text("console.log(1)")
        with gzip.open(f"{script}.gz", "wb") as packed:
            packed.write(b"console.log(1)")
        self.settings: dict[str, Any] = {
            "default": {
                "secret_key": SECRET,
                "log_file": "/dev/stdout",
                "log_dir": str(root / "log"),
                "database_url": f"sqlite:///{root}/console.sqlite",
                "secure_proxy_addr_header": "X-Real-IP",
            },
            "openstack": {
                "keystone_url": cloud_env.auth_url,
                "system_user_password": "password",
                "default_region": cloud_env.region,
            },
            "trimaran": {"threads": 8},
        }
        (root / "etc" / "skyline.yaml").write_text(yaml.safe_dump(self.settings))
        for command, module in TOOLS.items():
            file = root / "bin" / command
            file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
            file.chmod(0o755)
        self.conf = root / "nginx.conf"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.root}/bin:{BINARIES}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        return {**os.environ, "OS_CONFIG_DIR": str(self.root / "etc"), "PATH": path}

    def generate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.root / "bin" / "skyline-nginx-generator"), "-o", str(self.conf)]
        command += ["--static-path", str(self.root / "static"), "--run-dir", str(self.root / "run")]
        return subprocess.run(
            [*command, *arguments],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture
def place(tmp_path: Path, cloud_env: CloudEnv) -> Iterator[Place]:
    # Below /tmp and not below pytest's directory, which only its owner may enter.
    root = Path(f"/tmp/trimaran-nginx-{uuid.uuid4().hex[:8]}")
    root.mkdir()
    yield Place(root, cloud_env)
    shutil.rmtree(root)


class Api:
    """Stands in for the console API: says what it was asked."""

    def __init__(self) -> None:
        api = self
        self.asked: list[tuple[str, dict[str, str], int]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(0)

            def do_PUT(self) -> None:
                size = 0
                if self.headers.get("Transfer-Encoding") == "chunked":
                    while length := int(self.rfile.readline(), 16):
                        size += len(self.rfile.read(length))
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    size = len(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(size)

            def _answer(self, size: int) -> None:
                api.asked.append((self.path, dict(self.headers), size))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(PATIENCE)


@pytest.fixture
def api() -> Iterator[Api]:
    stub = Api()
    yield stub
    stub.close()


@pytest.fixture
def serve(place: Place, nginx: str) -> Iterator[Callable[[int], None]]:
    """Starts nginx with the generated file; returns when it listens on the port."""
    running: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> None:
        log = (place.root / "nginx.out").open("wb")
        process = subprocess.Popen(
            [nginx, "-c", str(place.conf), "-g", "daemon off;"], stdout=log, stderr=log
        )
        log.close()
        running.append(process)
        eventually(lambda: listens(port), "nginx listens")

    yield start
    for process in running:
        process.terminate()
        process.wait(PATIENCE)


def test_the_proxy_serves_console_api_and_cloud(
    place: Place,
    nginx: str,
    api: Api,
    serve: Callable[[int], None],
    cloud_env: CloudEnv,
    free_port: Callable[[], int],
) -> None:
    port = free_port()
    made = place.generate(
        "--listen-address", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{api.port}"
    )
    assert made.returncode == 0, made.stderr
    tested = subprocess.run(
        [nginx, "-t", "-c", str(place.conf)], capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stderr
    assert "warn" not in tested.stderr.replace('"user" directive', "")
    serve(port)
    base = f"http://127.0.0.1:{port}"
    region = cloud_env.region.lower()

    # The front end: its page for every route, never remembered; its files for a day.
    for path in ("/", "/index.html", "/base/overview", "/auth/login?referer=/x"):
        page = requests.get(base + path, timeout=60)
        assert (page.status_code, page.text) == (200, PAGE), path
        assert page.headers["Cache-Control"] == "no-cache"
    script = requests.get(f"{base}/main.js", timeout=60)
    assert script.text == "console.log(1)"
    assert script.headers["Content-Encoding"] == "gzip"
    assert "max-age=86400" in script.headers["Cache-Control"]
    assert "nginx/" not in script.headers["Server"]

    # The API: path, and who asks.
    sent = {"X-Real-IP": "6.6.6.6", "X-Forwarded-For": "9.9.9.9"}
    for path, seen in {
        "/api/openstack/skyline/api/v1/config?x=%2F": "/api/v1/config?x=%2F",
        "/api/v1/openapi.json": "/api/v1/openapi.json",
    }.items():
        assert requests.get(base + path, headers=sent, timeout=60).status_code == 200
        asked, headers, _ = api.asked[-1]
        assert asked == seen
        assert headers["Host"] == f"127.0.0.1:{port}"
        assert headers["X-Real-IP"] == "127.0.0.1"
        assert headers["X-Forwarded-For"] == "9.9.9.9, 127.0.0.1"
        assert headers["X-Forwarded-Proto"] == "http"

    # The cloud: each service below the region, its redirects brought back.
    token = cloud_env.session(ADMIN).get_token()
    for name, path, status in (
        ("keystone", "/v3/auth/projects", 200),
        ("nova", "/v2.1/servers", 200),
        ("neutron", "/v2.0/networks", 200),
        ("glance", "/v2/images", 200),
        ("placement", "/", 200),
    ):
        answer = requests.get(
            f"{base}/api/openstack/{region}/{name}{path}",
            headers={"X-Auth-Token": str(token)},
            timeout=60,
        )
        assert answer.status_code == status, (name, answer.text)
    assert (
        requests.get(f"{base}/api/openstack/{region}/nova/v2.1/servers", timeout=60).status_code
        == 401
    )


def test_bodies_of_any_size_stream_through(
    place: Place, api: Api, serve: Callable[[int], None], free_port: Callable[[], int]
) -> None:
    port = free_port()
    made = place.generate(
        "--listen-address", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{api.port}"
    )
    assert made.returncode == 0, made.stderr
    serve(port)
    url = f"http://127.0.0.1:{port}/api/v1/image"
    megabyte = b"x" * 1048576
    assert requests.put(url, data=megabyte * 20, timeout=60).status_code == 200
    assert requests.put(url, data=(megabyte for _ in range(20)), timeout=60).status_code == 200
    assert [size for _, _, size in api.asked] == [20 * 1048576] * 2
    # Not by way of the disk.
    assert not any((place.root / "run" / "client_body").rglob("*"))


def test_two_endpoints_of_a_type_and_a_changed_catalog(
    place: Place, nginx: str, cloud_env: CloudEnv
) -> None:
    assert place.generate().returncode == 0
    services = cloud_env.call(ADMIN, "identity", "GET", "/services?type=image")["services"]
    body = {
        "service_id": services[0]["id"],
        "interface": "public",
        "region_id": cloud_env.region,
        "url": "http://127.0.0.1:1/second/v2",
        # Keystone's catalog of the other tests stays as it is.
        "enabled": False,
    }
    endpoint = cloud_env.call(ADMIN, "identity", "POST", "/endpoints", json={"endpoint": body})[
        "endpoint"
    ]
    try:
        assert place.generate("--diff").returncode == 0
        type_name = f"trimaran-{uuid.uuid4().hex[:8]}"
        place.settings["openstack"]["service_mapping"] = {"image": "glance", type_name: "mine"}
        (place.root / "etc" / "skyline.yaml").write_text(yaml.safe_dump(place.settings))
        service = cloud_env.call(
            ADMIN,
            "identity",
            "POST",
            "/services",
            json={"service": {"type": type_name, "name": type_name}},
        )["service"]
        try:
            for number in (1, 2):
                cloud_env.call(
                    ADMIN,
                    "identity",
                    "POST",
                    "/endpoints",
                    json={
                        "endpoint": {
                            "service_id": service["id"],
                            "interface": "public",
                            "region_id": cloud_env.region,
                            "url": f"http://127.0.0.1:{number}/mine/v1/%(project_id)s",
                        }
                    },
                )
            preview = place.generate("--diff")
            assert preview.returncode == 1
            written = place.generate()
            assert written.returncode == 0
            region = cloud_env.region.lower()
            for said in (preview.stderr, written.stderr):
                assert f"WARNING: region {region} has more than one endpoint of mine" in said
                assert f"INFO: added /api/openstack/{region}/mine/ to http://127.0.0.1:" in said
                assert f"INFO: removed /api/openstack/{region}/nova/" in said
            tested = subprocess.run(
                [nginx, "-t", "-q", "-c", str(place.conf)], capture_output=True, check=False
            )
            assert tested.returncode == 0, tested.stderr
            assert place.generate("--diff").returncode == 0
        finally:
            cloud_env.call(ADMIN, "identity", "DELETE", f"/services/{service['id']}")
        assert place.generate("--diff").returncode == 1
    finally:
        cloud_env.call(ADMIN, "identity", "DELETE", f"/endpoints/{endpoint['id']}")


# -- the container's script ----------------------------------------------


class Container:
    """The start script as a container runs it."""

    def __init__(self, place: Place, port: int, api_port: int, **variables: str) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.log = place.root / "container.out"
        environment = {
            **place.environment,
            "LISTEN_ADDRESS": f"127.0.0.1:{port}",
            "API_PORT": str(api_port),
            "STATIC_PATH": str(place.root / "static"),
            "NGINX_CONF": str(place.conf),
            "NGINX_RUN_DIR": str(place.root / "run"),
            **variables,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", str(SCRIPT), "--workers", "1"],
                env=environment,
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def statuses_until_up(self) -> list[int]:
        """Asks the API through nginx until it answers 200; what it answered up to then."""
        statuses: list[int] = []

        def asked() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            try:
                answer = requests.get(
                    f"{self.base}/api/openstack/skyline/api/v1/config", timeout=60
                )
            except requests.ConnectionError:
                return False
            statuses.append(answer.status_code)
            return answer.status_code == 200

        eventually(asked, "the console answers")
        return statuses

    def children(self) -> list[psutil.Process]:
        """All processes below the script."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        if self.process.poll() is None:
            left = self.children()
            self.process.kill()
            self.process.wait(PATIENCE)
            for child in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(left, timeout=PATIENCE)


def alive(process: psutil.Process) -> bool:
    """Whether it still does something; who collects the dead is not our matter."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_the_container_s_nginx_never_answers_without_its_api(
    place: Place, nginx: str, free_port: Callable[[], int]
) -> None:
    port, api_port = free_port(), free_port()
    container = Container(place, port, api_port, CATALOG_SECONDS="0")
    try:
        statuses = container.statuses_until_up()
        # Refused connections until everything is up; no 502 in between.
        assert statuses == [200]
        assert requests.get(f"{container.base}/", timeout=60).text == PAGE
        children = container.children()
        container.process.send_signal(signal.SIGTERM)
        assert container.process.wait(PATIENCE) == 143
        assert not [child for child in children if alive(child)]
    finally:
        container.close()


def test_the_container_ends_with_its_api(
    place: Place, nginx: str, free_port: Callable[[], int]
) -> None:
    port, api_port = free_port(), free_port()
    container = Container(place, port, api_port, CATALOG_SECONDS="0")
    try:
        # Not as soon as nginx listens: it does so for a moment when it tests its configuration.
        container.statuses_until_up()
        (server,) = [
            child
            for child in psutil.Process(container.process.pid).children()
            if "nginx" not in " ".join(child.cmdline())
        ]
        children = container.children()
        # The parent first, or it would replace its workers.
        for child in [server, *server.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        assert container.process.wait(PATIENCE) != 0
        eventually(lambda: not any(map(alive, children)), "nothing is left")
    finally:
        container.close()


def test_the_container_follows_the_catalog(
    place: Place, nginx: str, cloud_env: CloudEnv, free_port: Callable[[], int]
) -> None:
    port = free_port()
    container = Container(place, port, free_port(), CATALOG_SECONDS="1")
    url = f"{container.base}/api/openstack/{cloud_env.region.lower()}/renamed/v3"
    try:

        def is_proxied() -> bool:
            assert container.process.poll() is None, container.log.read_text()
            try:
                # Without its location, the front end's page is served there.
                return requests.get(url, timeout=60).text != PAGE
            except requests.ConnectionError:
                return False

        eventually(lambda: listens(port), "nginx listens")
        assert not is_proxied()
        place.settings["openstack"]["service_mapping"] = {"identity": "renamed"}
        (place.root / "etc" / "skyline.yaml").write_text(yaml.safe_dump(place.settings))
        eventually(is_proxied, "nginx has the new location")
        children = container.children()
        container.process.send_signal(signal.SIGTERM)
        assert container.process.wait(PATIENCE) == 143
        assert not [child for child in children if alive(child)]
    finally:
        container.close()


def test_bootstrap_migrates_and_ends(place: Place, free_port: Callable[[], int]) -> None:
    # kolla sets the variable to nothing.
    container = Container(place, free_port(), free_port(), KOLLA_BOOTSTRAP="")
    try:
        assert container.process.wait(PATIENCE) == 0, container.log.read_text()
        assert (place.root / "console.sqlite").stat().st_size > 0
        assert not place.conf.exists()
    finally:
        container.close()


def test_the_script_can_be_executed() -> None:
    assert SCRIPT.stat().st_mode & stat.S_IXUSR


def test_what_nginx_refuses_is_not_put_in_place(place: Place, free_port: Callable[[], int]) -> None:
    # In front of the real one on the path: refuses every configuration.
    refusing = place.root / "bin" / "nginx"
    refusing.write_text("#!/bin/sh\nexit 1\n")
    refusing.chmod(0o755)
    place.conf.write_text("# the last good one\n")
    container = Container(place, free_port(), free_port())
    try:
        assert container.process.wait(PATIENCE) == 1, container.log.read_text()
        assert place.conf.read_text() == "# the last good one\n"
        assert "skyline" in Path(f"{place.conf}.new").read_text()
    finally:
        container.close()
