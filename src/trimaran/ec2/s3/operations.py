"""What each S3 request does; blocking work for a thread.

A request is known by its method, by whether it names a key, and by the
sub-resource in its query.  A sub-resource, header or method that is not in
these tables is ``NotImplemented`` 501: never a 200 that did nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import unquote

from starlette.responses import Response, StreamingResponse

from trimaran.ec2.auth import Signed
from trimaran.ec2.s3 import documents, errors, listing
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.store import Entry, Store, Upload
from trimaran.ec2.s3.uploads import Uploads

XML = {"content-type": "application/xml"}
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
#: Headers of an object that are told again as they came.
_KEPT = frozenset({"cache-control", "content-disposition", "content-language", "expires"})
_META = "x-amz-meta-"
_COPY = "x-amz-copy-source"
#: Query names that address something other than the bucket or the object.
SUBRESOURCES = frozenset(
    {
        "accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption",
        "inventory", "legal-hold", "lifecycle", "location", "logging", "metrics", "notification",
        "object-lock", "ownershipControls", "partNumber", "policy", "policyStatus",
        "publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select",
        "tagging", "torrent", "uploadId", "uploads", "versionId", "versioning", "versions",
        "website",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One request whose signer is known.

    Attributes:
        signed: as it came.
        project: the signer's.
        bucket, key: what it is about; empty where it names none.
        body: of a request that carries a document.
    """

    signed: Signed
    project: str
    bucket: str
    key: str
    body: bytes = b""

    @property
    def query(self) -> Mapping[str, str]:
        """The query's parameters."""
        return self.signed.parameters.query

    @property
    def subresources(self) -> frozenset[str]:
        """The query names that address something else."""
        return SUBRESOURCES.intersection(self.query)

    @property
    def headers(self) -> Mapping[str, str]:
        """Names lower case."""
        return self.signed.headers


