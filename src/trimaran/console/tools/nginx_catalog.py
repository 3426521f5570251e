"""Which endpoints the proxy leads to: Keystone's rows, and the choice among them.

Keystone is asked for endpoint rows and not for a token's catalog, because the
rows keep the place of the project's id, which must not go into a proxy's
configuration (spec/skyline.md 6.2).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from trimaran.errors import Forbidden
from trimaran.identity import Identity
from trimaran.identity.catalog import names_of
from trimaran.identity.remote import error_from

LOG = logging.getLogger(__name__)

_PROJECT = re.compile(r"[%$]\(\w*_id\)s")
_VERSION = re.compile(r"v\d(\.\d)?")
# What goes into nginx's configuration unquoted: nobody who may register an
# endpoint shall be able to write the rest of the file.
_AUTHORITY = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")
_PATH = re.compile(r"(/([A-Za-z0-9._~!*+,=:@-]|%[0-9A-Fa-f]{2})*)*")
_REGION = re.compile(r"[\w.~-]+")


@dataclass(frozen=True)
class Endpoint:
    """A row of Keystone's, with its service's type."""

    id: str
    region: str
    type: str
    url: str
    enabled: bool = True


@dataclass(frozen=True)
class Location:
    """One proxied path.

    Attributes:
        region: region id.
        type: type in the catalog.
        name: the console's name of the service.
        url: where requests go; ends with a slash.
    """

    region: str
    type: str
    name: str
    url: str

    @property
    def host(self) -> str:
        """Host and port for the Host header."""
        return urlsplit(self.url).netloc

    def path(self, prefix: str) -> str:
        """The path under which the browser finds it."""
        return f"{prefix}/{self.region.lower()}/{self.name}/"


def endpoints(identity: Identity, interface: str) -> list[Endpoint]:
    """Asks Keystone for all endpoints of an interface.

    Raises:
        errors.Forbidden: our service user may not list them.
        errors.Unavailable: Keystone does not answer, or refuses our user.
    """
    types = {
        row["id"]: (str(row.get("type")), bool(row.get("enabled", True)))
        for row in _rows(identity, "services")
    }
    found = []
    for row in _rows(identity, "endpoints", f"?interface={interface}"):
        kind, enabled = types.get(row.get("service_id"), ("", False))
        found.append(
            Endpoint(
                id=str(row["id"]),
                region=str(row.get("region_id") or row.get("region") or ""),
                type=kind,
                url=str(row.get("url") or ""),
                enabled=enabled and bool(row.get("enabled", True)),
            )
        )
    return found


def _rows(identity: Identity, kind: str, query: str = "") -> list[dict[str, Any]]:
    url = f"{identity.endpoint()}/{kind}{query}"
    response = identity.with_service_token(lambda token: identity.call("GET", url, token=token))
    if response.status_code != 200:
        error = error_from(response, service="identity")
        if isinstance(error, Forbidden):
            raise Forbidden(f"the service user may not list Keystone's {kind}") from error
        raise error
    rows: list[dict[str, Any]] = response.json()[kind]
    return rows


def locations(rows: Iterable[Endpoint], mapping: Mapping[str, str]) -> list[Location]:
    """Chooses one endpoint for each service of each region.

    Disabled endpoints do not count.  Of several, the one whose type is the
    mapping's own goes before aliases of the type ("volumev3" for
    "block-storage"), then the smallest endpoint id: the choice is the same in
    every run.  Others that lead elsewhere are named in a warning.

    Args:
        rows: endpoints.
        mapping: option ``openstack.service_mapping``, type to name.

    Returns:
        Sorted by region and type.
    """
    ranks = _ranks(mapping)
    groups: dict[tuple[str, str], list[tuple[int, str, Location]]] = {}
    for row in rows:
        if not row.enabled:
            LOG.debug("endpoint %s of %s is disabled", row.id, row.type)
            continue
        for rank, name in ranks.get(row.type, ()):
            try:
                url = proxied_url(row.url)
                _check(row.region, url)
            except ValueError as reason:
                LOG.warning("%s: endpoint %s is left out: %s", row.type, row.id, reason)
                continue
            location = Location(row.region, row.type, name, url)
            groups.setdefault((row.region.lower(), name), []).append((rank, row.id, location))
    chosen = []
    for (region, name), group in groups.items():
        first, *others = (location for _, _, location in sorted(group, key=lambda item: item[:2]))
        chosen.append(first)
        for other in dict.fromkeys(other.url for other in others if other.url != first.url):
            LOG.warning(
                "region %s has more than one endpoint of %s: %s is used, %s is not",
                region,
                name,
                first.url,
                other,
            )
    return sorted(chosen, key=lambda each: f"{each.region}-{each.type}")


def _ranks(mapping: Mapping[str, str]) -> dict[str, list[tuple[int, str]]]:
    """Catalog type to the names it may serve, with its rank as a type of that name."""
    ranks: dict[str, dict[str, int]] = {}
    for kind, name in mapping.items():
        for rank, alias in enumerate(names_of(kind)):
            known = ranks.setdefault(alias, {})
            known[name] = min(rank, known.get(name, rank))
    # A type that the mapping names itself serves no other type's name.
    for kind, name in mapping.items():
        ranks[kind] = {name: 0}
    return {kind: [(rank, name) for name, rank in names.items()] for kind, names in ranks.items()}


def proxied_url(url: str) -> str:
    """Returns where a service's root is, by the endpoint's URL.

    The browser adds the version itself.  The place of a project's id goes with
    the segment before it, otherwise a version at the end goes.

    Raises:
        ValueError: not an http URL.
    """
    parts = urlsplit(url.strip())
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an http URL")
    segments = [segment for segment in parts.path.split("/") if segment]
    if segments and _PROJECT.search(segments[-1]):
        segments = segments[:-2]
    elif segments and _VERSION.fullmatch(segments[-1]):
        segments = segments[:-1]
    path = "".join(f"/{segment}" for segment in segments)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}{path}/"


def _check(region: str, url: str) -> None:
    parts = urlsplit(url)
    if not _REGION.fullmatch(region):
        raise ValueError(f"the region {region!r} cannot be a part of a path")
    if not _AUTHORITY.fullmatch(parts.netloc) or not _PATH.fullmatch(parts.path):
        raise ValueError(f"{url!r} cannot be proxied to")
