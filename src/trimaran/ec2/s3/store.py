"""Objects on a local disk: one directory a project and bucket, one file an object.

A file is named by the digest of its key, so no key can leave its directory or
meet a limit of the file system.  What S3 tells of an object follows its bytes
in the same file (a footer), which is put in place by one rename: a reader sees
the old object or the new one, never half of either.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from trimaran.ec2.s3.errors import S3Error, no_such_bucket, no_such_key

LONGEST_KEY = 1024
_LENGTH = struct.Struct(">Q")
_MAGIC = b"trimaran-s3-1"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_PROJECT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SUFFIX = ".object"


@dataclass(frozen=True)
class Entry:
    """What is told of an object.

    Attributes:
        etag: hex MD5 of the bytes; of an object in parts, as S3 makes it of theirs.
        modified: seconds since the epoch.
        headers: what else the client said of it, to be told again.
    """

    key: str
    size: int
    etag: str
    modified: float
    content_type: str = "application/unknown"
    headers: dict[str, str] = field(default_factory=dict)


class Store:
    """The buckets of all projects.

    Args:
        root: ``buckets_path``; made when missing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def buckets(self, project_id: str) -> list[tuple[str, datetime]]:
        """A project's buckets with the time of their last change, by name."""
        home = self._home(project_id)
        if not home.is_dir():
            return []
        return sorted(
            (entry.name, datetime.fromtimestamp(entry.stat().st_ctime, UTC))
            for entry in os.scandir(home)
            if entry.is_dir()
        )

    def create(self, project_id: str, bucket: str) -> None:
        """Make a bucket.

        Raises:
            S3Error: ``InvalidBucketName``, ``BucketAlreadyOwnedByYou`` 403.
        """
        path = self._path(project_id, bucket)
        try:
            path.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            raise S3Error(
                "BucketAlreadyOwnedByYou",
                "The bucket you tried to create already exists, and you own it.",
                403,
            ) from None

    def exists(self, project_id: str, bucket: str) -> bool:
        """Whether a bucket is there."""
        return self._path(project_id, bucket).is_dir()

    def remove(self, project_id: str, bucket: str) -> None:
        """Remove an empty bucket.

        Raises:
            S3Error: ``NoSuchBucket``, ``BucketNotEmpty`` 403.
        """
        path = self._there(project_id, bucket)
        if any(path.glob(f"*{_SUFFIX}")):
            raise S3Error("BucketNotEmpty", "The bucket you tried to delete is not empty", 403)
        try:
            # Uploads that broke off may have left files that no key names.
            for rest in path.iterdir():
                if rest.is_dir():
                    shutil.rmtree(rest, ignore_errors=True)
                else:
                    rest.unlink(missing_ok=True)
            path.rmdir()
        except FileNotFoundError:
            raise no_such_bucket() from None

    def entries(self, project_id: str, bucket: str) -> list[Entry]:
        """All objects of a bucket, by key."""
        path = self._there(project_id, bucket)
        found = []
        for file in path.glob(f"*{_SUFFIX}"):
            try:
                with file.open("rb") as stream:
                    found.append(footer(stream.fileno()))
            except FileNotFoundError:  # deleted while we looked
                continue
        return sorted(found, key=lambda entry: entry.key)

    def open(self, project_id: str, bucket: str, key: str) -> Opened:
        """An object for reading.

        Raises:
            S3Error: ``NoSuchBucket``, ``NoSuchKey``.
        """
        path = self._there(project_id, bucket) / _file_name(key)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise no_such_key() from None
        return Opened(descriptor)

    def delete(self, project_id: str, bucket: str, key: str) -> None:
        """Delete an object.

        Raises:
            S3Error: ``NoSuchBucket``, ``NoSuchKey``.
        """
        try:
            (self._there(project_id, bucket) / _file_name(key)).unlink()
        except FileNotFoundError:
            raise no_such_key() from None

    def upload(
        self,
        project_id: str,
        bucket: str,
        key: str,
        content_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> Upload:
        """A place to write an object to; nothing is visible before ``Upload.finish``."""
        directory = self.directory(project_id, bucket)
        return Upload(directory, directory / _file_name(key), key, content_type, headers)

    def directory(self, project_id: str, bucket: str) -> Path:
        """Where a bucket's files are.

        Raises:
            S3Error: ``NoSuchBucket``, ``InvalidBucketName``.
        """
        return self._there(project_id, bucket)

    def _home(self, project_id: str) -> Path:
        if not _PROJECT.fullmatch(project_id):
            raise S3Error("InvalidRequest", "The project's id is not usable here.", 400)
        return self._root / project_id

    def _path(self, project_id: str, bucket: str) -> Path:
        if not _BUCKET.fullmatch(bucket):
            raise S3Error("InvalidBucketName", "The specified bucket is not valid.", 400)
        return self._home(project_id) / bucket

    def _there(self, project_id: str, bucket: str) -> Path:
        path = self._path(project_id, bucket)
        if not path.is_dir():
            raise no_such_bucket()
        return path


class Upload:
    """An object being written; use as a context manager, which cleans up without ``finish``."""

    def __init__(
        self,
        directory: Path,
        target: Path,
        key: str,
        content_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._target = target
        self._key = key
        self._content_type = content_type
        self._headers = dict(headers or {})
        # Content addressing of S3's ETag, no protection.
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size = 0
        self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed in __exit__
            dir=directory, prefix=".upload-", delete=False
        )

    def __enter__(self) -> Upload:
        return self

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._file.write(data)
        self._md5.update(data)
        self._size += len(data)

    def append(self, other: Opened) -> None:
        """Add the bytes of another file without looking at them; ``finish`` needs an ETag then."""
        self._file.flush()
        at, left = 0, other.entry.size
        while left > 0:
            sent = os.sendfile(self._file.fileno(), other.descriptor, at, min(left, 1 << 26))
            if not sent:
                raise OSError("a part is shorter than it says")
            at, left = at + sent, left - sent
        self._file.seek(0, os.SEEK_END)
        self._size += other.entry.size

    def finish(self, etag: str = "") -> Entry:
        """Put the object in place, on disk for good.

        Args:
            etag: of bytes that were appended unseen.
        """
        entry = Entry(
            self._key,
            self._size,
            etag or self._md5.hexdigest(),
            datetime.now(UTC).timestamp(),
            self._content_type,
            self._headers,
        )
        footer = json.dumps(asdict(entry)).encode()
        self._file.write(footer + _LENGTH.pack(len(footer)) + _MAGIC)
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._file.name, self._target)
        return entry

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)


