"""How many clusters and nodes there are (spec section 1.13)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, Forbidden
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated
from trimaran.magnum.api.controllers.common import ERRORS
from trimaran.magnum.api.fields import Storable
from trimaran.magnum.api.pipeline import TokenRoute

router = APIRouter(route_class=TokenRoute, prefix="/v1/stats", tags=["stats"], responses=ERRORS)


class Stats(BaseModel):
    """Sums; masters are nodes too."""

    clusters: int
    nodes: int


@router.get("", response_model=Stats)
def get_all(
    call: Authenticated,
    project_id: Annotated[Storable | None, Query()] = None,
    type: Annotated[str, Query()] = "cluster",
) -> Response:
    """Count clusters and nodes of a project, or for administrators of all."""
    call.authorize("stats:get_all")
    if type.lower() != "cluster":
        raise BadRequest("Invalid stats type. Allowed values are 'cluster'")
    if not call.is_admin:
        own = call.context.project_id
        project_id = project_id or own
        if project_id != own:
            raise Forbidden("Not authorized.")
    clusters, nodes = call.parts.db.read(lambda session: queries.stats(session, project_id or None))
    return Json({"clusters": clusters, "nodes": nodes})
