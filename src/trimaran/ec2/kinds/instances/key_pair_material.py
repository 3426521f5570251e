"""Keys as text: made for CreateKeyPair, understood for ImportKeyPair.

Nova takes a public key in OpenSSH's form only.  EC2 clients may also send the
two other forms that AWS documents, so those are turned into it; what is none
of the three is ``InvalidKey.Format`` before Nova is asked (spec ec2.md F58).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from trimaran.ec2.protocol.errors import EC2Error

#: What is certainly no public key (RSA-16384 has about 2.8 KB in OpenSSH's form).
LONGEST = 16384
_EXPONENT, _BITS = 65537, 2048
_ENVELOPE = re.compile(
    r"-{4} ?BEGIN SSH2 PUBLIC KEY ?-{4}\n(.*?)\n-{4} ?END SSH2 PUBLIC KEY ?-{4}", re.DOTALL
)
_TYPES = {"ssh-rsa": "rsa", "ssh-ed25519": "ed25519"}


@dataclass(frozen=True)
class Pair:
    """A new key: what the caller keeps, and what Nova gets."""

    private: str
    public: str


def generate(kind: str) -> Pair:
    """Makes a key: ``rsa`` as PKCS#1 PEM (spec ec2.md 3.8), ``ed25519`` in OpenSSH's own form."""
    key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
    if kind == "ed25519":
        key = ed25519.Ed25519PrivateKey.generate()
        form = serialization.PrivateFormat.OpenSSH
    else:
        key = rsa.generate_private_key(_EXPONENT, _BITS)
        form = serialization.PrivateFormat.TraditionalOpenSSL
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return Pair(private.decode(), _openssh(key.public_key()))


def public_key(material: bytes) -> str:
    """The OpenSSH form of a public key that a caller sent.

    Args:
        material: OpenSSH's form, RFC 4716's, or DER in base64 with or without PEM's lines.

    Raises:
        EC2Error: ``InvalidKey.Format`` for anything else.
    """
    try:
        text = material.decode().strip().replace("\r\n", "\n")
        if len(text) > LONGEST or "\0" in text:
            raise ValueError
        return _from_text(text)
    except (ValueError, TypeError, UnsupportedAlgorithm, binascii.Error):
        raise bad_key() from None


def bad_key() -> EC2Error:
    """What AWS answers to something that is no public key."""
    return EC2Error("InvalidKey.Format", "Key is not in valid OpenSSH public key format")


def type_of(public: str) -> str | None:
    """EC2's word for the type of an OpenSSH public key; None when it has none."""
    return _TYPES.get(public.split(" ", 1)[0])


def _from_text(text: str) -> str:
    enveloped = _ENVELOPE.fullmatch(text)
    if enveloped:
        # RFC 4716: headers (which a backslash continues) before the base64 lines.
        body = re.sub(r"\\\n", "", enveloped[1])
        lines = [line for line in body.split("\n") if ":" not in line]
        raw = base64.b64decode("".join(lines), validate=True)
        length = int.from_bytes(raw[:4], "big")
        name = raw[4 : 4 + length].decode("ascii")
        return _check(f"{name} {base64.b64encode(raw).decode()}")
    if re.match(r"[a-z0-9@.-]+ +[A-Za-z0-9+/=]+", text):
        if "\n" in text:
            raise ValueError
        return _check(text)
    lines = [line for line in text.split("\n") if not line.startswith("-----")]
    der = base64.b64decode("".join("".join(lines).split()), validate=True)
    return _check(_openssh(serialization.load_der_public_key(der)))


def _check(text: str) -> str:
    serialization.load_ssh_public_key(text.encode())
    return text


def _openssh(key: object) -> str:
    make = getattr(key, "public_bytes", None)
    if make is None:
        raise ValueError
    made: bytes = make(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return made.decode()