class Opened:
    """An object open for reading; ``close`` it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        try:
            self.entry = footer(descriptor)
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        # A client that left before the first byte: nobody ever begins with ``chunks``.
        self.close()

    def chunks(self, start: int, length: int, size: int = 256 * 1024) -> Iterator[bytes]:
        """The bytes from ``start`` on, in pieces; closes the object at the end."""
        try:
            while length > 0:
                data = os.pread(self._descriptor, min(size, length), start)
                if not data:
                    return
                start += len(data)
                length -= len(data)
                yield data
        finally:
            self.close()

    @property
    def descriptor(self) -> int:
        """For the kernel's own copying."""
        return self._descriptor

    def close(self) -> None:
        """Give the descriptor back; closing twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _file_name(key: str) -> str:
    if not key or len(key.encode()) > LONGEST_KEY:
        raise S3Error("KeyTooLongError", "Your key is too long", 400)
    return hashlib.sha256(key.encode()).hexdigest() + _SUFFIX


def footer(descriptor: int) -> Entry:
    """What an object's file tells of it."""
    end = os.fstat(descriptor).st_size
    tail = _LENGTH.size + len(_MAGIC)
    raw = os.pread(descriptor, tail, max(0, end - tail))
    if len(raw) < tail or not raw.endswith(_MAGIC):
        raise S3Error("InternalError", "The object cannot be read.", 500)
    (length,) = _LENGTH.unpack(raw[: _LENGTH.size])
    return Entry(**json.loads(os.pread(descriptor, length, end - tail - length)))
