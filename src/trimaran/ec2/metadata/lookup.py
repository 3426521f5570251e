"""From the server that asks to the facts about it, read with the service user's rights.

A guest has no credentials, so everything is asked as the service; the project
that the agent signed for decides what may be shown.  Facts are kept for a few
seconds (``[metadata] cache_expiration``), because one boot reads the whole
tree, name by name.

What the API changes meanwhile must be seen at once, but it runs in other
processes.  Each of its changes raises the version of the instance's item in
the same transaction, and facts that were not compared with it for a second are
compared before they are used: one small statement per instance and second,
none for most requests, and no message that could get lost.
"""

from __future__ import annotations

import base64
import binascii
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from cachetools import TTLCache

from trimaran import policy, web
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_metadata import (
    Guest,
    guest_of,
    options_of,
    surroundings_of,
)
from trimaran.ec2.kinds.item_options import metadata_options
from trimaran.ec2.metadata.caller import Caller
from trimaran.ec2.metadata.contents import Facts
from trimaran.ec2.metadata.later import Later
from trimaran.ec2.parts import Parts
from trimaran.ec2.reconcile_kind import as_admin
from trimaran.ec2.service_context import context_of
from trimaran.errors import NotFound

#: Instances whose facts one process keeps.
MOST_KEPT = 5000
#: Seconds for which facts are used without looking whether they still hold.
SURE_SECONDS = 1.0


@dataclass
class _Kept:
    """Facts, whose they are, and when they were last known to hold."""

    facts: Facts
    project_id: str
    version: int
    sure_at: float


class Lookup:
    """Finds facts; one per application.

    Args:
        parts: Keystone, cloud and database.
        clock: seconds, monotonic.
    """

    def __init__(self, parts: Parts, clock: Callable[[], float] = time.monotonic) -> None:
        self._parts = parts
        self._clock = clock
        self._enforcer = policy.Enforcer("ec2-metadata", ())
        seconds = parts.conf.metadata.cache_expiration
        self._lock = threading.Lock()
        self._kept: TTLCache[str, _Kept] = TTLCache(MOST_KEPT, seconds, timer=clock)
        self._asking: dict[tuple[str, str], Future[Facts]] = {}

    def at_hand(self, caller: Caller) -> Facts | None:
        """The facts about the server that asks, if they are known and sure; never waits.

        Raises:
            NotFound: the server belongs to another project.
        """
        kept = self._look(caller.server_id)
        if kept is None or self._clock() - kept.sure_at >= SURE_SECONDS:
            return None
        return _shown_to(caller, kept)

    def facts(self, caller: Caller) -> Facts:
        """The facts about the server that asks.

        Requests of one guest that come together ask the cloud once.

        Raises:
            NotFound: no such server in that project.
            Unavailable: a part does not answer.
        """
        key = (caller.server_id, caller.project_id)
        with self._lock:
            future = self._asking.get(key)
            mine = future is None
            if future is None:
                future = self._asking[key] = Future()
        if not mine:
            return future.result()
        try:
            future.set_result(self._known(caller) or self._ask(caller))
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._asking[key]
        return future.result()

    def options(self, caller: Caller) -> dict[str, Any]:
        """The metadata options of the server that asks, without asking the cloud.

        Raises:
            NotFound: the server belongs to another project.
            Unavailable: the database does not answer.
        """
        data = options_of(self._context(caller), caller.server_id)
        if data is None:
            raise NotFound()
        return metadata_options(data)

    def _look(self, server_id: str) -> _Kept | None:
        with self._lock:
            return self._kept.get(server_id)

    def _known(self, caller: Caller) -> Facts | None:
        """What is kept, if the item still has the version that it was made from."""
        kept = self._look(caller.server_id)
        if kept is None:
            return None
        facts, now = _shown_to(caller, kept), self._clock()
        item_id = facts.instance["InstanceId"]
        if self._parts.db.read(lambda s: queries.version_of(s, item_id)) != kept.version:
            return None
        kept.sure_at = now
        return facts

    def _ask(self, caller: Caller) -> Facts:
        now = self._clock()
        guest = guest_of(self._context(caller), caller.server_id)
        with self._lock:
            if guest is None:
                self._kept.pop(caller.server_id, None)
                raise NotFound()
        facts = self._facts(caller, guest)
        with self._lock:
            self._kept[caller.server_id] = _Kept(facts, caller.project_id, guest.version, now)
        return facts

    def _facts(self, caller: Caller, guest: Guest) -> Facts:
        return Facts(
            guest.instance,
            interfaces=guest.interfaces,
            around=Later(lambda: surroundings_of(self._context(caller), guest.interfaces)),
            key=Later(lambda: _key(self._context(caller), guest.server)),
            region=self._parts.region,
            domain=self._parts.conf.ec2_host,
            address=caller.address,
            user_data=_user_data(guest.server),
        )

    def _context(self, caller: Caller) -> Context:
        return context_of(
            self._parts,
            caller.project_id,
            enforcer=self._enforcer,
            action="metadata",
            request_id=web.request_id(),
            remote_address=caller.address,
        )


def _shown_to(caller: Caller, kept: _Kept) -> Facts:
    if kept.project_id != caller.project_id:
        raise NotFound()
    return kept.facts


def _user_data(server: Mapping[str, Any]) -> bytes | None:
    text = server.get("OS-EXT-SRV-ATTR:user_data")
    if not text:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return str(text).encode()


def _key(context: Context, server: Mapping[str, Any]) -> str | None:
    """The text of the server's key; it belongs to the user that made the server (spec 6.3)."""
    name, user = server["key_name"], server["user_id"]

    def ask() -> str | None:
        try:
            return str(context.admin.compute.keypair(name, user_id=user)["public_key"])
        except NotFound:
            return None

    found: str | None = as_admin(ask, service="compute")()
    return found
