"""From the server that asks to the facts about it, read with the service user's rights.

A guest has no credentials, so everything is asked as the service; the project
that the agent signed for decides what may be shown.  Facts are kept for a few
seconds (``[metadata] cache_expiration``): one boot reads the whole tree, name
by name.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Mapping
from typing import Any

from cachetools import TTLCache

from trimaran import policy
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instance_metadata import instance_of
from trimaran.ec2.metadata.caller import Caller
from trimaran.ec2.metadata.tree import Facts
from trimaran.ec2.parts import Parts
from trimaran.ec2.service_context import context_of
from trimaran.errors import Forbidden, NotFound

_MOST_KEPT = 2000


class Lookup:
    """Finds facts; one per application.

    Args:
        parts: Keystone, cloud and database.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._enforcer = policy.Enforcer("ec2-metadata", ())
        seconds = parts.conf.metadata.cache_expiration
        self._lock = threading.Lock()
        self._kept: TTLCache[tuple[str, str], Facts] | None = (
            TTLCache(_MOST_KEPT, seconds) if seconds else None
        )

    def facts(self, caller: Caller, request_id: str) -> Facts:
        """The facts about the server that asks.

        Raises:
            NotFound: no such server in that project.
            Forbidden: the instance's metadata options shut its guest out.
            Unavailable: a part does not answer.
        """
        key = (caller.server_id, caller.project_id)
        if self._kept is not None:
            with self._lock:
                known = self._kept.get(key)
            if known is not None:
                return known
        found = self._ask(caller, request_id)
        if self._kept is not None:
            with self._lock:
                self._kept[key] = found
        return found

    def _ask(self, caller: Caller, request_id: str) -> Facts:
        context = self._context(caller, request_id)
        instance = instance_of(context, caller.server_id)
        if instance is None:
            raise NotFound()
        if instance.get("MetadataOptions", {}).get("HttpEndpoint") == "disabled":
            raise Forbidden()
        server = context.admin.compute.server(caller.server_id)
        return Facts(
            instance=instance,
            reservation_id=instance["ReservationId"],
            address=caller.address,
            user_data=_user_data(server),
            keys=_keys(context, server),
        )

    def _context(self, caller: Caller, request_id: str) -> Context:
        return context_of(
            self._parts,
            caller.project_id,
            enforcer=self._enforcer,
            action="metadata",
            request_id=request_id,
            remote_address=caller.address,
        )


def _user_data(server: Mapping[str, Any]) -> bytes | None:
    text = server.get("OS-EXT-SRV-ATTR:user_data")
    if not text:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return str(text).encode()


def _keys(context: Context, server: Mapping[str, Any]) -> dict[str, str | None]:
    name = server.get("key_name")
    if not name:
        return {}
    # Key pairs belong to the user that made the server (spec 6.3).
    rows = context.admin.compute.keypairs(user_id=server["user_id"])
    texts = {row["name"]: row.get("public_key") for row in rows}
    return {name: texts.get(name)}
