"""TLS options on a real handshake."""

from __future__ import annotations

import datetime
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.keystone import token, token_body
from trimaran import errors
from trimaran.config.common import defaults
from trimaran.identity import Identity, from_password

# The service itself switches it off once per process; pytest brings it back for each test.
pytestmark = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")


def _certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate of 127.0.0.1 with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem, private = directory / f"{name}.pem", directory / f"{name}.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem, private


class _Keystone(http.server.BaseHTTPRequestHandler):
    """Hands out a token to everyone who gets through the handshake."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(token_body()).encode()
        self.send_response(201)
        self.send_header("X-Subject-Token", "over-tls")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Refused handshakes are what the tests are about."""


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    directory = tmp_path_factory.mktemp("pki")
    return {name: _certificate(directory, name) for name in ("server", "client", "stranger")}


def _serve(pki: dict[str, tuple[Path, Path]], *, client: bool) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pki["server"])
    if client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(pki["client"][0])
    server = _Server(("127.0.0.1", 0), _Keystone)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/v3"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def plain(pki: dict[str, tuple[Path, Path]]) -> Iterator[str]:
    yield from _serve(pki, client=False)


@pytest.fixture
def mutual(pki: dict[str, tuple[Path, Path]]) -> Iterator[str]:
    yield from _serve(pki, client=True)


@pytest.fixture(autouse=True)
def _no_ca_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def _identity(url: str, **options: object) -> Iterator[Identity]:
    made = from_password(
        auth_url=url,
        username="svc",
        password="s3cret",
        project_name="service",
        # A pool of its own: connections of one test are not the next one's.
        own=defaults(http_pool_size=13),
        **options,  # type: ignore[arg-type]
    )
    yield made
    made.close()


def _token_of(url: str, **options: object) -> str:
    for identity in _identity(url, **options):
        return identity.service_token()
    raise AssertionError


def test_unknown_authority_is_refused(plain: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(errors.Unavailable):
        _token_of(plain)
    assert "certificate" in caplog.text.lower()


def test_authority_of_the_option(plain: str, pki: dict[str, tuple[Path, Path]]) -> None:
    assert _token_of(plain, verify=str(pki["server"][0])) == "over-tls"


def test_another_authority_is_refused(plain: str, pki: dict[str, tuple[Path, Path]]) -> None:
    with pytest.raises(errors.Unavailable):
        _token_of(plain, verify=str(pki["stranger"][0]))


def test_not_verified_when_told_so(plain: str) -> None:
    assert _token_of(plain, verify=False) == "over-tls"


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_the_environment_does_not_replace_what_is_configured(
    plain: str,
    pki: dict[str, tuple[Path, Path]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv(name, str(pki["stranger"][0]))
    assert _token_of(plain, verify=str(pki["server"][0])) == "over-tls"
    assert _token_of(plain, verify=False) == "over-tls"
    with pytest.raises(errors.Unavailable):
        _token_of(plain)


def test_a_connection_that_was_not_verified_is_not_used_by_one_who_verifies(plain: str) -> None:
    assert _token_of(plain, verify=False) == "over-tls"
    with pytest.raises(errors.Unavailable):
        _token_of(plain, verify=True)


def test_missing_authority_file(
    plain: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(errors.Unavailable):
        _token_of(plain, verify=str(tmp_path / "none.pem"))
    assert "none.pem" in caplog.text


class TestClientCertificate:
    def test_sent(self, mutual: str, pki: dict[str, tuple[Path, Path]]) -> None:
        pem, key = pki["client"]
        authority = str(pki["server"][0])
        assert _token_of(mutual, verify=authority, cert=(str(pem), str(key))) == "over-tls"

    def test_absent(self, mutual: str, pki: dict[str, tuple[Path, Path]]) -> None:
        with pytest.raises(errors.Unavailable):
            _token_of(mutual, verify=str(pki["server"][0]))

    def test_a_stranger_s(self, mutual: str, pki: dict[str, tuple[Path, Path]]) -> None:
        pem, key = pki["stranger"]
        with pytest.raises(errors.Unavailable):
            _token_of(mutual, verify=str(pki["server"][0]), cert=(str(pem), str(key)))

    def test_on_callers_sessions_too(self, mutual: str, pki: dict[str, tuple[Path, Path]]) -> None:
        pem, key = pki["client"]
        options = {"verify": str(pki["server"][0]), "cert": (str(pem), str(key))}
        for identity in _identity(mutual, **options):
            answer = identity.session_for(token()).post(f"{mutual}/x", json={})
            assert answer.status_code == 201
