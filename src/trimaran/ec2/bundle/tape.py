"""A tar that is read once from front to back, and trusted with nothing.

``tarfile`` parses the headers (its sparse forms included, which bundling tools
write).  What it reads for that is bounded here: a header may claim gigabytes of
names or of holes.  Nothing is ever written to a path of the tar's choosing:
the image's bytes are passed on, and every member is checked all the same.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Any, Protocol

from trimaran.ec2.bundle import PIECE, BundleError

#: Bytes of headers in all.
MOST_HEADERS = 4 << 20


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


class Tape:
    """A file object that only goes forward.

    Args:
        pieces: the bytes.
        digest: is told of all bytes.

    Attributes:
        free: reads are the image's bytes, not headers.
    """

    def __init__(self, pieces: Iterator[bytes], digest: _Hash | None) -> None:
        self._pieces = pieces
        self._digest = digest
        self._held = b""
        self._at = 0
        self._headers = 0
        self.free = False

    def tell(self) -> int:
        """Bytes passed so far."""
        return self._at

    def seek(self, position: int) -> int:
        """Goes forward.

        Raises:
            BundleError: backward.
        """
        if position < self._at:
            raise BundleError("The archive cannot be read in one go.")
        while self._at < position:
            if not self._next(position - self._at):
                break
        return self._at

    def read(self, size: int) -> bytes:
        """The next bytes, fewer at the end only.

        Raises:
            BundleError: the headers are larger than any honest ones.
        """
        if not self.free:
            self._headers += size
            if self._headers > MOST_HEADERS:
                raise BundleError("The archive's headers are too large.")
        found = []
        while size > 0:
            piece = self._next(size)
            if not piece:
                break
            found.append(piece)
            size -= len(piece)
        return b"".join(found)

    def drain(self) -> None:
        """Goes to the very end, which the digest covers."""
        while self._next(PIECE):
            pass

    def _next(self, most: int) -> bytes:
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._held = piece
        piece, self._held = self._held[:most], self._held[most:]
        self._at += len(piece)
        if self._digest is not None:
            self._digest.update(piece)
        return piece


def image_in(tape: Tape, limit: int) -> Iterator[bytes]:
    """The bytes of the first member; all members are checked.

    Args:
        tape: the tar.
        limit: bytes of the image at most; holes count as well.

    Raises:
        BundleError: no tar, an empty one, or one with anything but plain files
            that stay in its directory.
    """
    try:
        archive = tarfile.TarFile(fileobj=_as_file(tape), mode="r")
        first = True
        while (member := archive.next()) is not None:
            _check(member, limit)
            if first:
                yield from _data(archive, tape, member)
            first = False
    except (tarfile.TarError, LookupError, ArithmeticError, ValueError, RecursionError) as error:
        raise BundleError("The archive is broken.") from error
    if first:
        raise BundleError("The archive is empty.")
    tape.drain()


def _as_file(tape: Tape) -> Any:
    return tape


def _check(member: tarfile.TarInfo, limit: int) -> None:
    name = member.name
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise BundleError("The archive has a member outside its directory.")
    if not member.isreg():
        raise BundleError("The archive has a member that is no plain file.")
    if not 0 <= member.size <= limit:
        raise BundleError("The archive has a member that is larger than is allowed.")


def _data(archive: tarfile.TarFile, tape: Tape, member: tarfile.TarInfo) -> Iterator[bytes]:
    source = archive.extractfile(member)
    if source is None:
        raise BundleError("The archive has a member that is no plain file.")
    left = member.size
    while left:
        tape.free = True
        piece = source.read(min(PIECE, left))
        tape.free = False
        if not piece:
            raise BundleError("The archive ends in the middle.")
        left -= len(piece)
        yield piece
