"""Volumes, with the names of the servers that they are attached to (spec/skyline.md 1.5)."""

from __future__ import annotations

from functools import partial
from typing import Any

from trimaran.cloud import CloudSession, Row
from trimaran.console.listings import joins, origins
from trimaran.console.listings.foresight import Join, joined
from trimaran.console.listings.sorting import cinder_sort
from trimaran.console.listings.view import VOLUME_VERSION, View, origin, page_size
from trimaran.console.schemas.extension_queries import VolumesQuery
from trimaran.errors import BadRequest

PROJECT = "os-vol-tenant-attr:tenant_id"
# What Cinder tells administrators only; volumes by id are read by the system account.
_OF_THE_HOST = (
    "os-vol-host-attr:host",
    "os-vol-mig-status-attr:migstat",
    "os-vol-mig-status-attr:name_id",
)


def volumes(view: View, asked: VolumesQuery) -> tuple[int, list[Row]]:
    """Returns how many volumes there are, and the part that the caller asked for.

    Raises:
        errors.TrimaranError: Cinder refused or failed.
    """
    # Cinder lets members not filter by id (LP#2115558).
    by_system = asked.uuid is not None
    session = view.system if by_system else view.user
    query = {
        "with_count": True,
        "name": asked.name,
        "multiattach": asked.multiattach,
        "bootable": asked.bootable,
        "status": asked.status,
        "all_tenants": True if view.all_projects or by_system else None,
        "project_id": asked.project_id if view.all_projects else None,
        "id": joins.literal(asked.uuid) if asked.uuid else None,
        "limit": page_size(asked.limit),
        "marker": asked.marker,
        "sort": cinder_sort(asked.sort_keys, asked.sort_dirs),
    }
    if by_system and not view.all_projects:
        query["project_id"] = view.project_id

    def listed() -> tuple[int, list[Row]]:
        count, rows = _listed(session, query)
        if not view.all_projects:
            rows = [row for row in rows if row.get(PROJECT) in _mine(view)]
        return count, rows

    count, rows, found = joined(
        view,
        "volumes",
        asked,
        listed,
        servers=Join(_attached, partial(joins.server_names, view)),
        projects=Join(
            lambda rows: (row.get(PROJECT) for row in rows), partial(joins.project_names, view)
        ),
    )
    hidden = _OF_THE_HOST if by_system and not view.sees_all else ()
    return count, [_volume(row, view, found["servers"], found["projects"], hidden) for row in rows]


def _attached(rows: list[Row]) -> list[str | None]:
    return [each.get("server_id") for row in rows for each in row.get("attachments") or ()]


def _mine(view: View) -> tuple[str | None, ...]:
    # Not every Cinder tells members whose their volumes are.
    return (view.project_id, None)


def _listed(session: CloudSession, query: dict[str, Any]) -> tuple[int, list[Row]]:
    try:
        body = session.volume.json(
            "GET", "volumes/detail", query=query, microversion=VOLUME_VERSION
        )
    except BadRequest:
        if query["multiattach"] is None:
            raise
        return _by_multiattach(session, query)
    rows: list[Row] = body.get("volumes") or []
    return int(body.get("count", len(rows))), rows


def _by_multiattach(session: CloudSession, query: dict[str, Any]) -> tuple[int, list[Row]]:
    """Filters here what Cinder's default list of filters does not have.

    That needs all volumes: count and marker are about those that are left.
    """
    wanted, limit, marker = query["multiattach"], query["limit"], query["marker"]
    plain = {**query, "multiattach": None, "limit": None, "marker": None, "with_count": None}
    found = [
        row
        for row in session.volume.volumes(microversion=VOLUME_VERSION, **plain)
        if row.get("multiattach") is wanted
    ]
    ids = [row["id"] for row in found]
    if marker is not None and marker not in ids:
        raise BadRequest(f"Volume {marker} could not be found.")
    start = 0 if marker is None else ids.index(marker) + 1
    return len(found), found[start:][:limit]


def _volume(
    row: Row,
    view: View,
    names: dict[str, str],
    projects: dict[str, str],
    hidden: tuple[str, ...],
) -> Row:
    if hidden:
        row = {name: value for name, value in row.items() if name not in hidden}
    attachments = [
        {**each, "server_name": names.get(str(each.get("server_id")))}
        for each in row.get("attachments") or ()
    ]
    project_id = row.get(PROJECT)
    return {
        "id": row["id"],
        "origin_data": {**origin(row, origins.VOLUME), "attachments": attachments},
        "project_name": projects.get(str(project_id), project_id) if view.all_projects else None,
        "attachments": [
            origin(each, ("id", "device", "server_id", "server_name")) for each in attachments
        ],
        "name": row.get("name"),
        "project_id": project_id,
        "host": row.get("os-vol-host-attr:host"),
        "snapshot_id": row.get("snapshot_id"),
        "source_volid": row.get("source_volid"),
        "size": row.get("size"),
        "status": row.get("status"),
        "volume_type": row.get("volume_type"),
        "encrypted": row.get("encrypted"),
        "bootable": row.get("bootable"),
        "multiattach": row.get("multiattach"),
        "availability_zone": row.get("availability_zone"),
        "created_at": row.get("created_at"),
    }
