"""The configuration files of the services: made from the settings at every ``up``."""

from __future__ import annotations

from trimaran.sandbox.configs.compute import nova, nova_compute
from trimaran.sandbox.configs.control import barbican, glance, keystone, placement
from trimaran.sandbox.configs.network import neutron
from trimaran.sandbox.configs.parts import Sections, render
from trimaran.sandbox.configs.volume import cinder
from trimaran.sandbox.places import write_file
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment

__all__ = ["build", "render", "write"]

_ENTRY_POINTS = """\
[neutron.ml2.mechanism_drivers]
sandbox = sandbox_drivers.neutron_sandbox:SandboxMechanismDriver
"""


def build(settings: Settings, venv: Environment) -> dict[str, Sections]:
    """The options of each configuration file, by the file's service."""
    return {
        "keystone": keystone(settings, venv),
        "glance": glance(settings, venv),
        "placement": placement(settings, venv),
        "barbican": barbican(settings, venv),
        "neutron": neutron(settings, venv),
        "cinder": cinder(settings, venv),
        "nova": nova(settings, venv),
        "nova-compute": nova_compute(settings, venv),
    }


def write(settings: Settings, venv: Environment) -> None:
    """Write all configuration files, and the directories they speak of."""
    for name in (
        "data/lock",
        "data/volumes",
        "data/glance/images",
        "data/glance/staging",
        "data/glance/tasks",
        "data/nova",
        "data/cinder",
        "data/conversion",
    ):
        settings.path(name).mkdir(parents=True, exist_ok=True)
    for service, sections in build(settings, venv).items():
        text = render(sections)
        # they hold the password of the service users
        write_file(settings.config_file(service), text, 0o600)
        if service == "barbican":
            # it reads its options at import, from fixed places; ~ is one of them
            write_file(settings.path("home", ".barbican", "barbican.conf"), text, 0o600)
    # ML2 finds mechanism drivers by entry point only
    info = settings.path("pylib", "sandbox_drivers-1.0.dist-info")
    write_file(info / "METADATA", "Metadata-Version: 2.1\nName: sandbox-drivers\nVersion: 1.0\n")
    write_file(info / "entry_points.txt", _ENTRY_POINTS)
