"""The server as real processes: signals, limits on the socket, metrics of all workers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ROOT = Path(__file__).parents[3]
#: seconds for what takes a busy machine long, and never fails to come
PATIENCE = 90.0


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[bytes]
    place: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.place / "log").read_text()

    def events(self) -> list[str]:
        file = self.place / "events"
        return (
            [line.split()[0] for line in file.read_text().split("\n") if line]
            if (file.exists())
            else []
        )

    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def raw(self, data: bytes, port: int | None = None) -> bytes:
        """Sends bytes and reads to the end of the connection or of one answer."""
        with socket.create_connection(
            ("127.0.0.1", port or self.port), timeout=PATIENCE
        ) as connection:
            # Who is refused before all was sent has the answer, and a broken connection.
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            answer = b""
            while not re.search(rb"\r\n\r\nwire:\w+:.", answer):
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
            return answer

    def told(self) -> bool:
        """Whether it answers, or has ended."""
        return answers(self.url) or self.process.poll() is not None

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def eventually(check: Callable[[], object], what: str) -> None:
    """Waits until the check is true."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if check():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


def connected(connection: socket.socket, path: Path) -> bool:
    """Whether somebody listens; the name is there a moment before that."""
    try:
        connection.connect(str(path))
    except OSError:
        return False
    return True


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthcheck", timeout=30).status_code == 200
    except requests.RequestException:
        return False


def _command(mode: str, place: Path, port: int, workers: int) -> list[str]:
    module = "tests.support.web_service"
    return [sys.executable, "-m", module, mode, str(place), str(port), str(workers)]


Start = Callable[..., Service]


@pytest.fixture
def start(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Start]:
    """Starts a service and ends it."""
    running: list[Service] = []

    def starter(mode: str = "gunicorn", workers: int = 2) -> Service:
        (tmp_path / "config").write_text("first")
        port = free_port()
        with (tmp_path / "log").open("wb") as log:
            # What others keep in the common directory is nobody's business here.
            process = subprocess.Popen(
                _command(mode, tmp_path, port, workers),
                cwd=ROOT,
                stderr=log,
                env={**os.environ, "TMPDIR": str(tmp_path)},
            )
        service = Service(process, tmp_path, port)
        running.append(service)
        if mode != "unix" and not (tmp_path / "cert.pem").exists():
            eventually(service.told, "the service answers")
        return service

    yield starter
    for service in running:
        if service.process.poll() is None:
            children = psutil.Process(service.process.pid).children(recursive=True)
            service.process.kill()
            service.process.wait(PATIENCE)
            for child in children:
                # They end by themselves, when they see that their parent is gone.
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(children, timeout=PATIENCE)


@pytest.mark.parametrize("mode", ["gunicorn", "many"])
def test_sigterm_lets_running_requests_end_and_closes_the_parts(start: Start, mode: str) -> None:
    service = start(mode)
    # One worker answers while another may still be starting.
    eventually(lambda: service.events().count("start") == 2, "both applications are up")
    answer: list[requests.Response] = []
    client = threading.Thread(
        target=lambda: answer.append(requests.get(f"{service.url}/hold", timeout=PATIENCE))
    )
    client.start()
    eventually(lambda: "held" in service.events(), "the request runs")
    service.process.send_signal(signal.SIGTERM)
    eventually(lambda: not answers(service.url), "no new connections are taken")
    assert service.process.poll() is None
    (service.place / "release").touch()
    client.join(PATIENCE)
    assert service.process.wait(PATIENCE) == 0
    assert [item.text for item in answer] == ['"released"']
    assert service.events().count("stop") == service.events().count("start") == 2


