"""The ``aws-chunked`` encoding that SDKs wrap uploads in.

Chunks are ``<hex size>[;chunk-signature=…]CRLF<bytes>CRLF``, a chunk of size
zero ends them, trailing headers follow (AWS's "Transferring payload in
multiple chunks").  Decoding is incremental: a chunk is passed on as it comes,
only its head is ever held back.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimaran.ec2.s3.errors import S3Error

_LONGEST_LINE = 8192


class Decoder:
    """Feed it the body; it yields the payload.

    Attributes:
        trailers: the trailing headers, lower case, once ``done``.
    """

    def __init__(self) -> None:
        self._held = b""
        self._left = 0
        self._state = "head"
        self.trailers: dict[str, str] = {}

    @property
    def done(self) -> bool:
        """Whether the last chunk has been seen."""
        return self._state == "trailer"

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payload in this piece of the body.

        Raises:
            S3Error: ``InvalidRequest`` for a body that is not so encoded.
        """
        self._held += data
        while self._held:
            if self._state == "data":
                piece, self._held = self._held[: self._left], self._held[self._left :]
                self._left -= len(piece)
                if self._left == 0:
                    self._state = "crlf"
                yield piece
                continue
            line, found, rest = self._held.partition(b"\r\n")
            if not found:
                if len(self._held) > _LONGEST_LINE:
                    raise _broken()
                return
            self._held = rest
            self._line(line)

    def _line(self, line: bytes) -> None:
        if self._state == "crlf":
            if line:
                raise _broken()
            self._state = "head"
        elif self._state == "head":
            size = line.split(b";", 1)[0].strip()
            if not size or len(size) > 16 or any(c not in b"0123456789abcdefABCDEF" for c in size):
                raise _broken()
            self._left = int(size, 16)
            self._state = "data" if self._left else "trailer"
        elif line:
            name, _, value = line.decode("latin-1").partition(":")
            if len(self.trailers) > 20:
                raise _broken()
            self.trailers[name.strip().lower()] = value.strip()


def _broken() -> S3Error:
    return S3Error("InvalidRequest", "The aws-chunked body is malformed.", 400)