class Operations:
    """The operations on one store.

    Args:
        store: the buckets.
        region: told as the place of each bucket.
    """

    def __init__(self, store: Store, region: str) -> None:
        self._store = store
        self._uploads = Uploads(store)
        self._region = region
        self._table: dict[tuple[str, int, frozenset[str]], Callable[[Call], Response]] = {
            ("GET", 0, frozenset()): self._list_buckets,
            ("PUT", 1, frozenset()): self._create_bucket,
            ("HEAD", 1, frozenset()): self._head_bucket,
            ("GET", 1, frozenset()): self._list_objects,
            ("DELETE", 1, frozenset()): self._delete_bucket,
            ("GET", 1, frozenset({"location"})): self._location,
            ("GET", 1, frozenset({"uploads"})): self._list_uploads,
            ("POST", 1, frozenset({"delete"})): self._delete_objects,
            ("GET", 2, frozenset()): self._get_object,
            ("HEAD", 2, frozenset()): self._get_object,
            ("DELETE", 2, frozenset()): self._delete_object,
            ("GET", 2, frozenset({"tagging"})): self._tags,
            ("POST", 2, frozenset({"uploads"})): self._begin,
            ("GET", 2, frozenset({"uploadId"})): self._list_parts,
            ("POST", 2, frozenset({"uploadId"})): self._complete,
            ("DELETE", 2, frozenset({"uploadId"})): self._abort,
        }

    def answer(self, call: Call) -> Response:
        """Answers a request that carries no object."""
        names = bool(call.bucket) + bool(call.key)
        operation = self._table.get((call.signed.method, names, call.subresources))
        if operation is None:
            raise errors.not_implemented()
        return operation(call)

    def takes_document(self, call: Call) -> bool:
        """Whether a request carries a document, rather than an object or nothing."""
        return call.signed.method == "POST"

    def receives(self, call: Call) -> bool:
        """Whether a request carries an object or a part of one."""
        return call.signed.method == "PUT" and bool(call.key)

    # -- objects that come ------------------------------------------------------

    def target(self, call: Call) -> Upload:
        """Where the bytes of a request go.

        Raises:
            S3Error: ``NotImplemented`` for what would be ignored, and the place's own.
        """
        if "if-match" in call.headers or "if-none-match" in call.headers:
            raise errors.not_implemented()
        if call.subresources == {"partNumber", "uploadId"}:
            number = call.query["partNumber"]
            if not (number.isascii() and number.isdigit() and len(number) < 6):
                raise S3Error("InvalidArgument", "Part numbers are 1 to 10000.", 400)
            return self._uploads.part(
                call.project, call.bucket, call.key, call.query["uploadId"], int(number)
            )
        if call.subresources:
            raise errors.not_implemented()
        return self._store.upload(
            call.project, call.bucket, call.key, _type(call), _headers_to_keep(call)
        )

    def is_copy(self, call: Call) -> bool:
        """Whether the bytes are another object's."""
        return _COPY in call.headers

    def copy(self, call: Call) -> Response:
        """Copies an object, or a range of one into a part.

        Raises:
            S3Error: ``InvalidArgument`` for a source that cannot be; the source's own.
        """
        if {f"{_COPY}-if-modified-since", f"{_COPY}-if-unmodified-since"}.intersection(
            call.headers
        ):
            raise errors.not_implemented()
        bucket, key = _source(call.headers[_COPY])
        part = bool(call.subresources)
        opened = self._store.open(call.project, bucket, key)
        try:
            entry = opened.entry
            if _is_known(call, entry, prefix=f"{_COPY}-"):
                raise S3Error("PreconditionFailed", "The object is that one.", 412)
            start, length = _span(call.headers.get(f"{_COPY}-range"), entry.size) or (0, entry.size)
            target = self.target(call) if part else self._copy_target(call, entry)
            with target:
                for piece in opened.chunks(start, length):
                    target.write(piece)
                made = target.finish()
        finally:
            opened.close()
        return Response(documents.copied(made, part=part), headers=XML)

    def _copy_target(self, call: Call, source: Entry) -> Upload:
        directive = call.headers.get("x-amz-metadata-directive", "COPY").upper()
        if directive not in ("COPY", "REPLACE"):
            raise S3Error("InvalidArgument", "Unknown metadata directive.", 400)
        if directive == "REPLACE":
            return self.target(call)
        if _source(call.headers[_COPY]) == (call.bucket, call.key):
            raise S3Error("InvalidRequest", "An object is not copied onto itself.", 400)
        return self._store.upload(
            call.project, call.bucket, call.key, source.content_type, source.headers
        )

    # -- buckets ----------------------------------------------------------------

    def _list_buckets(self, call: Call) -> Response:
        found = self._store.buckets(call.project)
        return Response(listing.buckets(found, call.project), headers=XML)

    def _create_bucket(self, call: Call) -> Response:
        self._store.create(call.project, call.bucket)
        return Response(headers={"location": f"/{call.bucket}"})

    def _delete_bucket(self, call: Call) -> Response:
        self._store.remove(call.project, call.bucket)
        return Response(status_code=204)

    def _head_bucket(self, call: Call) -> Response:
        if not self._store.exists(call.project, call.bucket):
            raise errors.no_such_bucket()
        return Response(headers={"x-amz-bucket-region": self._region})

    def _list_objects(self, call: Call) -> Response:
        found = self._store.entries(call.project, call.bucket)
        return Response(listing.objects(call.bucket, found, call.query), headers=XML)

    def _location(self, call: Call) -> Response:
        self._store.directory(call.project, call.bucket)
        return Response(documents.location(self._region), headers=XML)

    def _delete_objects(self, call: Call) -> Response:
        keys, quiet = documents.wanted_keys(call.body)
        self._store.directory(call.project, call.bucket)
        gone, failed = [], []
        for key in keys:
            try:
                self._store.delete(call.project, call.bucket, key)
            except S3Error as error:
                if error.code != "NoSuchKey":
                    failed.append((key, error))
                    continue
            if not quiet:
                gone.append(key)
        return Response(documents.deleted(gone, failed), headers=XML)

    # -- objects ----------------------------------------------------------------

    def _get_object(self, call: Call) -> Response:
        opened = self._store.open(call.project, call.bucket, call.key)
        entry = opened.entry
        try:
            if _is_known(call, entry):
                opened.close()
                return Response(status_code=304, headers={"etag": f'"{entry.etag}"'})
            span = _span(call.headers.get("range"), entry.size)
        except S3Error:
            opened.close()
            raise
        start, length = span or (0, entry.size)
        headers = _told(entry) | {"content-length": str(length), "accept-ranges": "bytes"}
        if span:
            headers["content-range"] = f"bytes {start}-{start + length - 1}/{entry.size}"
        status = 206 if span else 200
        if call.signed.method == "HEAD":
            opened.close()
            return Response(status_code=status, headers=headers)
        return StreamingResponse(opened.chunks(start, length), status, headers)

    def _delete_object(self, call: Call) -> Response:
        self._store.delete(call.project, call.bucket, call.key)
        return Response(status_code=204)

    def _tags(self, call: Call) -> Response:
        self._store.open(call.project, call.bucket, call.key).close()
        return Response(documents.no_tags(), headers=XML)

    # -- uploads in parts ---------------------------------------------------------

    def _begin(self, call: Call) -> Response:
        upload_id = self._uploads.begin(
            call.project, call.bucket, call.key, _type(call), _headers_to_keep(call)
        )
        return Response(documents.begun(call.bucket, call.key, upload_id), headers=XML)

    def _list_parts(self, call: Call) -> Response:
        upload_id = call.query["uploadId"]
        found = self._uploads.parts(call.project, call.bucket, call.key, upload_id)
        return Response(documents.parts(call.bucket, call.key, upload_id, found), headers=XML)

    def _complete(self, call: Call) -> Response:
        wanted = documents.wanted_parts(call.body)
        entry = self._uploads.finish(
            call.project, call.bucket, call.key, call.query["uploadId"], wanted
        )
        return Response(documents.completed(call.bucket, call.key, entry), headers=XML)

    def _abort(self, call: Call) -> Response:
        self._uploads.abort(call.project, call.bucket, call.key, call.query["uploadId"])
        return Response(status_code=204)

    def _list_uploads(self, call: Call) -> Response:
        found = self._uploads.begun(call.project, call.bucket)
        return Response(documents.uploads(call.bucket, found), headers=XML)


