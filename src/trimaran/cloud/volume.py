"""Cinder.

Works with catalog URLs that carry the project's id and with those that do not;
listings are read with details, in parts of Cinder's choosing.
"""

from __future__ import annotations

from typing import Any, ClassVar

from trimaran.cloud.client import Client
from trimaran.cloud.wire import Query, Row, segment


class Volume(Client):
    """Thin client of Cinder v3."""

    name: ClassVar[str] = "volume"
    version: ClassVar[str] = "/v3"

    def volumes(self, *, microversion: str | None = None, **query: Any) -> list[Row]:
        """Returns all volumes with details; ``all_tenants`` is for administrators."""
        return self.all("volumes/detail", "volumes", query, microversion=microversion)

    def volume(self, volume_id: str, *, microversion: str | None = None) -> Row:
        """Returns one volume."""
        return self._one("volumes", "volume", volume_id, microversion=microversion)

    def create_volume(self, body: Query, *, microversion: str | None = None) -> Row:
        """Makes a volume."""
        return self._create("volumes", "volume", body, microversion=microversion)

    def update_volume(self, volume_id: str, body: Query, *, microversion: str | None = None) -> Row:
        """Changes a volume."""
        return self._update("volumes", "volume", volume_id, body, microversion=microversion)

    def delete_volume(self, volume_id: str, *, cascade: bool = False) -> None:
        """Deletes a volume, with its snapshots if ``cascade``; Cinder does the work later."""
        query = {"cascade": True} if cascade else None
        self._delete("volumes", volume_id, query=query)

    def volume_action(self, volume_id: str, body: Query, *, microversion: str | None = None) -> Row:
        """Does an action on a volume, ``{"os-extend": {"new_size": 2}}``."""
        path = f"volumes/{segment(volume_id)}/action"
        return self.json("POST", path, json=body, microversion=microversion)

    def snapshots(self, *, microversion: str | None = None, **query: Any) -> list[Row]:
        """Returns all snapshots with details."""
        return self.all("snapshots/detail", "snapshots", query, microversion=microversion)

    def snapshot(self, snapshot_id: str) -> Row:
        """Returns one snapshot."""
        return self._one("snapshots", "snapshot", snapshot_id)

    def create_snapshot(self, body: Query) -> Row:
        """Makes a snapshot."""
        return self._create("snapshots", "snapshot", body)

    def update_snapshot(self, snapshot_id: str, body: Query) -> Row:
        """Changes a snapshot."""
        return self._update("snapshots", "snapshot", snapshot_id, body)

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Deletes a snapshot."""
        self._delete("snapshots", snapshot_id)

    def volume_types(self, **query: Any) -> list[Row]:
        """Returns all volume types."""
        return self.all("types", "volume_types", query)

    def volume_type(self, type_id: str) -> Row:
        """Returns one volume type."""
        return self._one("types", "volume_type", type_id)

    def type_encryption(self, type_id: str) -> Row:
        """Returns how a volume type encrypts (administrators); {} when it does not."""
        return self.json("GET", f"types/{segment(type_id)}/encryption")

    def backups(self, **query: Any) -> list[Row]:
        """Returns all backups with details."""
        return self.all("backups/detail", "backups", query)

    def zones(self) -> list[Row]:
        """Returns the availability zones."""
        return self.all("os-availability-zone", "availabilityZoneInfo", {})

    def services(self, **query: Any) -> list[Row]:
        """Returns Cinder's own services (administrators)."""
        return self.all("os-services", "services", query)

    def limits(self) -> Row:
        """Returns ``absolute`` and ``rate`` limits of the project."""
        return self._inner(self.json("GET", "limits"), "limits")

    def quota(self, project_id: str) -> Row:
        """Returns limit, used and reserved of each resource of a project."""
        path = f"os-quota-sets/{segment(project_id)}"
        return self._inner(self.json("GET", path, query={"usage": True}), "quota_set")
