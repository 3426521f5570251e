"""Certificates: their shapes, what is signed, and that secrets do not lie in clear."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trimaran import errors
from trimaran.config import magnum as options
from trimaran.magnum.certificates import Certificates, Rules
from trimaran.magnum.certificates import x509 as ours
from trimaran.magnum.certificates.managers import FileManager
from trimaran.magnum.certificates.x509 import KeyPair
from trimaran.magnum.sealing import Sealer, Unsealable

RULES = Rules(
    key_size=1024,
    days=10,
    extensions=frozenset(options.EXTENSIONS),
    key_usages=frozenset(options.KEY_USAGE),
)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return ours.make_authority("cluster-1", RULES)


def load(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def request(*extensions: tuple[x509.ExtensionType, bool], name: str = "admin") -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    for value, critical in extensions:
        builder = builder.add_extension(value, critical=critical)
    signed = builder.sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode()


def usage(**bits: bool) -> x509.KeyUsage:
    names = (
        "digital_signature content_commitment key_encipherment data_encipherment "
        "key_agreement key_cert_sign crl_sign encipher_only decipher_only"
    )
    return x509.KeyUsage(**(dict.fromkeys(names.split(), False) | bits))


def test_f59_an_authority_has_upstreams_shape(authority: KeyPair) -> None:
    made = load(authority)
    assert made.subject == made.issuer
    assert made.subject.rfc4514_string() == "CN=cluster-1"
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (
        True,
        True,
        0,
    )
    assert made.extensions.get_extension_for_class(x509.KeyUsage).value == usage(key_cert_sign=True)
    now = datetime.now(UTC)
    assert abs(now - timedelta(days=1) - made.not_valid_before_utc) < timedelta(minutes=1)
    assert abs(now + timedelta(days=10) - made.not_valid_after_utc) < timedelta(minutes=1)
    assert authority.private_key.startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert authority.passphrase not in repr(authority)
    assert authority.decrypted_key().startswith("-----BEGIN PRIVATE KEY-----")


def test_f59_the_client_certificate_is_signed_by_the_authority(authority: KeyPair) -> None:
    made = load(ours.make_client(authority, RULES))
    made.verify_directly_issued_by(load(authority))
    assert made.subject.rfc4514_string() == "O=system:masters,CN=admin"
    purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    identifier = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = load(authority).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert identifier.key_identifier == own.digest


def test_f59_what_is_signed_may_be_valid_for_a_shorter_time(authority: KeyPair) -> None:
    signed = ours.sign(request(), authority, replace(RULES, signed_days=2))
    made = x509.load_pem_x509_certificate(signed.encode())
    left = made.not_valid_after_utc - datetime.now(UTC)
    assert abs(left - timedelta(days=2)) < timedelta(minutes=1)


def test_f60_the_issuer_is_the_authoritys_subject_whatever_the_cluster_is_called(
    tmp_path: Path,
) -> None:
    kept = Certificates(FileManager(str(tmp_path), Sealer(["a"])), RULES)
    cluster = SimpleNamespace(uuid="u", name="before", project_id="p", user_id="u")
    vars(cluster).update(kept.generate(cluster, generation="1"))
    cluster.name = "after"
    made = x509.load_pem_x509_certificate(kept.sign(cluster, request()).encode())
    assert made.issuer.rfc4514_string() == "CN=before"
    made.verify_directly_issued_by(load(kept.authority(cluster)))


def test_f31_a_request_keeps_its_subject_and_allowed_extensions(authority: KeyPair) -> None:
    names = x509.SubjectAlternativeName([x509.DNSName("a.example")])
    csr = request(
        (names, False),
        (usage(digital_signature=True, crl_sign=True), False),
        (x509.BasicConstraints(ca=True, path_length=None), False),
        (x509.SubjectKeyIdentifier(b"x" * 20), False),
        (x509.InhibitAnyPolicy(1), False),
    )
    made = x509.load_pem_x509_certificate(ours.sign(csr, authority, RULES).encode())
    made.verify_directly_issued_by(load(authority))
    assert made.subject.rfc4514_string() == "CN=admin"
    assert made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value == names
    assert made.extensions.get_extension_for_class(x509.KeyUsage).value == usage(
        digital_signature=True
    )
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    key = x509.SubjectKeyIdentifier.from_public_key(made.public_key())
    assert made.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value == key
    with pytest.raises(x509.ExtensionNotFound):
        made.extensions.get_extension_for_class(x509.InhibitAnyPolicy)


@pytest.mark.parametrize(
    "extension",
    [
        x509.BasicConstraints(ca=True, path_length=None),
        x509.InhibitAnyPolicy(1),
        usage(key_cert_sign=True),
    ],
)
def test_a_critical_extension_that_is_not_allowed_is_refused(
    authority: KeyPair, extension: x509.ExtensionType
) -> None:
    with pytest.raises(errors.BadRequest) as problem:
        ours.sign(request((extension, True)), authority, RULES)
    assert problem.value.message.startswith("Extension '<Extension(")
    assert problem.value.message.endswith("not allowed")


@pytest.mark.parametrize("csr", ["bad", "", "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n"])
def test_what_is_no_request_is_refused(authority: KeyPair, csr: str) -> None:
    with pytest.raises(errors.BadRequest) as problem:
        ours.sign(csr, authority, RULES)
    assert problem.value.message == f"Received invalid csr {csr.encode()!r}."


def test_a_long_cluster_name_makes_a_certificate() -> None:
    made = load(ours.make_authority("x" * 242, RULES))
    assert made.subject.rfc4514_string() == "CN=" + "x" * 64


def test_f23_files_are_private_and_the_passphrase_is_sealed(
    tmp_path: Path, authority: KeyPair
) -> None:
    folder = tmp_path / "certificates"
    manager = FileManager(str(folder), Sealer(["a"]))
    reference = "11111111-2222-3333-4444-555555555555"
    given = {"name": "n", "proposal": reference, "project_id": "p", "user_id": "u"}
    assert manager.store(authority, **given) == reference
    assert manager.load(reference) == authority
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert authority.passphrase not in path.read_text()
    manager.delete(reference)
    manager.delete(reference)
    assert list(folder.iterdir()) == []
    with pytest.raises(errors.NotFound):
        manager.load(reference)
    with pytest.raises(errors.NotFound):
        manager.load("../../etc/passwd")


def test_a_sealed_text_survives_a_new_passphrase() -> None:
    sealed = Sealer(["old"]).seal("token")
    assert "token" not in sealed
    assert Sealer(["new", "old"]).open(sealed) == "token"
    with pytest.raises(Unsealable):
        Sealer(["new"]).open(sealed)
    # What upstream wrote was never sealed.
    assert Sealer(["new"]).open("plain") == "plain"
