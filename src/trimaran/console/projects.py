"""Names of the projects, remembered: an administrator's listings show them in every row.

Keystone only tells all of them at once, and a cloud has thousands.  A project
that is new is asked for when a row has it; one that is gone is not asked for
again with every page that still has its resources.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from trimaran.errors import TrimaranError

LOG = logging.getLogger(__name__)

# A renamed project shows its old name that long.
FRESH = 60.0
# So recent an answer need not be asked for again: it was fetched while the rows were.
RECENT = 1.0
RETRY = 10.0


@dataclass(frozen=True)
class _Known:
    names: dict[str, str]
    missing: frozenset[str] = frozenset()
    recent_until: float = -math.inf
    fresh_until: float = -math.inf


class ProjectNames:
    """Project id to name.

    Args:
        clock: seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str | None, _Known] = {}

    def names(
        self, keystone: str | None, ids: Iterable[str], ask: Callable[[], dict[str, str]]
    ) -> dict[str, str]:
        """Returns the names; what was known before while Keystone does not say.

        Args:
            keystone: the region whose Keystone is asked, None for the default one.
            ids: of projects that must be looked up if they are not known.
            ask: asks Keystone for all names.
        """
        wanted = frozenset(ids)
        now = self._clock()
        with self._lock:
            known = self._known.get(keystone, _Known({}))
        fresh = now < known.fresh_until
        if now < known.recent_until or (fresh and wanted <= known.names.keys() | known.missing):
            return known.names
        try:
            names = ask()
        except TrimaranError as error:
            LOG.warning("a listing goes without new names of projects: %s", error)
            now = self._clock()
            found = replace(known, recent_until=now + RETRY, fresh_until=now + RETRY)
        else:
            now = self._clock()
            # What is missing stays so for a while: ids of projects do not come back.
            missing = (known.missing | wanted if fresh else wanted) - names.keys()
            found = _Known(names, missing, now + RECENT, now + FRESH)
        with self._lock:
            self._known[keystone] = found
        return found.names
