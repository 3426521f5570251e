"""The services whose rules the console knows, in the order of its answers (spec/skyline.md 5.1).

The package index sells some of them under another name than the one that the
console gives them, and Neutron's rules come from two packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Service:
    """Where a service publishes its rules.

    Attributes:
        name: the console's name, the prefix of its rules.
        packages: distributions that carry the rules.
        entry_points: their names in the group ``oslo.policy.policies``.
    """

    name: str
    packages: tuple[str, ...]
    entry_points: tuple[str, ...]


def _service(
    name: str, packages: tuple[str, ...] = (), entry_points: tuple[str, ...] = ()
) -> Service:
    return Service(name, packages or (name,), entry_points or (name,))


SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        service.name: service
        for service in (
            _service("barbican"),
            _service("cinder"),
            _service("designate"),
            _service("glance"),
            _service("heat", ("openstack-heat",)),
            _service("ironic", entry_points=("ironic.api",)),
            _service("keystone"),
            _service("magnum"),
            _service("manila"),
            _service("masakari"),
            _service("neutron", ("neutron", "neutron-vpnaas"), ("neutron", "neutron-vpnaas")),
            _service("nova"),
            _service("octavia"),
            _service("placement", ("openstack-placement",)),
            _service("trove"),
            _service("zun"),
        )
    }
)