@pytest.mark.parametrize("mode", ["gunicorn", "many"])
def test_a_connection_that_was_taken_before_the_stop_is_answered(
    start: Start, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "patient").touch()
    service = start(mode, workers=1)
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as connection:
        # Answered, so that the next one was taken by the worker and not only by the kernel.
        assert answers(service.url)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: not answers(service.url), "no new connections are taken")
        connection.sendall(b"GET /config HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert service.process.wait(PATIENCE) == 0


def test_what_all_services_share_is_closed_last_and_in_order(start: Start) -> None:
    service = start("many")
    assert requests.get(f"http://127.0.0.1:{service.port + 1}/config", timeout=PATIENCE).ok
    assert service.stop(signal.SIGINT) == 0
    events = service.events()
    assert events.count("on_start") == 1
    assert events[-4:] == ["stop", "stop", "on_stop_1", "on_stop_2"]


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "config").write_text("x")
        process = subprocess.run(
            _command("many", tmp_path, port, 1),
            cwd=ROOT,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr.decode().strip().split("\n")[-1] == (
        f"127.0.0.1 port {port} cannot be listened on (Address already in use); "
        "stop what uses it or choose another port."
    )


def test_sighup_reads_the_configuration_again_without_a_failed_request(start: Start) -> None:
    service = start()
    before = {worker.pid for worker in service.workers()}
    failures: list[str] = []
    seen: set[str] = set()
    done = threading.Event()

    def client() -> None:
        while not done.is_set():
            try:
                answer = requests.get(f"{service.url}/config", timeout=PATIENCE)
                seen.add(answer.json()["config"])
            except (requests.RequestException, KeyError) as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    (service.place / "config").write_text("second")
    service.process.send_signal(signal.SIGHUP)

    def replaced() -> bool:
        now = {worker.pid for worker in service.workers()}
        return len(now) == 2 and not (now & before) and "second" in seen

    eventually(replaced, "all workers are new")
    done.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert requests.get(f"{service.url}/config", timeout=PATIENCE).json()["config"] == "second"
    assert failures == []
    assert service.stop() == 0


def test_a_mistake_in_the_configuration_ends_the_service_with_its_sentence(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "broken").touch()
    service = start()
    assert service.process.wait(PATIENCE) != 0
    assert "the.conf: [x] y must be z." in service.log
    assert "Traceback" not in service.log


def test_a_killed_worker_is_replaced(start: Start) -> None:
    service = start()
    victim = service.workers()[0]
    victim.kill()
    eventually(
        lambda: (
            len(service.workers()) == 2 and victim.pid not in {w.pid for w in service.workers()}
        ),
        "a new worker",
    )
    eventually(lambda: answers(service.url), "it answers")


def test_workers_end_when_their_parent_was_killed(start: Start) -> None:
    service = start()
    workers = service.workers()
    service.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert alive == []


@pytest.mark.parametrize("mode", ["gunicorn", "many"])
def test_what_cannot_be_parsed_or_is_too_large_gets_the_wires_own_answer(
    start: Start, mode: str
) -> None:
    service = start(mode)
    head = b"GET /who HTTP/1.1\r\nHost: x\r\n"
    assert b" 400 " in (bad := service.raw(b"what is this\r\n\r\n"))
    assert b"wire:BadRequest:" in bad
    for size in (5_000, 1_000_000, 3_000_000):
        answer = service.raw(head + b"X-Big: " + b"x" * size + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 431 "), size
        assert b"wire:HeadersTooLarge:" in answer
    assert b" 414 " in service.raw(b"GET /" + b"x" * 5_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    body = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
    assert b"wire:TooLarge:" in service.raw(body)
    # No client can stop the service with any of it.
    assert answers(service.url)


def test_heads_are_read_as_clients_write_them(start: Start) -> None:
    service = start()
    ask = b"GET /who HTTP/1.1\r\nHost: x\r\n"
    last = ask + b"Connection: close\r\n\r\n"
    # Two requests at once are answered in their order, and a head may come in pieces.
    both = service.raw(ask + b"\r\n" + last.replace(b"/who", b"/known"))
    assert re.findall(rb"HTTP/1.1 (\d+)", both) == [b"200", b"409"]
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as connection:
        for piece in (last[:7], last[7:23], last[23:]):
            connection.sendall(piece)
        assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    # As a proxy is asked (RFC 9112 section 3.2.2); a server must take it too.
    assert b" 200 " in service.raw(last.replace(b"/who", b"http://x/who"))
    for broken in (
        ask + b"No colon\r\n\r\n",
        ask + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ask + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        assert service.raw(broken).startswith(b"HTTP/1.1 400 "), broken
    # A body that breaks off in the middle of its chunks ends the connection, and that only.
    chunked = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 200 " not in service.raw(chunked + b"zz\r\n")
    assert answers(service.url)


def test_metrics_are_those_of_all_workers(start: Start) -> None:
    service = start()
    pids: set[int] = set()
    sent = 0
    until = time.monotonic() + PATIENCE
    while len(pids) < 2 and time.monotonic() < until:
        # Each connection may go to another worker.
        pids.add(requests.get(f"{service.url}/config", timeout=PATIENCE).json()["pid"])
        sent += 1
    assert len(pids) == 2

    def counted() -> int:
        text = requests.get(f"{service.url}/metrics", timeout=PATIENCE).text
        found = re.search(
            r'trimaran_http_requests_total{method="GET",operation="/config",'
            r'service="test",status="200"} (\d+)',
            text,
        )
        return int(found[1]) if found else 0

    # The count follows the answer.
    eventually(lambda: counted() == sent, f"{sent} requests counted, all workers together")
    environment = service.workers()[0].environ()
    assert service.stop() == 0
    directory = environment.get("PROMETHEUS_MULTIPROC_DIR")
    assert directory is None or not Path(directory).exists()


def test_no_files_are_left_by_shared_metrics(start: Start, tmp_path: Path) -> None:
    def files() -> list[Path]:
        return list(tmp_path.glob("trimaran-metrics-*"))

    service = start()
    assert len(files()) == 1
    service.stop()
    assert files() == []


def test_a_unix_socket_is_served(start: Start) -> None:
    service = start("unix", workers=1)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        eventually(lambda: connected(connection, service.place / "socket"), "the socket")
        connection.sendall(b"GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    # A peer without an address is no reason to send a wrong one on.
    assert b'"address":""' in answer
    assert b"Forwarded" not in answer


def test_tls_is_served(start: Start, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    service = start(workers=1)
    url = f"https://localhost:{service.port}/who"

    def up() -> bool:
        try:
            return requests.get(url, verify=str(tmp_path / "cert.pem"), timeout=PATIENCE).ok
        except requests.RequestException:
            return False

    eventually(up, "TLS answers")
    with pytest.raises(ssl.SSLError), socket.create_connection(("localhost", service.port)) as raw:
        ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")
