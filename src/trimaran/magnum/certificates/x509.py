"""Certificates of a cluster: three authorities, a client, and what users have signed.

Shapes are upstream's (spec/magnum.md 6.7).  What was wrong there is right
here: times are UTC, an authority key identifier is set, and the issuer is the
authority's own subject, whatever the cluster is called by now.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trimaran.errors import BadRequest

_USAGES = {
    "Digital Signature": "digital_signature",
    "Non Repudiation": "content_commitment",
    "Key Encipherment": "key_encipherment",
    "Data Encipherment": "data_encipherment",
    "Key Agreement": "key_agreement",
    "Certificate Sign": "key_cert_sign",
    "CRL Sign": "crl_sign",
    "Encipher Only": "encipher_only",
    "Decipher Only": "decipher_only",
}
_AUTHORITY_USAGES = frozenset({"Certificate Sign", "CRL Sign"})


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its private key, which is encrypted.

    Attributes:
        certificate: PEM.
        private_key: PKCS#8 PEM, encrypted with the passphrase.
        passphrase: for the private key.
        intermediates: PEM, or None.
    """

    certificate: str
    private_key: str
    passphrase: str
    intermediates: str | None = None

    def __repr__(self) -> str:
        return "KeyPair(…)"

    def decrypted_key(self) -> str:
        """Returns the private key as PEM in clear, for a client that needs it so."""
        return _pem(
            self._key().private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def _key(self) -> rsa.RSAPrivateKey:
        loaded = serialization.load_pem_private_key(
            self.private_key.encode(), self.passphrase.encode()
        )
        assert isinstance(loaded, rsa.RSAPrivateKey)
        return loaded


@dataclass(frozen=True)
class Rules:
    """What is generated and signed: the ``[x509]`` options.

    Attributes:
        key_size: bits of generated keys.
        days: validity.
        signed_days: validity of what is signed for users; None: the same.
        allow_ca: whether an authority's certificate may be signed.
        extensions: names of the extensions that a request may carry.
        key_usages: names of the key usages that a request may carry.
    """

    key_size: int = 2048
    days: int = 1825
    signed_days: int | None = None
    allow_ca: bool = False
    extensions: frozenset[str] = frozenset()
    key_usages: frozenset[str] = frozenset()

    @classmethod
    def from_conf(cls, conf: Any) -> Rules:
        """Reads the ``[x509]`` section."""
        options = conf.x509
        return cls(
            key_size=options.rsa_key_size,
            days=options.term_of_validity,
            signed_days=options.signed_term_of_validity,
            allow_ca=options.allow_ca,
            extensions=frozenset(options.allowed_extensions),
            key_usages=frozenset(options.allowed_key_usage),
        )


def _pem(data: bytes) -> str:
    return data.decode().strip()


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, days: int) -> Any:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(uuid.uuid4().int)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*names: str) -> x509.KeyUsage:
    bits = dict.fromkeys(_USAGES.values(), False) | {_USAGES[name]: True for name in names}
    return x509.KeyUsage(**bits)


def _encrypted(certificate: x509.Certificate, key: rsa.RSAPrivateKey) -> KeyPair:
    passphrase = base64.b32encode(secrets.token_bytes(8)).decode().lower()[:12]
    return KeyPair(
        certificate=_pem(certificate.public_bytes(serialization.Encoding.PEM)),
        private_key=_pem(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(passphrase.encode()),
            )
        ),
        passphrase=passphrase,
    )


def make_authority(name: str, rules: Rules) -> KeyPair:
    """Makes a self-signed authority.

    Args:
        name: its common name: the cluster's name.
        rules: key size and validity.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=rules.key_size)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    public = key.public_key()
    certificate = (
        _builder(subject, subject, public, rules.days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("Certificate Sign"), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _encrypted(certificate, key)


def make_client(authority: KeyPair, rules: Rules) -> KeyPair:
    """Makes the client certificate with which we speak to a cluster.

    Args:
        authority: the cluster's Kubernetes authority.
        rules: key size and validity.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=rules.key_size)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "admin"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
        ]
    )
    parent = x509.load_pem_x509_certificate(authority.certificate.encode())
    public = key.public_key()
    certificate = (
        _builder(subject, parent.subject, public, rules.days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("Digital Signature", "Key Encipherment"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(_authority_identifier(parent), critical=False)
        .sign(authority._key(), hashes.SHA256())
    )
    return _encrypted(certificate, key)


def _authority_identifier(parent: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        own = parent.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(parent.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)


def sign(csr: str, authority: KeyPair, rules: Rules) -> str:
    """Signs a certificate request.

    Subject and key are the request's; of its extensions those that the rules
    allow are kept, others are dropped, or refused when critical.

    Args:
        csr: PEM.
        authority: that signs.
        rules: what is allowed.

    Returns:
        The certificate as PEM.

    Raises:
        BadRequest: no certificate request, or one that asks for too much.
    """
    try:
        request = x509.load_pem_x509_csr(csr.encode())
        asked = list(request.extensions)
        public = request.public_key()
    except (ValueError, TypeError, x509.DuplicateExtension) as problem:
        raise BadRequest(f"Received invalid csr {csr.encode()!r}.", code="InvalidCsr") from problem
    parent = x509.load_pem_x509_certificate(authority.certificate.encode())
    days = rules.signed_days or rules.days
    builder = _builder(request.subject, parent.subject, public, days)
    for extension in asked:
        kept = _allowed(extension, rules)
        if kept is not None:
            builder = builder.add_extension(kept[0], critical=kept[1])
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(public), critical=False
    ).add_extension(_authority_identifier(parent), critical=False)
    certificate = builder.sign(authority._key(), hashes.SHA256())
    return _pem(certificate.public_bytes(serialization.Encoding.PEM))


def _refused(extension: x509.Extension[Any]) -> BadRequest:
    return BadRequest(f"Extension '{extension}' not allowed", code="CertificateValidationError")


def _allowed(extension: x509.Extension[Any], rules: Rules) -> tuple[Any, bool] | None:
    value, critical = extension.value, extension.critical
    if isinstance(value, (x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier)):
        return None  # ours are set instead (F-31)
    if extension.oid._name not in rules.extensions:
        if critical:
            raise _refused(extension)
        return None
    if isinstance(value, x509.KeyUsage):
        return _allowed_usage(extension, rules), critical
    if isinstance(value, x509.BasicConstraints) and value.ca and not rules.allow_ca:
        if critical:
            raise _refused(extension)
        return x509.BasicConstraints(ca=False, path_length=None), False
    return value, critical


def _allowed_usage(extension: x509.Extension[Any], rules: Rules) -> x509.KeyUsage:
    allowed = rules.key_usages if rules.allow_ca else rules.key_usages - _AUTHORITY_USAGES
    bits: dict[str, bool] = {}
    for name, attribute in _USAGES.items():
        try:
            wanted = bool(getattr(extension.value, attribute))
        except ValueError:  # meaningless without key agreement
            wanted = False
        if wanted and name not in allowed:
            if extension.critical:
                raise _refused(extension)
            wanted = False
        bits[attribute] = wanted
    if not bits["key_agreement"]:
        bits["encipher_only"] = bits["decipher_only"] = False
    return x509.KeyUsage(**bits)
