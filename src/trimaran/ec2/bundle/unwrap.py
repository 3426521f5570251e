"""From a bundle's parts to its image: decryption, decompression, and the one file in the tar.

Each layer is an iterator over the one below, so an image of any size passes
through with a few pieces in memory.  The key and the first vector are RSA
encrypted hex texts (PKCS#1 v1.5), the data is AES-128-CBC with padding, as
``openssl enc`` does it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from typing import cast

from cryptography.hazmat.primitives import padding, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from trimaran.ec2.bundle import PIECE, BundleError
from trimaran.ec2.bundle.manifest import Digest, Manifest
from trimaran.ec2.bundle.tape import Tape, image_in

_KEY = 16
_GZIP = b"\x1f\x8b"


def keys_of(manifest: Manifest, pem: bytes) -> tuple[bytes, bytes]:
    """The key and the first vector of a bundle.

    Args:
        manifest: of the bundle.
        pem: the cloud's private key (``x509_root_private_key``).

    Raises:
        BundleError: they were not encrypted for that key.
        ValueError: the cloud's key is no RSA key.
    """
    private = serialization.load_pem_private_key(pem, None)
    if not isinstance(private, rsa.RSAPrivateKey):
        raise ValueError("x509_root_private_key is no RSA key")
    return _unlocked(private, manifest.key), _unlocked(private, manifest.iv)


def _unlocked(private: rsa.RSAPrivateKey, secret: bytes) -> bytes:
    try:
        made = bytes.fromhex(private.decrypt(secret, PKCS1v15()).decode("ascii").strip())
    except ValueError:
        made = b""
    if len(made) != _KEY:
        raise BundleError("The bundle is not encrypted for this cloud's key.")
    return made


def decrypted(pieces: Iterator[bytes], key: bytes, iv: bytes) -> Iterator[bytes]:
    """The plain bytes.

    Raises:
        BundleError: the key is wrong, or the data ends in the middle.
    """
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
    padded = padding.PKCS7(128).unpadder()
    begun = False
    try:
        for piece in pieces:
            plain = padded.update(cipher.update(piece))
            if plain and not begun:
                begun = True
                if not plain.startswith(_GZIP):
                    raise BundleError("The bundle cannot be decrypted.")
            if plain:
                yield plain
        yield padded.update(cipher.finalize()) + padded.finalize()
    except ValueError as error:
        raise BundleError("The bundle cannot be decrypted.") from error


def gunzipped(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """The decompressed bytes, in pieces of at most `PIECE`.

    Args:
        pieces: gzip data, possibly of several members.
        limit: bytes at most.

    Raises:
        BundleError: it is no gzip data, is cut short, or holds more than the limit.
    """
    made = 0
    inflater = zlib.decompressobj(wbits=31)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                if inflater.eof:
                    rest = rest.lstrip(b"\0")  # padding after the last member
                    if not rest:
                        break
                    inflater = zlib.decompressobj(wbits=31)
                plain = inflater.decompress(rest, PIECE)
                made += len(plain)
                if made > limit:
                    raise BundleError("The bundle holds more than is allowed.")
                if plain:
                    yield plain
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        while not inflater.eof:
            # What is left inside, when all has been fed.
            plain = inflater.decompress(b"", PIECE)
            made += len(plain)
            if made > limit:
                raise BundleError("The bundle holds more than is allowed.")
            if not plain:
                raise BundleError("The compressed data ends in the middle.")
            yield plain
    except zlib.error as error:
        raise BundleError("The bundle cannot be decompressed.") from error


def image_of(
    pieces: Iterator[bytes], manifest: Manifest, keys: tuple[bytes, bytes], limit: int
) -> Iterator[bytes]:
    """The image's bytes; the whole bundle is checked on the way.

    Args:
        pieces: the parts' bytes, one part after the other.
        manifest: of the bundle.
        keys: see `keys_of`.
        limit: bytes of the tar and of the image at most.

    Raises:
        BundleError: at any point; nothing more comes then.
    """
    digest = hashlib.new(manifest.digest.algorithm) if manifest.digest else None
    tape = Tape(gunzipped(decrypted(pieces, *keys), limit), digest)
    size = 0
    for piece in image_in(tape, limit):
        size += len(piece)
        yield piece
    if manifest.size is not None and size != manifest.size:
        raise BundleError("The image is not as large as the manifest says.")
    if digest is not None and digest.hexdigest() != cast(Digest, manifest.digest).value:
        raise BundleError("The bundle's digest is not the manifest's.")
