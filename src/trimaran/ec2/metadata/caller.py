"""Which server asks: the headers that Neutron's metadata agent adds and signs.

The agent is trusted by a secret that it shares with us; the guest itself can
send whatever it likes, but not the signature (spec ec2.md 6.1).  A missing
header is the agent's mistake (400), a wrong signature somebody's attempt (403);
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


@dataclass(frozen=True)
class Caller:
    """The guest that asks.

    Attributes:
        server_id: Nova's id of the server.
        project_id: the project that the agent says it belongs to.
        address: the guest's fixed address.
    """

    server_id: str
    project_id: str
    address: str


def caller_of(headers: Mapping[str, str], secret: str) -> Caller:
    """The caller that the headers name.

    Args:
        headers: names lower case.
        secret: ``[metadata] metadata_proxy_shared_secret``.  The signature is
            checked in any case, also when the secret is empty.

    Raises:
        BadRequest: a header is missing or no id.
        Forbidden: the signature is not the secret's.
    """
    found = {}
    for name in ("X-Instance-ID", "X-Tenant-ID", "X-Instance-ID-Signature", "X-Forwarded-For"):
        found[name] = headers.get(name.lower(), "").strip()
        if not found[name]:
            raise BadRequest(f"{name} header is missing from request.")
    server_id, signature = found["X-Instance-ID"], found["X-Instance-ID-Signature"]
    expected = hmac.new(secret.encode(), server_id.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), signature.lower().encode()):
        raise Forbidden("Invalid proxy request signature.")
    if not _UUID.fullmatch(server_id) or not _PROJECT.fullmatch(found["X-Tenant-ID"]):
        raise BadRequest("X-Instance-ID or X-Tenant-ID is not an id.")
    address = found["X-Forwarded-For"].split(",", 1)[0].strip()
    return Caller(server_id, found["X-Tenant-ID"], address)
