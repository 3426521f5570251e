"""CADF notifications about clusters, bit-compatible with upstream's (spec/magnum.md 6.8)."""

from __future__ import annotations

from trimaran.magnum.notifications.cadf import payload
from trimaran.magnum.notifications.notifier import Notifier, record

__all__ = ["Notifier", "payload", "record"]
