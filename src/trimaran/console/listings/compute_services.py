"""Nova's services (spec/skyline.md 1.5)."""

from __future__ import annotations

from trimaran.cloud import Row
from trimaran.console.listings.view import View
from trimaran.console.schemas.extension_queries import ComputeServicesQuery
from trimaran.errors import Forbidden

MEMBERS = (
    *("id", "binary", "disabled_reason", "host", "state", "status", "updated_at"),
    *("forced_down", "zone"),
)


def compute_services(view: View, asked: ComputeServicesQuery) -> list[Row]:
    """Returns Nova's services; members that one does not have are left out.

    Raises:
        errors.Forbidden: neither an administrator nor a reader.
        errors.TrimaranError: Nova failed.
    """
    if not view.sees_all:
        raise Forbidden("Not allowed to get compute services.")
    rows = view.system.compute.services(binary=asked.binary, host=asked.host)
    return [{name: row[name] for name in MEMBERS if row.get(name) is not None} for row in rows]
