"""Multipart uploads: parts lie in a directory of the bucket until they become one object.

A part is a file as an object is, so it is there or not, never half.  Completing
copies the parts within the kernel and puts the object in place by one rename;
uploads that nobody completes go after a week.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.store import Entry, Opened, Store, Upload

MOST_PARTS = 10_000
#: Seconds after which an upload that was not completed may go.
KEPT = 7 * 86400.0
_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIX = ".parts"
_ABOUT = "about"


@dataclass(frozen=True)
class Begun:
    """An upload that is under way.

    Attributes:
        id: S3's UploadId.
        key: of the object to be.
        since: when it was begun.
    """

    id: str
    key: str
    since: datetime
    content_type: str
    headers: Mapping[str, str]


class Uploads:
    """The multipart uploads of all buckets.

    Args:
        store: the buckets.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(
        self,
        project_id: str,
        bucket: str,
        key: str,
        content_type: str,
        headers: Mapping[str, str],
    ) -> str:
        """Begin an upload; returns its id."""
        # The checks of a plain upload: the bucket is there, the key can be.
        with self._store.upload(project_id, bucket, key, content_type):
            directory = self._store.directory(project_id, bucket)
        _drop_old(directory)
        upload_id = secrets.token_hex(16)
        path = directory / f"{upload_id}{_SUFFIX}"
        path.mkdir(mode=0o700)
        about = {"key": key, "content_type": content_type, "headers": dict(headers)}
        (path / _ABOUT).write_text(json.dumps({**about, "since": time.time()}))
        return upload_id

    def part(self, project_id: str, bucket: str, key: str, upload_id: str, number: int) -> Upload:
        """A place to write a part to.

        Raises:
            S3Error: ``NoSuchUpload``; ``InvalidArgument`` for a number out of 1 to 10,000.
        """
        if not 1 <= number <= MOST_PARTS:
            raise S3Error("InvalidArgument", "Part numbers are 1 to 10000.", 400)
        path, _ = self._found(project_id, bucket, key, upload_id)
        return Upload(path, _file(path, number), str(number), "")

    def parts(
        self, project_id: str, bucket: str, key: str, upload_id: str
    ) -> list[tuple[int, Entry]]:
        """The parts that have come, by number."""
        path, _ = self._found(project_id, bucket, key, upload_id)
        found = []
        for file in sorted(path.glob("part-*")):
            opened = _open(file)
            if opened is not None:
                found.append((int(opened.entry.key), opened.entry))
                opened.close()
        return found

    def finish(
        self,
        project_id: str,
        bucket: str,
        key: str,
        upload_id: str,
        wanted: Sequence[tuple[int, str]],
    ) -> Entry:
        """Make the object of parts.

        Args:
            wanted: (number, ETag) in order.

        Raises:
            S3Error: ``NoSuchUpload``, ``InvalidPart``, ``InvalidPartOrder``.
        """
        path, begun = self._found(project_id, bucket, key, upload_id)
        numbers = [number for number, _ in wanted]
        if numbers != sorted(set(numbers)):
            raise S3Error("InvalidPartOrder", "The parts are not in ascending order.", 400)
        digest = hashlib.md5(usedforsecurity=False)
        target = self._store.upload(project_id, bucket, key, begun.content_type, begun.headers)
        with target:
            for number, etag in wanted:
                opened = _open(_file(path, number))
                if opened is None:
                    raise _invalid_part()
                try:
                    if opened.entry.etag != etag:
                        raise _invalid_part()
                    target.append(opened)
                finally:
                    opened.close()
                digest.update(bytes.fromhex(etag))
            entry = target.finish(f"{digest.hexdigest()}-{len(wanted)}")
        shutil.rmtree(path, ignore_errors=True)
        return entry

    def abort(self, project_id: str, bucket: str, key: str, upload_id: str) -> None:
        """Forget an upload with its parts."""
        path, _ = self._found(project_id, bucket, key, upload_id)
        shutil.rmtree(path, ignore_errors=True)

    def begun(self, project_id: str, bucket: str) -> list[Begun]:
        """The uploads of a bucket that are under way, by key."""
        directory = self._store.directory(project_id, bucket)
        paths = directory.glob(f"*{_SUFFIX}")
        found = [begun for path in paths if (begun := _about(path)) is not None]
        return sorted(found, key=lambda each: (each.key, each.since))

    def _found(self, project_id: str, bucket: str, key: str, upload_id: str) -> tuple[Path, Begun]:
        directory = self._store.directory(project_id, bucket)
        path = directory / f"{upload_id}{_SUFFIX}"
        begun = _about(path) if _ID.fullmatch(upload_id) else None
        if begun is None or begun.key != key:
            raise S3Error("NoSuchUpload", "The specified upload does not exist.", 404)
        return path, begun


def _file(path: Path, number: int) -> Path:
    return path / f"part-{number:05d}"


def _open(file: Path) -> Opened | None:
    try:
        return Opened(os.open(file, os.O_RDONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return None


def _about(path: Path) -> Begun | None:
    try:
        told = json.loads((path / _ABOUT).read_text())
        since = datetime.fromtimestamp(told["since"], UTC)
    except (OSError, ValueError):
        return None  # it ends, or begins, at this moment
    return Begun(
        path.name.removesuffix(_SUFFIX), told["key"], since, told["content_type"], told["headers"]
    )


def _drop_old(directory: Path) -> None:
    for path in directory.glob(f"*{_SUFFIX}"):
        begun = _about(path)
        if begun is not None and (datetime.now(UTC) - begun.since).total_seconds() > KEPT:
            shutil.rmtree(path, ignore_errors=True)


def _invalid_part() -> S3Error:
    return S3Error("InvalidPart", "A part was not found, or has another ETag.", 400)
