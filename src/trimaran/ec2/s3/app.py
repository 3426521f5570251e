"""The S3 service as an ASGI application.

Bodies stream through the event loop to a thread that writes them; everything
else is done on threads.  What S3 has and this stub has not (copies, multipart
uploads, sub-resources, POST forms) is ``NotImplemented`` 501, never a 200 that
did nothing.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trimaran import __version__, web
from trimaran.config import common
from trimaran.ec2 import parts
from trimaran.ec2.auth import Signed
from trimaran.ec2.protocol import parameters
from trimaran.ec2.routing import Everything
from trimaran.ec2.s3 import errors, listing
from trimaran.ec2.s3.auth import authenticate, declared_hash
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.payload import Payload
from trimaran.ec2.s3.store import Entry, Store
from trimaran.errors import TrimaranError

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.identity import Identity

_XML = {"content-type": "application/xml"}
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
# Query names that address something other than the bucket or the object.
_SUBRESOURCES = frozenset(
    {
        "accelerate", "acl", "analytics", "cors", "delete", "encryption", "inventory", "lifecycle",
        "logging", "metrics", "notification", "object-lock", "ownershipControls", "partNumber",
        "policy", "policyStatus", "publicAccessBlock", "replication", "requestPayment", "restore",
        "retention", "select", "tagging", "torrent", "uploadId", "uploads", "versionId",
        "versioning", "versions", "website",
    }
)  # fmt: skip


class Endpoint:
    """Answers S3 requests.

    Args:
        identity: Keystone.
        store: the buckets.
    """

    def __init__(self, identity: Identity, store: Store) -> None:
        self._identity = identity
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        web.name_operation(scope, "s3")
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        signed, bucket, key = await run_in_threadpool(_read, request)
        token = await run_in_threadpool(authenticate, signed, self._identity)
        project = token.project_id or ""
        query = signed.parameters.query
        if _SUBRESOURCES.intersection(query) or "x-amz-copy-source" in signed.headers:
            raise errors.not_implemented()
        if request.method == "PUT" and key:
            return await self._put(request, signed, project, bucket, key)
        return await run_in_threadpool(self._plain, signed, project, bucket, key)

    def _plain(self, signed: Signed, project: str, bucket: str, key: str) -> Response:
        store, method = self._store, signed.method
        if not bucket:
            if method != "GET":
                raise errors.not_implemented()
            found = store.buckets(project)
            return Response(listing.buckets(found, project), headers=_XML)
        if key:
            if method in ("GET", "HEAD"):
                return self._get(signed, project, bucket, key)
            if method == "DELETE":
                store.delete(project, bucket, key)
                return Response(status_code=204)
            raise errors.not_implemented()
        if method == "PUT":
            store.create(project, bucket)
            return Response(headers={"location": f"/{bucket}"})
        if method == "DELETE":
            store.remove(project, bucket)
            return Response(status_code=204)
        if method == "HEAD":
            if not store.exists(project, bucket):
                raise errors.no_such_bucket()
            return Response()
        if method == "GET":
            if "location" in signed.parameters.query:
                raise errors.not_implemented()
            found_objects = store.entries(project, bucket)
            return Response(
                listing.objects(bucket, found_objects, signed.parameters.query), headers=_XML
            )
        raise errors.not_implemented()

    def _get(self, signed: Signed, project: str, bucket: str, key: str) -> Response:
        opened = self._store.open(project, bucket, key)
        entry = opened.entry
        try:
            span = _span(signed.headers.get("range"), entry.size)
        except S3Error:
            opened.close()
            raise
        start, length = span or (0, entry.size)
        headers = _headers_of(entry) | {"content-length": str(length), "accept-ranges": "bytes"}
        if span:
            headers["content-range"] = f"bytes {start}-{start + length - 1}/{entry.size}"
        status = 206 if span else 200
        if signed.method == "HEAD":
            opened.close()
            return Response(status_code=status, headers=headers)
        return StreamingResponse(opened.chunks(start, length), status, headers)

    async def _put(
        self, request: Request, signed: Signed, project: str, bucket: str, key: str
    ) -> Response:
        upload = await run_in_threadpool(
            self._store.upload,
            project,
            bucket,
            key,
            signed.headers.get("content-type", "application/unknown"),
        )
        try:
            payload = Payload(signed.headers, declared_hash(signed), upload)
            async for data in request.stream():
                if data:
                    await run_in_threadpool(payload.feed, data)
            payload.check()
            entry = await run_in_threadpool(upload.finish)
        except ClientDisconnect:
            raise S3Error("IncompleteBody", "The body ended early.", 400) from None
        finally:
            await run_in_threadpool(upload.__exit__, None, None, None)
        return Response(headers={"etag": f'"{entry.etag}"'})


def _read(request: Request) -> tuple[Signed, str, str]:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    path = request.scope["raw_path"].decode("latin-1") or "/"
    sent = parameters.collect(request.scope["query_string"], "", b"")
    try:
        plain = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        raise S3Error("InvalidURI", "The path is not valid UTF-8.", 400) from None
    bucket, _, key = plain.removeprefix("/").partition("/")
    return Signed(request.method, path, headers, sent, b""), bucket, key


def _headers_of(entry: Entry) -> dict[str, str]:
    return {
        "content-type": entry.content_type,
        "etag": f'"{entry.etag}"',
        "last-modified": formatdate(entry.modified, usegmt=True),
    }


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


def render_error(error: TrimaranError, request: Request) -> Response:
    """Errors in S3's document; a HEAD has no body."""
    told = errors.to_s3(error)
    body = b"" if request.method == "HEAD" else errors.error_xml(told, web.request_id())
    return Response(body, told.status, headers=_XML)


def build(conf: cfg.ConfigOpts) -> FastAPI:
    """The application that a loaded ``ec2api.conf`` describes.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    identity = parts.identity_of(conf)
    app = web.create_app(
        "ec2-s3",
        own=common.own(conf),
        title="S3",
        version=__version__,
        render_error=render_error,
        probes={"identity": identity.ping},
        stop=(identity.close,),
        request_id_header="x-amz-request-id",
        unlimited_bodies=("/",),
    )
    app.router.routes.append(Everything(Endpoint(identity, Store(Path(conf.buckets_path)))))
    return app
