"""Listings that no OpenStack service has in one piece (spec/skyline.md 1.5)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from trimaran.console.caller import CurrentCaller
from trimaran.console.listings import compute_services as nova_services
from trimaran.console.listings import ports, servers, snapshots, volumes
from trimaran.console.listings.view import View, refusals
from trimaran.console.parts import CurrentParts
from trimaran.console.schemas import extension as answers
from trimaran.console.schemas import extension_queries as questions
from trimaran.console.schemas.common import Detail, RequestId, Unauthorized

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Detail},
    401: {"model": Unauthorized},
    403: {"model": Detail},
    500: {"model": Detail},
}

router = APIRouter(tags=["Extension"], responses=REFUSALS)


class Rows(JSONResponse):
    """A listing; a page of a hundred servers took longer to write than to put together."""

    def render(self, content: Any) -> bytes:
        """Writes compact JSON, as the parent does."""
        return to_json(content)


@router.get("/extension/servers", response_model=answers.Servers, summary="Servers")
def list_servers(
    query: Annotated[questions.ServersQuery, Query()],
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Rows:
    """Servers with the names of their images and projects."""
    view = View(parts, caller, "servers", all_projects=query.all_projects)
    with refusals(query.marker):
        return Rows({"servers": servers.servers(view, query)})


@router.get(
    "/extension/recycle_servers", response_model=answers.RecycleServers, summary="Recycle bin"
)
def list_recycle_servers(
    query: Annotated[questions.RecycleServersQuery, Query()],
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Rows:
    """Servers that were deleted and can still be restored."""
    view = View(parts, caller, "recycle servers", all_projects=query.all_projects)
    with refusals(query.marker):
        return Rows({"recycle_servers": servers.recycle_servers(view, query)})


@router.get("/extension/volumes", response_model=answers.Volumes, summary="Volumes")
def list_volumes(
    query: Annotated[questions.VolumesQuery, Query()],
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Rows:
    """Volumes with the names of the servers that they are attached to."""
    view = View(parts, caller, "volumes", all_projects=query.all_projects)
    with refusals(query.marker):
        count, rows = volumes.volumes(view, query)
    return Rows({"count": count, "volumes": rows})


@router.get(
    "/extension/volume_snapshots", response_model=answers.VolumeSnapshots, summary="Snapshots"
)
def list_volume_snapshots(
    query: Annotated[questions.SnapshotsQuery, Query()],
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Rows:
    """Snapshots with their volumes and the volumes made from them."""
    view = View(parts, caller, "volume snapshots", all_projects=query.all_projects)
    with refusals(query.marker):
        count, rows = snapshots.snapshots(view, query)
    return Rows({"count": count, "volume_snapshots": rows})


@router.get("/extension/ports", response_model=answers.Ports, summary="Ports")
def list_ports(
    query: Annotated[questions.PortsQuery, Query()],
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Rows:
    """Ports with the names of their networks and servers."""
    view = View(parts, caller, "ports", all_projects=query.all_projects)
    with refusals(query.marker):
        return Rows({"ports": ports.ports(view, query)})


@router.get(
    "/extension/compute-services",
    response_model=answers.ComputeServices,
    response_model_exclude_none=True,
    summary="Nova's services",
)
def compute_services(
    query: Annotated[questions.ComputeServicesQuery, Query()],
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Rows:
    """Nova's services, for administrators and readers."""
    view = View(parts, caller, "compute services", all_projects=False)
    with refusals():
        return Rows({"services": nova_services.compute_services(view, query)})
