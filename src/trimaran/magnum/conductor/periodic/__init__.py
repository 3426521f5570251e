"""What conductors do again and again, shared by leases (spec/magnum.md section 7)."""

from __future__ import annotations

from trimaran.magnum.conductor.periodic.health import HealthSync
from trimaran.magnum.conductor.periodic.status import StatusSync

__all__ = ["HealthSync", "StatusSync"]
