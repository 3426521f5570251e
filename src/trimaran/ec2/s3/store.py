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
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
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
        etag: hex MD5 of the bytes.
        modified: seconds since the epoch.
    """

    key: str
    size: int
    etag: str
    modified: float
    content_type: str = "application/unknown"


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
                    found.append(_footer(stream.fileno()))
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

    def upload(self, project_id: str, bucket: str, key: str, content_type: str) -> Upload:
        """A place to write an object to; nothing is visible before ``Upload.finish``."""
        directory = self._there(project_id, bucket)
        return Upload(directory, directory / _file_name(key), key, content_type)

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

    def __init__(self, directory: Path, target: Path, key: str, content_type: str) -> None:
        self._target = target
        self._key = key
        self._content_type = content_type
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

    @property
    def md5(self) -> bytes:
        """MD5 of the bytes so far."""
        return self._md5.digest()

    def finish(self) -> Entry:
        """Put the object in place, on disk for good."""
        entry = Entry(
            self._key,
            self._size,
            self._md5.hexdigest(),
            datetime.now(UTC).timestamp(),
            self._content_type,
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
            self.entry = _footer(descriptor)
        except BaseException:
            os.close(descriptor)
            raise

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

    def close(self) -> None:
        """Give the descriptor back; closing twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _file_name(key: str) -> str:
    if not key or len(key.encode()) > LONGEST_KEY:
        raise S3Error("KeyTooLongError", "Your key is too long", 400)
    return hashlib.sha256(key.encode()).hexdigest() + _SUFFIX


def _footer(descriptor: int) -> Entry:
    end = os.fstat(descriptor).st_size
    tail = _LENGTH.size + len(_MAGIC)
    raw = os.pread(descriptor, tail, max(0, end - tail))
    if len(raw) < tail or not raw.endswith(_MAGIC):
        raise S3Error("InternalError", "The object cannot be read.", 500)
    (length,) = _LENGTH.unpack(raw[: _LENGTH.size])
    return Entry(**json.loads(os.pread(descriptor, length, end - tail - length)))
