"""Which of Neutron's extensions a region has, without depending on Neutron.

The front end hides what is missing, so a wrong "none" costs a menu entry for a
minute, where upstream let a login fail (spec/skyline.md F19).  The answer is
remembered and asked for in the background; a login waits for it only a moment.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field

from trimaran.cloud import Cloud
from trimaran.errors import TrimaranError

LOG = logging.getLogger(__name__)

# Extensions change when operators change Neutron's configuration.
FRESH = 60.0
RETRY = 10.0
# What a login waits for Neutron; its own answer takes milliseconds.
PATIENCE = 3.0


@dataclass
class _Region:
    aliases: frozenset[str] = frozenset()
    due: float = 0.0
    asking: threading.Event | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Extensions:
    """Extension aliases by region.

    Args:
        cloud: asks Neutron as our service user.
        mapping: option ``openstack.extension_mapping``.
        clock: seconds.
        patience: seconds that a caller waits for a first answer.
    """

    def __init__(
        self,
        cloud: Cloud,
        mapping: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._cloud = cloud
        self._mapping = mapping
        self._clock = clock
        self._patience = patience
        self._regions: dict[str, _Region] = {}
        self._lock = threading.Lock()

    def names(self, region: str) -> list[str]:
        """Returns the console's names of the extensions that the region has.

        The last known answer while Neutron fails, nothing if it never gave one.
        """
        with self._lock:
            known = self._regions.setdefault(region, _Region())
        with known.lock:
            if self._clock() >= known.due and known.asking is None:
                known.asking = threading.Event()
                threading.Thread(
                    target=copy_context().run,
                    args=(self._ask, region, known, known.asking),
                    name="console-extensions",
                    daemon=True,
                ).start()
            asking = known.asking
        if asking is not None and not known.aliases:
            asking.wait(self._patience)
        return [name for alias, name in self._mapping.items() if alias in known.aliases]

    def _ask(self, region: str, known: _Region, done: threading.Event) -> None:
        due = self._clock() + RETRY
        try:
            listed = self._cloud.as_service(region=region).network.extensions()
            known.aliases = frozenset(str(item.get("alias")) for item in listed)
            due = self._clock() + FRESH
        except TrimaranError as error:
            LOG.warning("the network extensions of region %s are not known: %s", region, error)
        finally:
            with known.lock:
                known.due = due
                known.asking = None
            done.set()
