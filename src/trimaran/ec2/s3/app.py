"""The S3 service as an ASGI application.

Bodies of objects stream through the event loop to a thread that writes them;
documents are small and read at once; everything else is done on threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trimaran import __version__, web
from trimaran.config import common
from trimaran.ec2 import parts
from trimaran.ec2.auth import Signed
from trimaran.ec2.protocol import parameters
from trimaran.ec2.routing import Everything
from trimaran.ec2.s3 import documents, errors
from trimaran.ec2.s3.auth import authenticate, declared_hash
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.operations import XML, Call, Operations
from trimaran.ec2.s3.payload import Payload
from trimaran.ec2.s3.store import Store
from trimaran.errors import TrimaranError

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.identity import Identity


class Endpoint:
    """Answers S3 requests.

    Args:
        identity: Keystone.
        operations: what requests do.
    """

    def __init__(self, identity: Identity, operations: Operations) -> None:
        self._identity = identity
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        web.name_operation(scope, "s3")
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            raise S3Error("IncompleteBody", "The body ended early.", 400) from None
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        signed, bucket, key = await run_in_threadpool(_read, request)
        query = request.scope["query_string"]
        token = await run_in_threadpool(authenticate, signed, query, self._identity)
        call = Call(signed, token.project_id or "", bucket, key)
        operations = self._operations
        if operations.receives(call):
            if operations.is_copy(call):
                return await run_in_threadpool(operations.copy, call)
            return await self._receive(request, call)
        if operations.takes_document(call):
            body = await _document(request, signed)
            call = Call(signed, call.project, bucket, key, body)
        return await run_in_threadpool(operations.answer, call)

    async def _receive(self, request: Request, call: Call) -> Response:
        upload = await run_in_threadpool(self._operations.target, call)
        try:
            payload = Payload(call.headers, declared_hash(call.signed), upload)
            async for data in request.stream():
                if data:
                    await run_in_threadpool(payload.feed, data)
            payload.check()
            entry = await run_in_threadpool(upload.finish)
        finally:
            await run_in_threadpool(upload.__exit__, None, None, None)
        return Response(headers={"etag": f'"{entry.etag}"'})


class _Memory:
    """A document that is kept while it comes, in the place of an object."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        if len(self.data) + len(data) > documents.LARGEST:
            raise S3Error("MalformedXML", "The document is too large.", 400)
        self.data += data


async def _document(request: Request, signed: Signed) -> bytes:
    memory = _Memory()
    payload = Payload(signed.headers, declared_hash(signed), memory)
    async for data in request.stream():
        if data:
            payload.feed(data)
    payload.check()
    return bytes(memory.data)


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


def render_error(error: TrimaranError, request: Request) -> Response:
    """Errors in S3's document; a HEAD has no body."""
    told = errors.to_s3(error)
    body = b"" if request.method == "HEAD" else errors.error_xml(told, web.request_id())
    headers = dict(XML)
    if request.method in ("PUT", "POST"):
        # The body may not have been read, and the client may never send it (it
        # asks first, with Expect): the next request must not be taken for it.
        headers["connection"] = "close"
    return Response(body, told.status, headers=headers)


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
    operations = Operations(Store(Path(conf.buckets_path)), conf.s3_region)
    app.router.routes.append(Everything(Endpoint(identity, operations)))
    return app
