"""Who signed this request: the forms of spec ec2.md 2.1, verified by Keystone.

Keystone alone knows the secret, so all this module does is to tell Keystone
what was signed, and to make sure that what was signed is what we will act on:
Keystone ignores the query string of a SigV4 POST, and takes the form of the
signature from whatever it finds.  A request that mixes forms, or that carries
parameters outside its signature, is refused here, as is one that would make
Keystone fail instead of answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from trimaran import errors
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.protocol.parameters import Parameters

if TYPE_CHECKING:
    from trimaran.identity import Identity, Token

# How far a SigV4 date may be off; Keystone's own default ([credential] auth_ttl).
V4_WINDOW = timedelta(minutes=15)
_V4 = "AWS4-HMAC-SHA256"
_PART = re.compile(r"(?:^|[,\s])(Credential|SignedHeaders|Signature)=([^,\s]*)")
_V4_DATE = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3,6})?Z", re.ASCII)
_VISIBLE = re.compile(r"[\x21-\x7e]{1,1024}")


@dataclass(frozen=True)
class Signed:
    """A request as its signer saw it.

    Attributes:
        method: as sent.
        path: as sent, still percent-encoded, without the query.
        headers: names lower case; values of a repeated name joined by commas.
        parameters: query and form.
        body: the raw body, which the signature covers by its hash.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    parameters: Parameters
    body: bytes

    @cached_property
    def v4_header(self) -> Mapping[str, str] | None:
        """The parts of a SigV4 ``Authorization`` header; None for any other scheme."""
        value = self.headers.get("authorization", "")
        if not value.startswith(_V4):
            return None
        return dict(_PART.findall(value[len(_V4) :]))


def authenticate(request: Signed, identity: Identity, now: datetime, expiry: int) -> Token:
    """The token that the request's signature is worth.

    Args:
        request: what came.
        identity: Keystone.
        now: aware UTC.
        expiry: seconds that ``Timestamp`` may differ from now (``ec2_timestamp_expiry``).

    Raises:
        EC2Error: ``AuthFailure`` (400 for what cannot be a signature, else
            Keystone's status), ``RequestExpired``, ``InvalidRequest``.
        errors.Unavailable: Keystone does not answer, or refuses our own token.
    """
    sent = credentials(request)
    check_time(request, now, expiry)
    try:
        token = identity.ec2(sent)
    except errors.Unauthenticated as error:
        status = getattr(error, "remote_status", None)
        raise EC2Error(
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
            status if status in (401, 403, 404) else 401,
        ) from error
    if not token.project_id:
        raise _refused("The credential belongs to no project", 401)
    return token


def credentials(request: Signed) -> dict[str, Any]:
    """The ``ec2Credentials`` document for Keystone (spec 2.2, facts 11 and 12 of section 11).

    Raises:
        EC2Error: ``AuthFailure`` 400.
    """
    parameters = request.parameters
    by_header = version_2 = False
    if (signature := parameters.get("Signature")) is not None:
        access, signed = _version_2(parameters)
        version_2 = True
    elif (signature := parameters.get("X-Amz-Signature")) is not None:
        access, signed = _presigned(request)
    elif (header := request.v4_header) is not None and (signature := header.get("Signature")):
        access, signed = _version_4(request, header)
        by_header = True
    else:
        raise _refused("Signature not provided")
    if not access:
        raise _refused("Access key not provided")
    if not _VISIBLE.fullmatch(access) or not _VISIBLE.fullmatch(signature):
        raise _refused("The signature is malformed")
    return {
        "access": access,
        "signature": signature,
        "host": request.headers.get("host", ""),
        "verb": request.method,
        "path": request.path if version_2 else _v4_path(request.path),
        "params": signed,
        "headers": _headers(request, keep_authorization=by_header),
        "body_hash": hashlib.sha256(request.body).hexdigest(),
    }


def access_key(request: Signed) -> str:
    """The access key of a request whose signature has been verified."""
    return str(credentials(request)["access"])


