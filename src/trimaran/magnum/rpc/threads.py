"""Loads oslo.messaging with threads only.

oslo.messaging brings oslo.service and futurist along, and both import eventlet
wherever it is installed: half a second of the start, a deprecation warning,
and a library that this process must never use.  So it is hidden while they
are imported, and oslo.service is told to use threads.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator

_LIBRARIES = ("oslo_utils.eventletutils", "futurist", "oslo_service.backend", "oslo_messaging")


@contextlib.contextmanager
def _without_eventlet() -> Iterator[None]:
    if "eventlet" in sys.modules:
        yield
        return
    sys.modules["eventlet"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["eventlet"]


def load() -> None:
    """Imports the libraries; once is enough."""
    with _without_eventlet():
        for name in _LIBRARIES:
            module = importlib.import_module(name)
            if name == "oslo_service.backend":
                # Raises when the process has chosen a backend already.
                with contextlib.suppress(Exception):
                    module.init_backend(module.BackendType.THREADING)


load()
