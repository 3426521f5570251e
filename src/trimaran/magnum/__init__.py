"""The Magnum hull: clusters of containers, on the wire of magnum 23.0 (stable/2026.2)."""

from __future__ import annotations
