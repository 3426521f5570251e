"""The endpoints map: which service the front end finds under which path (spec/skyline.md 2.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trimaran.identity.catalog import names_of


def endpoints(
    catalog: Sequence[Mapping[str, Any]],
    *,
    region: str,
    interface: str,
    prefix: str,
    mapping: Mapping[str, str],
    extensions: Iterable[str],
) -> dict[str, str]:
    """Builds the map of a region.

    Args:
        catalog: of our service user.
        region: region id.
        interface: public, internal or admin.
        prefix: option ``nginx_prefix``.
        mapping: option ``service_mapping``, type to name.
        extensions: names of what the region's Neutron can do.

    Returns:
        Name to path.  A service that the catalog lists under an alias of the
        mapped type is found too (F42).
    """
    present = {
        str(entry.get("type"))
        for entry in catalog
        for endpoint in entry.get("endpoints") or ()
        if endpoint.get("interface") == interface
        and region in (endpoint.get("region_id"), endpoint.get("region"))
    }
    base = f"{prefix}/{region.lower()}"
    found = {
        name: f"{base}/{name}"
        for kind, name in mapping.items()
        if not present.isdisjoint(names_of(kind))
    }
    if "neutron" in found:
        found |= dict.fromkeys(extensions, found["neutron"])
    return found
