"""Reading a bundle from S3: the service that ``s3_url`` names, with the keys of whoever asked.

Signed requests of our own instead of a client library: two kinds of GET are
needed, streamed, with our time-outs, and an answer that tells apart what will
pass (``Unavailable``) and what will not (``S3Refusal``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import quote

import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from trimaran.ec2.bundle import PIECE
from trimaran.errors import TrimaranError, Unavailable

if TYPE_CHECKING:
    from oslo_config import cfg

_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,255})</Message>")
_PASSING = frozenset({500, 502, 503, 504})


class S3Refusal(TrimaranError):
    """S3 does not give the object.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message, code=code)
        self.__dict__["status"] = status


class Source:
    """One caller's S3.

    Args:
        conf: where S3 is, and our time-outs.
        keys: (access, secret).
    """

    def __init__(self, conf: cfg.ConfigOpts, keys: tuple[str, str]) -> None:
        self._url = str(conf.s3_url).rstrip("/")
        self._signer = S3SigV4Auth(Credentials(*keys), "s3", conf.s3_region)
        self._timeouts = (conf.trimaran.connect_timeout, conf.trimaran.read_timeout)
        self._session = requests.Session()
        # Otherwise requests would look for another password in ~/.netrc.
        self._session.auth = lambda request: request

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def read(self, bucket: str, key: str, limit: int) -> bytes:
        """A small object.

        Raises:
            S3Refusal: S3 does not give it, or it is larger than the limit.
            Unavailable: S3 does not answer.
        """
        found = b""
        with self.stream(bucket, key) as pieces:
            for piece in pieces:
                found += piece
                if len(found) > limit:
                    raise S3Refusal("EntityTooLarge", "The object is too large.", 400)
        return found

    @contextmanager
    def stream(self, bucket: str, key: str) -> Iterator[Iterator[bytes]]:
        """An object's bytes as they come.

        Raises:
            S3Refusal: S3 does not give it.
            Unavailable: S3 does not answer, or not to the end.
        """
        try:
            response = self._session.send(
                self._signed(bucket, key), stream=True, timeout=self._timeouts
            )
        except requests.RequestException as error:
            raise Unavailable(service="s3") from error
        with response:
            if response.status_code != 200:
                raise _refusal(response)
            yield _pieces(response)

    def _signed(self, bucket: str, key: str) -> requests.PreparedRequest:
        url = f"{self._url}/{quote(bucket, safe='')}/{quote(key, safe='/~')}"
        request = AWSRequest("GET", url)
        self._signer.add_auth(request)
        return self._session.prepare_request(
            requests.Request("GET", url, headers={**request.headers, "Accept-Encoding": "identity"})
        )


def _pieces(response: requests.Response) -> Iterator[bytes]:
    told = response.headers.get("content-length", "")
    left = int(told) if told.isdigit() else None
    try:
        for piece in response.iter_content(PIECE):
            if left is not None:
                left -= len(piece)
            yield piece
    except requests.RequestException as error:
        raise Unavailable(service="s3") from error
    if left:
        raise Unavailable(service="s3")


def _refusal(response: requests.Response) -> TrimaranError:
    if response.status_code in _PASSING:
        return Unavailable(service="s3")
    try:
        body = next(response.iter_content(4096), b"").decode("utf-8", "replace")
    except requests.RequestException:
        body = ""
    code, message = _CODE.search(body), _MESSAGE.search(body)
    return S3Refusal(
        code[1] if code else "AccessDenied" if response.status_code == 403 else "NoSuchKey",
        unescape(message[1]) if message else "The object cannot be read.",
        response.status_code,
    )
