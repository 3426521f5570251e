"""Microversions of the API: the list, the request header and the answers.

One list says what each version brought; everything else (the documents, the
range in errors, the history page) is read from it.  Only the header
``OpenStack-API-Version`` counts.  Spec section 1.3.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trimaran.magnum.api.errors import NotAcceptable, VersionUnsupported

HEADER = "OpenStack-API-Version"
MIN_HEADER = "OpenStack-API-Minimum-Version"
MAX_HEADER = "OpenStack-API-Maximum-Version"

#: the first name is the one that answers carry, whatever the client used
SERVICES = (
    "container-infrastructure-management",
    "container-infrastructure",
    "container-infra",
)


class Version(NamedTuple):
    """A microversion; versions compare by their numbers."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


#: (version, what it brought, whether the wire is really gated by it)
HISTORY: tuple[tuple[Version, str, bool], ...] = (
    (Version(1, 1), "First version.", True),
    (Version(1, 2), "Cluster operations are asynchronous.", False),
    (Version(1, 3), "PATCH of a cluster takes the query argument rollback.", True),
    (Version(1, 4), "Statistics.", False),
    (Version(1, 5), "Rotation of a cluster's CA certificate.", False),
    (Version(1, 6), "Quotas.", False),
    (Version(1, 7), "Action resize.", True),
    (Version(1, 8), "Action upgrade (at 1.7 it only answers that it is not supported).", True),
    (Version(1, 9), "Node groups.", True),
    (Version(1, 10), "Zero nodes; an unknown cluster template on create is a 404.", True),
    (Version(1, 11), "bays and baymodels are gone (at every version).", False),
    (Version(1, 12), "Rotation of a cluster's credential.", True),
    (Version(1, 13), "A cluster shows cluster_id instead of stack_id.", True),
    (Version(1, 14), "Node groups show node_labels and node_taints.", False),
)
MIN = HISTORY[0][0]
MAX = HISTORY[-1][0]

_NUMBERS = re.compile(r"\s*([+-]?\d{1,9})\.([+-]?\d{1,9})\s*", re.ASCII)


def parse(text: str) -> Version:
    """The version that ``1.10`` names.

    Raises:
        ValueError: it is not two integers with a dot between them.
    """
    found = _NUMBERS.fullmatch(text)
    if not found:
        raise ValueError(text)
    return Version(int(found[1]), int(found[2]))


def label(version: Version) -> str:
    """A version as the response headers write it."""
    return f"{SERVICES[0]} {version}"


def requested(header: str | None) -> Version:
    """The version that a request asks for.

    Args:
        header: value of ``OpenStack-API-Version``; None asks for the first version.

    Raises:
        NotAcceptable: the header names another service or no version.
        VersionUnsupported: the version is outside of the range.
    """
    if header is None:
        return MIN
    words = header.split()
    if len(words) != 2:
        raise NotAcceptable(f"Invalid service type for {HEADER} header")
    service, text = words
    if text.lower() == "latest":
        # As upstream: the service's name is not looked at with "latest".
        return MAX
    if service not in SERVICES:
        raise NotAcceptable(f"Invalid service type for {HEADER} header")
    try:
        version = parse(text)
    except ValueError:
        raise NotAcceptable(f"Invalid value for {HEADER} header") from None
    if not MIN <= version <= MAX:
        raise VersionUnsupported(_refusal(version), version=version, low=MIN, high=MAX)
    return version


def _refusal(version: Version) -> str:
    window = f"[{label(MIN)}, {label(MAX)}]"
    if version.major != MIN.major:
        return (
            f"Mutually exclusive versions requested. Version {version} requested but not "
            f"supported by this service.The supported version range is: {window}."
        )
    return (
        f"Version {version} was requested but the minor version is not supported by this "
        f"service. The supported version range is: {window}."
    )


def headers(version: Version) -> dict[str, str]:
    """The headers of every answer below ``/v1``."""
    return {
        HEADER: label(version),
        MIN_HEADER: label(MIN),
        MAX_HEADER: label(MAX),
        "vary": HEADER,
    }