def _version_2(parameters: Parameters) -> tuple[str | None, dict[str, str]]:
    # Without a version Keystone would look for SigV4 in the headers, whose
    # signature does not cover these parameters.
    version = parameters.get("SignatureVersion")
    if version not in ("0", "1", "2"):
        raise _refused("SignatureVersion must be 0, 1 or 2 with the parameter Signature")
    if version == "0" and None in (parameters.get("Action"), parameters.get("Timestamp")):
        raise _refused("SignatureVersion 0 needs Action and Timestamp")
    signed = {name: text for name, text in parameters.merged.items() if name != "Signature"}
    return parameters.get("AWSAccessKeyId"), signed


def _presigned(request: Signed) -> tuple[str | None, dict[str, str]]:
    query = request.parameters.query
    if request.method.upper() == "POST" or "X-Amz-Signature" not in query:
        raise _refused("A presigned request carries its parameters in the query of a GET")
    if query.get("X-Amz-Algorithm") != _V4 or not query.get("X-Amz-SignedHeaders"):
        raise _refused("The presigned query is incomplete")
    if "SignatureVersion" in query:
        raise _refused("The request carries two kinds of signature")
    access = _scope(query.get("X-Amz-Credential", ""), query.get("X-Amz-Date", ""))
    return access, {name: text for name, text in query.items() if name != "X-Amz-Signature"}


def _version_4(request: Signed, header: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    query = request.parameters.query
    if query and request.method.upper() == "POST":
        # Keystone leaves the query out of what it verifies for POST.
        raise _refused("The parameters of a signed POST belong into its body")
    if "SignatureVersion" in query:
        raise _refused("The request carries two kinds of signature")
    if not header.get("SignedHeaders"):
        raise _refused("The Authorization header names no SignedHeaders")
    # A query date would be signed as well, but Keystone reads the header only
    # where there is one.
    date = request.headers.get("x-amz-date") or query.get("X-Amz-Date", "")
    return _scope(header.get("Credential", ""), date), dict(query)


def _scope(credential: str, date: str) -> str | None:
    """The access key of ``<access>/<date>/<region>/<service>/aws4_request``."""
    access, *scope = credential.split("/")
    if not access:
        return None
    if len(scope) < 4 or not _V4_DATE.fullmatch(date) or not date.startswith(scope[0] or "?"):
        raise _refused("The credential scope and X-Amz-Date do not fit")
    return access


def _v4_path(path: str) -> str:
    # SigV4 signs the path encoded once more (all services but S3); Keystone
    # takes what it is given.
    return quote(path, safe="/~")


def _headers(request: Signed, *, keep_authorization: bool) -> dict[str, str]:
    # Keystone looks two of them up by their usual spelling.
    return {
        "-".join(part.capitalize() for part in name.split("-")): value
        for name, value in request.headers.items()
        if keep_authorization or name != "authorization"
    }


def check_time(request: Signed, now: datetime, expiry: int) -> None:
    """The window of spec 2.3, and SigV4's (F9).

    Raises:
        EC2Error: ``RequestExpired``; ``InvalidRequest`` for Timestamp beside Expires.
    """
    parameters = request.parameters
    timestamp, expires = parameters.get("Timestamp"), parameters.get("Expires")
    if timestamp is not None and expires is not None:
        raise EC2Error("InvalidRequest", "Timestamp and Expires exclude each other.")
    if timestamp is not None and abs(_iso(timestamp) - now) > timedelta(seconds=expiry):
        raise _expired()
    if expires is not None and _iso(expires) < now - timedelta(seconds=1):
        raise _expired()
    if parameters.get("Signature") is not None:
        return
    presigned = "X-Amz-Signature" in parameters.merged
    date = "" if presigned else request.headers.get("x-amz-date", "")
    made = _v4_time(date or parameters.query.get("X-Amz-Date", ""))
    if presigned:
        lifetime = parameters.query.get("X-Amz-Expires", "900")
        if not re.fullmatch(r"[0-9]{1,6}", lifetime):
            raise _refused("X-Amz-Expires is malformed")
        if made - V4_WINDOW > now or now > made + timedelta(seconds=int(lifetime)):
            raise _expired()
    elif abs(made - now) > V4_WINDOW:
        raise _expired()


def _iso(text: str) -> datetime:
    if not _ISO.fullmatch(text):
        raise _expired()
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _expired() from None


def _v4_time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise _expired() from None


def _expired() -> EC2Error:
    return EC2Error("RequestExpired", "Request has expired.")


def _refused(message: str, status: int = 400) -> EC2Error:
    return EC2Error("AuthFailure", message, status)
