"""The body of an upload, checked against everything the client said about it.

A signature covers the payload's hash, so a body that does not match must not
become an object.  Checks run while the bytes go by; nothing is read twice.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Mapping
from typing import Protocol

from trimaran.ec2.s3.auth import STREAMING, UNSIGNED
from trimaran.ec2.s3.chunked import Decoder
from trimaran.ec2.s3.errors import S3Error

LARGEST = 5 * 1024**3
_HASH = re.compile(r"[0-9a-f]{64}")


class Sink(Protocol):
    """Where the bytes go."""

    def write(self, data: bytes, /) -> None: ...


class Payload:
    """Takes the body piece by piece and writes the object's bytes.

    Args:
        headers: names lower case.
        declared: ``x-amz-content-sha256`` as signed.
        sink: where to.

    Raises:
        S3Error: the declaration itself cannot be met (``InvalidRequest``,
            ``InvalidDigest``, ``EntityTooLarge``).
    """

    def __init__(self, headers: Mapping[str, str], declared: str, sink: Sink) -> None:
        self._sink = sink
        self._headers = headers
        self._size = 0
        self._crc = 0
        self._sha = hashlib.sha256() if _HASH.fullmatch(declared) else None
        self._declared = declared
        encoded = "aws-chunked" in headers.get("content-encoding", "")
        self._decoder = Decoder() if declared.startswith(STREAMING) or encoded else None
        if self._sha is None and declared != UNSIGNED and self._decoder is None:
            raise S3Error("InvalidRequest", "x-amz-content-sha256 is not valid.", 400)
        self._wanted_md5 = _decoded(headers.get("content-md5"))
        # An integrity check that clients may ask for, no protection.
        self._md5 = hashlib.md5(usedforsecurity=False)

    def feed(self, data: bytes) -> None:
        """A piece of the body as it arrived.

        Raises:
            S3Error: ``EntityTooLarge``, ``InvalidRequest``.
        """
        if self._sha is not None:
            self._sha.update(data)
        for piece in self._decoder.feed(data) if self._decoder else (data,):
            self._size += len(piece)
            if self._size > LARGEST:
                raise S3Error("EntityTooLarge", "The object is larger than 5 GB.", 400)
            self._crc = zlib.crc32(piece, self._crc)
            if self._wanted_md5 is not None:
                self._md5.update(piece)
            self._sink.write(piece)

    def check(self) -> None:
        """Compare, once all of the body has come.

        Raises:
            S3Error: ``XAmzContentSHA256Mismatch``, ``BadDigest``, ``IncompleteBody``.
        """
        if self._decoder is not None and not self._decoder.done:
            raise S3Error("IncompleteBody", "The body ended before its last chunk.", 400)
        length = self._headers.get("x-amz-decoded-content-length")
        if length is not None and length != str(self._size):
            raise S3Error("IncompleteBody", "The body is not as long as it was said to be.", 400)
        if self._sha is not None and self._sha.hexdigest() != self._declared:
            raise S3Error(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
                400,
            )
        trailers = self._decoder.trailers if self._decoder else {}
        crc = trailers.get("x-amz-checksum-crc32") or self._headers.get("x-amz-checksum-crc32")
        if crc is not None and _decoded(crc) != self._crc.to_bytes(4, "big"):
            raise _bad_digest()
        if self._wanted_md5 is not None and self._wanted_md5 != self._md5.digest():
            raise _bad_digest()


def _decoded(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise S3Error("InvalidDigest", "A digest you specified is not valid.", 400) from None


def _bad_digest() -> S3Error:
    return S3Error("BadDigest", "A digest you specified did not match the body.", 400)
