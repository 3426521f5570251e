"""Servers and the recycle bin (spec/skyline.md 1.5).

The servers, and the images and volumes that they are made of (see ``foresight``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trimaran.cloud import Row
from trimaran.console.listings import joins, origins
from trimaran.console.listings.foresight import Join, joined
from trimaran.console.listings.view import View, origin, page_size
from trimaran.console.schemas.extension_queries import RecycleServersQuery, ServersQuery
from trimaran.errors import NotFound

FLAVOR = ("ephemeral", "ram", "original_name", "vcpus", "extra_specs", "swap", "disk")
# What Nova tells administrators only; the recycle bin is read by the system account.
_OF_THE_HOST = (
    "OS-EXT-SRV-ATTR:host",
    "OS-EXT-SRV-ATTR:hypervisor_hostname",
    "OS-EXT-SRV-ATTR:instance_name",
    "host_status",
)


def servers(view: View, asked: ServersQuery) -> list[Row]:
    """Returns the servers that the caller asked for, joined.

    Raises:
        errors.TrimaranError: Nova refused or failed.
    """
    project_id = asked.project_id if view.all_projects else None
    if view.all_projects and asked.project_name:
        project_id = _project(view, asked.project_name, project_id)
        if project_id is None:
            return []
    query = {
        "name": asked.name,
        "status": asked.status,
        "host": asked.host,
        "flavor": asked.flavor_id,
        "project_id": project_id,
        "all_tenants": True if view.all_projects else None,
        "uuid": asked.uuid,
        "ip": asked.ip,
        **_paging(asked),
    }
    rows, found = _joined(view, "servers", asked, lambda: _rows(view, asked, query))
    return [_server(row, found) for row in rows]


def recycle_servers(view: View, asked: RecycleServersQuery) -> list[Row]:
    """Returns the servers that were deleted and can still be restored, joined.

    Only the system account may list them; it is held to the caller's project.
    """
    project_id = view.scoped(asked.project_id)
    if view.all_projects and asked.project_name:
        project_id = _project(view, asked.project_name, project_id)
        if project_id is None:
            return []
    query = {
        "name": asked.name,
        "status": "soft_deleted",
        "deleted": True,
        "project_id": project_id,
        "all_tenants": True,
        "uuid": asked.uuid,
        "ip": asked.ip,
        **_paging(asked),
    }

    def listed() -> list[Row]:
        rows = _part(view.system.compute, query)
        if view.all_projects:
            return rows
        # Nova's filter is trusted, but not with other projects' servers.
        return [row for row in rows if row.get("tenant_id") == view.project_id]

    rows, found = _joined(view, "recycle_servers", asked, listed)
    keep = view.parts.settings.openstack.reclaim_instance_interval
    return [_recycled(row, found, keep) for row in rows]


def _paging(asked: ServersQuery | RecycleServersQuery) -> dict[str, Any]:
    # One direction for all keys, as upstream sends it.
    return {
        "limit": page_size(asked.limit),
        "marker": asked.marker,
        "sort_key": asked.sort_keys,
        "sort_dir": asked.sort_dirs,
    }


def _project(view: View, name: str, project_id: str | None) -> str | None:
    """The project of a name, if it is not another one than the one asked for."""
    found = joins.project_ids(view, name)
    if project_id is None:
        return found[0] if found else None
    return project_id if project_id in found else None


def _rows(view: View, asked: ServersQuery, query: dict[str, Any]) -> list[Row]:
    if asked.uuid is None:
        return _part(view.user.compute, query)
    if view.all_projects:
        rows = _part(view.user.compute, query)
    else:
        # Nova ignores the filter for members (second section 10, row 1).
        others = {name: value for name, value in query.items() if value is not None}
        if others.keys() == {"uuid"}:
            try:
                rows = [view.user.compute.server(asked.uuid)]
            except NotFound:
                return []
            # An administrator may see it, and it is another project's all the same.
            rows = [row for row in rows if row.get("tenant_id") == view.project_id]
        else:
            rows = view.user.compute.servers(**{**query, "uuid": None, "limit": None})
    return [row for row in rows if row.get("id") == asked.uuid]


def _part(compute: Any, query: Mapping[str, Any]) -> list[Row]:
    """One page of the size asked for; everything when none was.

    The answer has no count and no link to more, so a page of Nova's size would
    be a list that ends too early without saying so.
    """
    if query["limit"] is None:
        rows: list[Row] = compute.servers(**query)
    else:
        rows = compute.page("servers/detail", "servers", query).rows
    return rows


def _joined(
    view: View,
    name: str,
    asked: ServersQuery | RecycleServersQuery,
    read: Callable[[], list[Row]],
) -> tuple[list[Row], _Joined]:
    def listed() -> tuple[int, list[Row]]:
        rows = read()
        return len(rows), rows

    _, rows, found = joined(
        view,
        name,
        asked,
        listed,
        images=Join(lambda rows: map(_image, rows), partial(joins.images, view)),
        volumes=Join(
            lambda rows: (each for row in rows for each in _attached(row)),
            partial(joins.volumes, view),
        ),
        projects=Join(
            lambda rows: (row.get("tenant_id") for row in rows),
            partial(joins.project_names, view),
        ),
    )
    return rows, _Joined(view, **found)


@dataclass(frozen=True)
class _Joined:
    """What the rows are joined with, by id."""

    view: View
    images: dict[str, Row]
    volumes: dict[str, Row]
    projects: dict[str, str]

    def project_name(self, row: Row) -> str | None:
        """The project's name, its id when nobody knows it, null for the caller's own."""
        if not self.view.all_projects:
            return None
        project_id = str(row.get("tenant_id"))
        return self.projects.get(project_id, project_id)

    def image(self, row: Row) -> dict[str, Any]:
        """The three members that tell what the server was made from."""
        metadata = self._boot_metadata(row)
        if metadata:
            return {
                "image": metadata.get("image_id"),
                "image_name": metadata.get("image_name"),
                "image_os_distro": metadata.get("os_distro"),
            }
        image_id = _image(row)
        if image_id is None:
            return {"image": None, "image_name": None, "image_os_distro": None}
        image = self.images.get(image_id, {})
        return {
            "image": image_id,
            "image_name": image.get("name") or "",
            "image_os_distro": image.get("os_distro") or "",
        }

    def _boot_metadata(self, row: Row) -> dict[str, Any] | None:
        """The image that the root volume was made from.

        A data volume made from an image says nothing about the server (F33):
        it counts only when the server has no image of its own and no volume
        is known to be the root.
        """
        root = row.get("OS-EXT-SRV-ATTR:root_device_name")
        candidates = []
        for volume_id in _attached(row):
            volume = self.volumes.get(volume_id, {})
            metadata = volume.get("volume_image_metadata")
            if metadata:
                device = _device(volume, str(row.get("id")))
                is_root = root is not None and device == root
                bootable = volume.get("bootable") == "true"
                candidates.append((not is_root, not bootable, device, metadata))
        if not candidates:
            return None
        not_root, _, _, best = min(candidates, key=lambda each: each[:3])
        if not_root and _image(row) is not None:
            return None
        found: dict[str, Any] = best
        return found


def _attached(row: Row) -> list[str]:
    attached = row.get("os-extended-volumes:volumes_attached") or ()
    return [str(each["id"]) for each in attached]


def _device(volume: Row, server_id: str) -> str:
    for attachment in volume.get("attachments") or ():
        if attachment.get("server_id") == server_id:
            return str(attachment.get("device") or "")
    return ""


def _image(row: Row) -> str | None:
    # Nova has "" for a server that was booted from a volume.
    image = row.get("image")
    return str(image["id"]) if isinstance(image, dict) and image.get("id") else None


def _addresses(row: Row, kind: str) -> list[str]:
    return [
        str(address["addr"])
        for addresses in (row.get("addresses") or {}).values()
        for address in addresses
        if address.get("OS-EXT-IPS:type") == kind
    ]


def _flavor(row: Row) -> tuple[str | None, dict[str, Any] | None]:
    flavor = row.get("flavor")
    if not isinstance(flavor, dict):
        return None, None
    return flavor.get("original_name"), origin(flavor, FLAVOR)


def _server(row: Row, found: _Joined) -> Row:
    flavor, flavor_info = _flavor(row)
    return {
        "id": row["id"],
        "origin_data": origin(row, origins.SERVER),
        "project_name": found.project_name(row),
        **found.image(row),
        "fixed_addresses": _addresses(row, "fixed"),
        "floating_addresses": _addresses(row, "floating"),
        "name": row.get("name"),
        "project_id": row.get("tenant_id"),
        "host": row.get("OS-EXT-SRV-ATTR:host") if found.view.all_projects else None,
        "hostname": row.get("OS-EXT-SRV-ATTR:hostname"),
        "flavor": flavor,
        "flavor_info": flavor_info,
        "status": row.get("status"),
        "locked": row.get("locked"),
        "created_at": row.get("created"),
        "task_state": row.get("OS-EXT-STS:task_state"),
        "vm_state": row.get("OS-EXT-STS:vm_state"),
        "power_state": row.get("OS-EXT-STS:power_state"),
        "root_device_name": row.get("OS-EXT-SRV-ATTR:root_device_name"),
        "metadata": row.get("metadata"),
    }


def _recycled(row: Row, found: _Joined, keep: int) -> Row:
    if not found.view.sees_all:
        row = {name: value for name, value in row.items() if name not in _OF_THE_HOST}
    flavor, flavor_info = _flavor(row)
    updated = row.get("updated")
    return {
        "id": row["id"],
        "origin_data": origin(row, origins.SERVER),
        "project_name": found.project_name(row),
        **found.image(row),
        "fixed_addresses": _addresses(row, "fixed"),
        "floating_addresses": _addresses(row, "floating"),
        "deleted_at": updated,
        "updated_at": updated,
        # Upstream builds this too late and fails on every row (F13).
        "reclaim_timestamp": _epoch(updated) + keep,
        "name": row.get("name"),
        "project_id": row.get("tenant_id"),
        "host": row.get("OS-EXT-SRV-ATTR:host") if found.view.all_projects else None,
        "hostname": row.get("OS-EXT-SRV-ATTR:hostname"),
        "flavor": flavor,
        "flavor_info": flavor_info,
        "status": row.get("status"),
    }


def _epoch(moment: Any) -> float:
    """Nova's time as Unix seconds; a cell that is down sends rows without it."""
    try:
        parsed = datetime.fromisoformat(str(moment))
    except ValueError:
        return 0.0
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
