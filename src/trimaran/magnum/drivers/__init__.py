"""Drivers: the interface, the way they are found, and the sandbox driver."""

from __future__ import annotations

from trimaran.magnum.drivers.base import Driver
from trimaran.magnum.drivers.k8s_monitor import KubernetesMonitor
from trimaran.magnum.drivers.lookup import Drivers
from trimaran.magnum.drivers.monitor import Monitor
from trimaran.magnum.drivers.scale import ScaleManager

__all__ = ["Driver", "Drivers", "KubernetesMonitor", "Monitor", "ScaleManager"]
