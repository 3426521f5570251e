"""Endpoints out of a token's own catalog.

keystoneauth would verify versions with a discovery request first.  A token
minted by ``ec2tokens`` may not even call ``GET /v3`` (spec/ec2.md 11.1), and a
discovery per request is what made the originals slow, so the catalog's URL is
taken as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Catalog = Sequence[Mapping[str, Any]]

# Official names and the names that clouds still carry (service-types-authority).
_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("block-storage", "volumev3", "block-store", "volume"),
    ("container-infra", "container-infrastructure", "container-infrastructure-management"),
)


def names_of(service_type: str) -> tuple[str, ...]:
    """Returns the type asked for, then its aliases, in the order of preference."""
    for family in _FAMILIES:
        if service_type in family:
            return (service_type, *(name for name in family if name != service_type))
    return (service_type,)


def find_url(
    catalog: Catalog, service_type: str, *, region: str | None, interface: str
) -> str | None:
    """Finds the URL of a service.

    Args:
        catalog: ``token.catalog`` as Keystone gives it.
        service_type: catalog type; its aliases are tried after it.
        region: region id; None takes the first one.
        interface: public, internal or admin.

    Returns:
        The URL as the operator wrote it, or None.
    """
    for name in names_of(service_type):
        for entry in catalog:
            if entry.get("type") != name:
                continue
            for endpoint in _endpoints(entry, interface):
                if region is None or region in _regions_of(endpoint):
                    url = endpoint.get("url")
                    if url:
                        return str(url)
    return None


def regions(catalog: Catalog, *, interface: str, service_type: str | None = None) -> list[str]:
    """Returns the sorted region ids that have an endpoint of that interface.

    Args:
        catalog: ``token.catalog``.
        interface: public, internal or admin.
        service_type: look at this service only (aliases included).
    """
    wanted = None if service_type is None else names_of(service_type)
    found = {
        name
        for entry in catalog
        if wanted is None or entry.get("type") in wanted
        for endpoint in _endpoints(entry, interface)
        for name in _regions_of(endpoint)[:1]
    }
    return sorted(found)


def _endpoints(entry: Mapping[str, Any], interface: str) -> Iterator[Mapping[str, Any]]:
    return (
        endpoint
        for endpoint in entry.get("endpoints") or ()
        if endpoint.get("interface") == interface
    )


def _regions_of(endpoint: Mapping[str, Any]) -> list[str]:
    names = [endpoint.get("region_id"), endpoint.get("region")]
    return [str(name) for name in names if name]
