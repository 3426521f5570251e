"""Whose Keystone to ask: a region may have none of its own (spec/skyline.md F18)."""

from __future__ import annotations

from trimaran.identity import Identity


def of_region(identity: Identity, region: str) -> str | None:
    """Returns the region to name in questions to Keystone; None asks the default one.

    Args:
        identity: Keystone.
        region: of a session.
    """
    return region if region in identity.service_regions("identity") else None