def _type(call: Call) -> str:
    return call.headers.get("content-type", "application/unknown")


def _headers_to_keep(call: Call) -> dict[str, str]:
    kept = {
        name: value
        for name, value in call.headers.items()
        if name in _KEPT or name.startswith(_META)
    }
    encodings = [text.strip() for text in call.headers.get("content-encoding", "").split(",")]
    if encoding := ",".join(text for text in encodings if text and text != "aws-chunked"):
        kept["content-encoding"] = encoding
    return kept


def _told(entry: Entry) -> dict[str, str]:
    return {
        **entry.headers,
        "content-type": entry.content_type,
        "etag": f'"{entry.etag}"',
        "last-modified": formatdate(entry.modified, usegmt=True),
    }


def _is_known(call: Call, entry: Entry, prefix: str = "") -> bool:
    """Whether the client has the object already, or wants none like it.

    Raises:
        S3Error: ``PreconditionFailed`` when it wants another one.
    """
    names = (f"{prefix}if-match", f"{prefix}if-none-match")
    wanted, known = (_etags(call.headers.get(name)) for name in names)
    if wanted is not None and not {entry.etag, "*"} & wanted:
        raise S3Error("PreconditionFailed", "The object is another one.", 412)
    return known is not None and bool({entry.etag, "*"} & known)


def _etags(text: str | None) -> set[str] | None:
    return None if text is None else {each.strip().strip('"') for each in text.split(",")}


def _source(text: str) -> tuple[str, str]:
    """(bucket, key) of ``x-amz-copy-source``."""
    path, _, version = text.partition("?versionId=")
    bucket, _, key = unquote(path).removeprefix("/").partition("/")
    if version:
        raise errors.not_implemented()
    if not bucket or not key:
        raise S3Error("InvalidArgument", "The copy source is malformed.", 400)
    return bucket, key


def _span(text: str | None, size: int) -> tuple[int, int] | None:
    """(start, length) of a Range header; None to answer the whole.

    Raises:
        S3Error: ``InvalidRange`` 416 for one that lies outside.
    """
    found = _RANGE.fullmatch(text.strip()) if text else None
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        start, end = max(0, size - int(last)), size - 1
    else:
        start = int(first)
        end = min(int(last), size - 1) if last else size - 1
    if start > end or start >= size:
        raise S3Error("InvalidRange", "The requested range is not satisfiable", 416)
    return start, end - start + 1
