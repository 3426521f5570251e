"""Which server asks: the headers that Neutron's metadata agent, or NSX, adds and signs.

The proxy is trusted by a secret that it shares with us; the guest itself can
send whatever it likes, but not the signature (spec ec2.md 6.1).  A missing
header is the proxy's mistake (400), a wrong signature somebody's attempt (403);
neither the expected signature nor the secret is ever logged (F69).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from trimaran.errors import BadRequest, Forbidden

_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_PROJECT = re.compile(r"[0-9A-Za-z_-]{1,64}")
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")


@dataclass(frozen=True)
class Caller:
    """The guest that asks.

    Attributes:
        server_id: Nova's id of the server.
        project_id: the project that it belongs to, as the proxy says.
        address: the guest's fixed address.
        direct: no other proxy stands between the guest and the one that we trust.
    """

    server_id: str
    project_id: str
    address: str
    direct: bool = True


@dataclass(frozen=True)
class Provider:
    """A guest as NSX names it: by network provider and address.

    Attributes:
        provider_id: id of the provider.
        address: the guest's fixed address.
    """

    provider_id: str
    address: str


def signature_of(name: str, secret: str) -> str:
    """The signature of an id under the shared secret."""
    return hmac.new(secret.encode(), name.encode(), hashlib.sha256).hexdigest()


def caller_of(headers: Mapping[str, str], secret: str) -> Caller | Provider:
    """Who asks, according to the headers.

    Args:
        headers: names lower case.
        secret: ``[metadata] metadata_proxy_shared_secret``.  An agent's signature is
            checked in any case, also when the secret is empty; that of a
            provider only when there is one, as in Nova.

    Raises:
        BadRequest: a header is missing or holds no id.
        Forbidden: the signature is not the secret's.
    """
    if "x-metadata-provider" in headers:
        return _provider(headers, secret)
    return _agent(headers, secret)


def _agent(headers: Mapping[str, str], secret: str) -> Caller:
    server_id = _header(headers, "X-Instance-ID")
    project_id = _header(headers, "X-Tenant-ID")
    signature = _header(headers, "X-Instance-ID-Signature")
    address, *others = _header(headers, "X-Forwarded-For").split(",")
    _check(signature, server_id, secret)
    if not _UUID.fullmatch(server_id) or not _PROJECT.fullmatch(project_id):
        raise BadRequest("X-Instance-ID or X-Tenant-ID is not an id.")
    return Caller(server_id, project_id, address.strip(), direct=not others)


def _provider(headers: Mapping[str, str], secret: str) -> Provider:
    provider_id = _header(headers, "X-Metadata-Provider")
    address = _header(headers, "X-Forwarded-For").split(",", 1)[0].strip()
    if secret:
        _check(_header(headers, "X-Metadata-Provider-Signature"), provider_id, secret)
    if not _PROJECT.fullmatch(provider_id) or not _ADDRESS.fullmatch(address):
        raise BadRequest("X-Metadata-Provider or X-Forwarded-For is not valid.")
    return Provider(provider_id, address)


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name.lower(), "").strip()
    if not value:
        raise BadRequest(f"{name} header is missing from request.")
    return value


def _check(signature: str, name: str, secret: str) -> None:
    expected = signature_of(name, secret)
    if not hmac.compare_digest(expected.encode(), signature.lower().encode()):
        raise Forbidden("Invalid proxy request signature.")
