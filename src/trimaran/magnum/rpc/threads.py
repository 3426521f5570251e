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
from typing import Any


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


def load() -> Any:
    """Imports the libraries.

    Returns:
        oslo.messaging; every module here takes it from this one, so that
        nobody imports it in another way first.
    """
    with _without_eventlet():
        for name in ("oslo_utils.eventletutils", "futurist"):
            importlib.import_module(name)
        backend = importlib.import_module("oslo_service.backend")
        # Raises when the process has chosen a backend already.
        with contextlib.suppress(Exception):
            backend.init_backend(backend.BackendType.THREADING)
        import oslo_messaging
    return oslo_messaging


oslo_messaging = load()
