"""The manifest of a bundle: what is in it, which parts it has, and how they are locked.

Written by whoever made the bundle, so each value is checked: XML without
document types (no entities), at most `LARGEST` bytes, names that are plain S3
keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from trimaran.ec2 import plain_xml
from trimaran.ec2.bundle import BundleError

#: Bytes of a manifest at most: some 20,000 parts.
LARGEST = 4 << 20
_LONGEST_KEY = 1024
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_ID = re.compile(r"[a-z]{3}-[0-9a-f]{1,17}")
#: Digests by the names that bundling tools write.
_ALGORITHMS = {"MD5": "md5", "SHA1": "sha1", "SHA256": "sha256", "SHA384": "sha384"}
_ALGORITHMS |= {"SHA512": "sha512"}


@dataclass(frozen=True)
class Digest:
    """A digest that something has to have.

    Attributes:
        algorithm: as hashlib names it.
        value: hex, lower case.
    """

    algorithm: str
    value: str


@dataclass(frozen=True)
class Part:
    """One part, in its order.

    Attributes:
        name: its key in the bucket.
        digest: of its bytes, where the manifest tells.
    """

    name: str
    digest: Digest | None


@dataclass(frozen=True)
class Manifest:
    """What a manifest says.

    Attributes:
        architecture: EC2's word, ``x86_64`` where nothing is said.
        mappings: (virtual name, device).
        kernel, ramdisk: an image id, ``true`` where the image is one itself, or "".
        parts: in order.
        key, iv: encrypted for the cloud's key.
        size: bytes of the image, None where nothing is said.
        digest: of the tar, where the manifest tells.
    """

    architecture: str
    mappings: tuple[tuple[str, str], ...]
    kernel: str
    ramdisk: str
    parts: tuple[Part, ...]
    key: bytes
    iv: bytes
    size: int | None
    digest: Digest | None

    @property
    def format(self) -> str:
        """Glance's disk and container format."""
        if self.kernel == "true":
            return "aki"
        return "ari" if self.ramdisk == "true" else "ami"


def parse(data: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        BundleError: it is none, or asks for what is not done.
    """
    if len(data) > LARGEST:
        raise BundleError("The manifest is too large.")
    try:
        root = plain_xml.parse(data)
    except ValueError as error:
        raise BundleError(f"The manifest cannot be read: {error}.") from error
    parts = tuple(_parts(root))
    if not parts:
        raise BundleError("The manifest names no parts.")
    machine = "machine_configuration/"
    return Manifest(
        architecture=_text(root, machine + "architecture") or "x86_64",
        mappings=tuple(
            (_text(row, "virtual"), _text(row, "device"))
            for row in root.findall(machine + "block_device_mapping/mapping")
        ),
        kernel=_reference(root, machine + "kernel_id"),
        ramdisk=_reference(root, machine + "ramdisk_id"),
        parts=parts,
        key=_secret(root, "image/ec2_encrypted_key"),
        iv=_secret(root, "image/ec2_encrypted_iv"),
        size=_size(root),
        digest=_digest(root.find("image/digest")),
    )


def is_plain_key(key: str) -> bool:
    """Whether a text is an S3 key that stays what it is in a URL."""
    steps = key.split("/")
    return (
        0 < len(key.encode("utf-8", "replace")) <= _LONGEST_KEY
        and key.isprintable()
        and not {".", ".."}.intersection(steps)
        and "" not in steps
    )


def _parts(root: Element) -> Iterator[Part]:
    digests = {
        id(name): _digest(part.find("digest"))
        for part in root.iterfind("image/parts/part")
        if (name := part.find("filename")) is not None
    }
    # Wherever they stand below the image, as upstream finds them.
    for name in root.iterfind("image//filename"):
        key = (name.text or "").strip()
        if not is_plain_key(key):
            raise BundleError("The manifest names a part that cannot be.")
        yield Part(key, digests.get(id(name)))


def _digest(element: Element | None) -> Digest | None:
    if element is None or not (element.text or "").strip():
        return None
    told = element.get("algorithm", "SHA1").upper().replace("-", "")
    value = (element.text or "").strip().lower()
    if told not in _ALGORITHMS or not _HEX.fullmatch(value):
        raise BundleError("The manifest has a digest that cannot be checked.")
    return Digest(_ALGORITHMS[told], value)


def _secret(root: Element, path: str) -> bytes:
    text = _text(root, path)
    if not _HEX.fullmatch(text) or len(text) > 4096:
        raise BundleError("The manifest has no key for this cloud.")
    return bytes.fromhex(text)


def _reference(root: Element, path: str) -> str:
    text = _text(root, path)
    if text and text != "true" and not _ID.fullmatch(text):
        raise BundleError("The manifest names a kernel or a ramdisk that cannot be.")
    return text


def _size(root: Element) -> int | None:
    text = _text(root, "image/size")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BundleError("The manifest's size is no number.")
    return int(text)


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()
