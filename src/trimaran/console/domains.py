"""Names of the domains, remembered: Keystone's project lists carry only their ids (F16)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from trimaran.errors import TrimaranError
from trimaran.identity import Identity

LOG = logging.getLogger(__name__)

FRESH = 300.0
RETRY = 10.0


class Domains:
    """Domain id to name.

    Args:
        identity: asks Keystone as our service user.
        clock: seconds.
    """

    def __init__(self, identity: Identity, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._identity = identity
        self._clock = clock
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._due = 0.0

    def names(self) -> dict[str, str]:
        """Returns the names; what was known before while Keystone does not say.

        A name is a nicety: its absence is no reason to refuse a profile.
        """
        with self._lock:
            if self._clock() < self._due:
                return self._names
            self._due = self._clock() + RETRY
        try:
            names = {str(item["id"]): str(item["name"]) for item in self._identity.domains()}
        except TrimaranError as error:
            LOG.warning("the names of the domains are not known: %s", error)
            return self._names
        with self._lock:
            self._names = names
            self._due = self._clock() + FRESH
        return names
