"""Makes AMI bundles as Amazon's tools do, with keys of the test's own, and broken ones."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import padding, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PART = 4096


@cache
def private_key() -> rsa.RSAPrivateKey:
    """The cloud's key."""
    return rsa.generate_private_key(65537, 2048)


@cache
def other_key() -> rsa.RSAPrivateKey:
    """Another cloud's key."""
    return rsa.generate_private_key(65537, 2048)


def pem(key: rsa.RSAPrivateKey | None = None) -> bytes:
    return (key or private_key()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def write_pem(directory: Path) -> Path:
    path = directory / "cloud.pem"
    path.write_bytes(pem())
    return path


def tar_of(*members: tuple[tarfile.TarInfo | str, bytes], **options: object) -> bytes:
    """A tar of members; a name stands for a plain file."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", **options) as archive:  # type: ignore[call-overload]
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target.getvalue()


@dataclass
class Bundle:
    """One bundle; change a field, then ask for ``manifest`` and ``parts``.

    Attributes:
        tar: the archive.
        zip: how it is compressed.
        recipient: whose key it is encrypted for.
        digests: the manifest tells digests.
        size: told as the image's size; None tells nothing.
        machine: more XML for machine_configuration.
        part_size: bytes of a part.
    """

    tar: bytes
    zip: Callable[[bytes], bytes] = lambda data: gzip.compress(data, mtime=0)
    recipient: rsa.RSAPrivateKey = field(default_factory=private_key)
    digests: bool = True
    size: int | None = None
    machine: str = ""
    part_size: int = PART
    key: bytes = field(default_factory=lambda: os.urandom(16))
    iv: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def encrypted(self) -> bytes:
        padder = padding.PKCS7(128).padder()
        plain = padder.update(self.zip(self.tar)) + padder.finalize()
        cipher = Cipher(algorithms.AES(self.key), modes.CBC(self.iv)).encryptor()
        return cipher.update(plain) + cipher.finalize()

    def parts(self) -> dict[str, bytes]:
        """The parts' bytes by name."""
        data = self.encrypted
        pieces = [data[at : at + self.part_size] for at in range(0, len(data), self.part_size)]
        return {f"image.part.{number}": piece for number, piece in enumerate(pieces)}

    def manifest(self) -> bytes:
        rows = "".join(
            f'<part index="{n}"><filename>{name}</filename>'
            + (
                f'<digest algorithm="SHA1">{hashlib.sha1(piece).hexdigest()}</digest>'
                if self.digests
                else ""
            )
            + "</part>"
            for n, (name, piece) in enumerate(self.parts().items())
        )
        told = f"<size>{self.size}</size>" if self.size is not None else ""
        if self.digests:
            told += f'<digest algorithm="SHA1">{hashlib.sha1(self.tar).hexdigest()}</digest>'
        return (
            "<?xml version='1.0'?><manifest><version>2007-10-10</version><machine_configuration>"
            f"<architecture>x86_64</architecture>{self.machine}</machine_configuration>"
            f"<image><name>image</name>{told}"
            f"<ec2_encrypted_key algorithm='AES-128-CBC'>{self._locked(self.key)}"
            f"</ec2_encrypted_key><ec2_encrypted_iv>{self._locked(self.iv)}</ec2_encrypted_iv>"
            f"<parts count='{len(self.parts())}'>{rows}</parts></image></manifest>"
        ).encode()

    def _locked(self, secret: bytes) -> str:
        public = self.recipient.public_key()
        return public.encrypt(secret.hex().encode(), PKCS1v15()).hex()

    def objects(self) -> dict[str, bytes]:
        """All that is put into the bucket, by key."""
        return {"image.manifest.xml": self.manifest(), **self.parts()}


def bundle(image: bytes, **options: object) -> Bundle:
    """A good bundle of an image."""
    made = {"size": len(image), **options}
    return Bundle(tar_of(("image", image)), **made)  # type: ignore[arg-type]


def write_large(directory: Path, size: int, part_size: int = 10 << 20) -> Iterator[str]:
    """Writes a bundle of random bytes into a directory, with little memory; yields the names.

    The manifest, whose name comes last, is ``image.manifest.xml``.
    """
    key, iv = os.urandom(16), os.urandom(16)
    info = tarfile.TarInfo("image")
    info.size = size
    piece_size = 1 << 20

    def tar() -> Iterator[bytes]:
        yield info.tobuf()
        for at in range(0, size, piece_size):
            yield os.urandom(min(piece_size, size - at))
        yield bytes(-size % 512 + 1024)

    deflater = zlib.compressobj(1, wbits=31)
    padder = padding.PKCS7(128).padder()
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    digest = hashlib.sha1()

    def encrypted() -> Iterator[bytes]:
        for piece in tar():
            digest.update(piece)
            yield cipher.update(padder.update(deflater.compress(piece)))
        yield cipher.update(padder.update(deflater.flush()) + padder.finalize())
        yield cipher.finalize()

    names: list[tuple[str, str]] = []
    held = b""

    def flush(data: bytes) -> str:
        name = f"image.part.{len(names)}"
        (directory / name).write_bytes(data)
        names.append((name, hashlib.sha1(data).hexdigest()))
        return name

    for piece in encrypted():
        held += piece
        while len(held) >= part_size:
            yield flush(held[:part_size])
            held = held[part_size:]
    if held:
        yield flush(held)
    rows = "".join(
        f'<part><filename>{name}</filename><digest algorithm="SHA1">{told}</digest></part>'
        for name, told in names
    )
    public = private_key().public_key()
    locked = [public.encrypt(secret.hex().encode(), PKCS1v15()).hex() for secret in (key, iv)]
    (directory / "image.manifest.xml").write_text(
        "<manifest><machine_configuration><architecture>x86_64</architecture>"
        f"</machine_configuration><image><size>{size}</size>"
        f'<digest algorithm="SHA1">{digest.hexdigest()}</digest>'
        f"<ec2_encrypted_key>{locked[0]}</ec2_encrypted_key>"
        f"<ec2_encrypted_iv>{locked[1]}</ec2_encrypted_iv>"
        f"<parts>{rows}</parts></image></manifest>"
    )
    yield "image.manifest.xml"
