"""Snapshots of volumes, with their volume and what was made from them (spec/skyline.md 1.5)."""

from __future__ import annotations

from functools import partial

from trimaran.cloud import Row
from trimaran.console.listings import joins, origins
from trimaran.console.listings.foresight import Join, joined
from trimaran.console.listings.sorting import cinder_sort
from trimaran.console.listings.view import VOLUME_VERSION, View, origin, page_size
from trimaran.console.schemas.extension_queries import SnapshotsQuery
from trimaran.errors import NotFound

PROJECT = "os-extended-snapshot-attributes:project_id"


def snapshots(view: View, asked: SnapshotsQuery) -> tuple[int, list[Row]]:
    """Returns how many snapshots there are, and the part that the caller asked for.

    Raises:
        errors.TrimaranError: Cinder refused or failed.
    """
    by_system = asked.uuid is not None
    if by_system and not view.all_projects and not _is_mine(view, asked.uuid or ""):
        return 0, []
    session = view.system if by_system else view.user
    query = {
        "with_count": True,
        "name": asked.name,
        # Large in the question, small in Cinder's rows.
        "status": asked.status.lower() if asked.status else None,
        "volume_id": asked.volume_id,
        "all_tenants": True if view.all_projects or by_system else None,
        "project_id": asked.project_id if view.all_projects else None,
        "id": asked.uuid,
        "limit": page_size(asked.limit),
        "marker": asked.marker,
        "sort": cinder_sort(asked.sort_keys, asked.sort_dirs),
    }
    if by_system and not view.all_projects:
        query["project_id"] = view.project_id

    def listed() -> tuple[int, list[Row]]:
        body = session.volume.json(
            "GET", "snapshots/detail", query=query, microversion=VOLUME_VERSION
        )
        rows: list[Row] = body.get("snapshots") or []
        return int(body.get("count", len(rows))), rows

    count, rows, found = joined(
        view,
        "volume_snapshots",
        asked,
        listed,
        volumes=Join(
            lambda rows: (row.get("volume_id") for row in rows), partial(joins.volumes, view)
        ),
        children=Join(lambda rows: (row.get("id") for row in rows), partial(joins.children, view)),
        projects=Join(
            lambda rows: (row.get(PROJECT) for row in rows), partial(joins.project_names, view)
        ),
    )
    return count, [
        _snapshot(row, view, found["volumes"], found["children"], found["projects"]) for row in rows
    ]


def _is_mine(view: View, snapshot_id: str) -> bool:
    try:
        found = view.user.volume.snapshot(snapshot_id)
    except NotFound:
        return False
    return bool(found.get(PROJECT) == view.project_id)


def _snapshot(
    row: Row,
    view: View,
    volumes: dict[str, Row],
    children: dict[str, list[Row]],
    projects: dict[str, str],
) -> Row:
    project_id = row.get(PROJECT)
    volume = volumes.get(str(row.get("volume_id")), {})
    # Upstream has the project's id for a name here (second section 10, row 5).
    name = view.caller.token.project_name
    return {
        "id": row["id"],
        "origin_data": origin(row, origins.SNAPSHOT),
        "project_name": projects.get(str(project_id), project_id) if view.all_projects else name,
        "host": volume.get("os-vol-host-attr:host") if view.all_projects else None,
        "volume_name": volume.get("name"),
        "child_volumes": [
            {"volume_id": each["id"], "volume_name": each.get("name")}
            for each in children.get(str(row["id"]), ())
        ],
        "name": row.get("name"),
        "project_id": project_id,
        "size": row.get("size"),
        "status": row.get("status"),
        "volume_id": row.get("volume_id"),
        "created_at": row.get("created_at"),
        "metadata": row.get("metadata"),
    }
