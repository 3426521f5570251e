"""Node groups of a cluster (spec section 1.11): lists and one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from trimaran.db.queries import magnum as queries
from trimaran.magnum.api import listing
from trimaran.magnum.api.call import Authenticated
from trimaran.magnum.api.controllers.common import ERRORS
from trimaran.magnum.api.fields import Ident, Storable
from trimaran.magnum.api.listing import Paged
from trimaran.magnum.api.pipeline import TokenRoute, since
from trimaran.magnum.api.schemas import nodegroup as schema

router = APIRouter(
    route_class=TokenRoute,
    prefix="/v1/clusters/{cluster_id}/nodegroups",
    tags=["node groups"],
    responses=ERRORS,
)


@router.get("", response_model=schema.NodeGroups)
@since("1.9", "get_all")
def get_all(
    call: Authenticated,
    cluster_id: Ident,
    page: Paged,
    role: Annotated[Storable | None, Query()] = None,
) -> Response:
    """List the node groups of a cluster."""
    call.authorize("nodegroup:get_all")
    scope = call.authorize_all_projects("nodegroup:get_all_all_projects")

    def load(session: Session) -> tuple[str, list[dict[str, Any]]]:
        cluster = queries.get_cluster(session, scope, cluster_id)
        rows = queries.list_nodegroups(session, cluster.uuid, page, role or None)
        return cluster.uuid, [schema.summary(row) for row in rows]

    uuid, shown = call.parts.db.read(load)
    # The role goes along, or page 2 would show all roles (F-45).
    resource = f"clusters/{uuid}/nodegroups"
    return JSONResponse(listing.body(call, "nodegroups", resource, shown, page, role=role))


@router.get("/{nodegroup_id}", response_model=schema.NodeGroup)
@since("1.9", "get_one")
def get_one(call: Authenticated, cluster_id: Ident, nodegroup_id: Ident) -> Response:
    """Show a node group."""
    call.authorize("nodegroup:get")
    scope = call.authorize_all_projects("nodegroup:get_one_all_projects")

    def load(session: Session) -> dict[str, Any]:
        cluster = queries.get_cluster(session, scope, cluster_id)
        row = queries.get_nodegroup(session, cluster.uuid, nodegroup_id)
        return schema.full(row, cluster.labels, call.app_url)

    return JSONResponse(call.parts.db.read(load))
