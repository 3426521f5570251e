"""Regions and their Keystones (spec/skyline.md 1.7)."""

from __future__ import annotations

from pydantic import BaseModel


class KeystoneEndpoint(BaseModel):
    """Where the proxy serves a region's Keystone."""

    region_name: str
    url: str
