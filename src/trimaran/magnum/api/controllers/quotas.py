"""Quotas of projects (spec section 1.13)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response, status
from pydantic import BaseModel
from sqlalchemy.orm import Session

from trimaran.db.queries import magnum as queries
from trimaran.db.queries.magnum import Scope
from trimaran.errors import BadRequest, Forbidden, NotFound
from trimaran.magnum.api import listing
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated
from trimaran.magnum.api.controllers.common import ERRORS
from trimaran.magnum.api.fields import AtLeastOne, Boolean, Count, Ident, ReadOnly, Text
from trimaran.magnum.api.pipeline import TokenRoute
from trimaran.magnum.api.schemas.common import Body, columns

router = APIRouter(route_class=TokenRoute, prefix="/v1/quotas", tags=["quotas"], responses=ERRORS)

RESOURCE = "Cluster"


class QuotaBody(Body):
    """A limit of a project."""

    id: int | None = None
    hard_limit: Count | None = None
    project_id: Text | None = None
    resource: Literal["Cluster"] | None = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class Quota(BaseModel):
    """A quota as it is shown; without id and times when the default counts."""

    id: int | None = None
    hard_limit: int
    project_id: str
    resource: str
    created_at: str | None = None
    updated_at: str | None = None


class Quotas(BaseModel):
    """A page of quotas."""

    quotas: list[Quota]
    next: str | None = None


def _view(row: Any) -> dict[str, Any]:
    return columns(row, Quota.model_fields)


@router.get("", response_model=Quotas)
def get_all(
    call: Authenticated,
    marker: Annotated[AtLeastOne | None, Query()] = None,
    limit: Annotated[int | None, Query()] = None,
    sort_key: Annotated[str, Query()] = "id",
    sort_dir: Annotated[str, Query()] = "asc",
    all_tenants: Annotated[Boolean, Query()] = False,
) -> Response:
    """List quotas: the project's own, or all."""
    call.authorize("quota:get_all")
    every = call.is_admin and all_tenants
    scope = Scope(project_id=call.context.project_id, all_projects=every)
    page = listing.page(call, marker, limit, sort_key, sort_dir)
    rows = call.parts.db.read(lambda session: queries.list_quotas(session, scope, page))
    shown = [_view(row) for row in rows]
    filters = {"all_tenants": all_tenants} if all_tenants else {}
    return Json(listing.body(call, "quotas", "quotas", shown, page, **filters))


@router.get("/{project_id}/{resource}", response_model=Quota)
def get_one(call: Authenticated, project_id: Ident, resource: Ident) -> Response:
    """Show a quota; a project without one has the default."""
    call.authorize("quota:get")
    if not call.is_admin and project_id != call.context.project_id:
        raise Forbidden("Not authorized.")
    row = call.parts.db.read(lambda session: queries.find_quota(session, project_id, resource))
    if row is not None:
        return Json(_view(row))
    default = call.parts.conf.quotas.max_clusters_per_project
    return Json({"hard_limit": default, "project_id": project_id, "resource": RESOURCE})


@router.post("", response_model=Quota, status_code=status.HTTP_201_CREATED)
def post(call: Authenticated, quota: QuotaBody) -> Response:
    """Set the quota of a project that has none."""
    if quota.project_id is None:
        raise BadRequest("Must provide a valid project ID.")
    # The policy first: Keystone is not asked on behalf of who may not know.
    call.authorize("quota:create")
    try:
        call.parts.identity.project(quota.project_id)
    except NotFound:
        raise NotFound(f"The project_id {quota.project_id} could not be found.") from None
    values = {"hard_limit": 1, "resource": RESOURCE, **quota.given("hard_limit", "resource")}
    values["project_id"] = quota.project_id
    row = call.parts.db.write(lambda session: queries.insert_quota(session, values))
    return Json(_view(row), status_code=status.HTTP_201_CREATED)


@router.patch(
    "/{project_id}/{resource}", response_model=Quota, status_code=status.HTTP_202_ACCEPTED
)
def patch(
    call: Authenticated, project_id: Ident, resource: Ident, quotapatch: QuotaBody
) -> Response:
    """Change a quota; a limit that is not given stays (F-52)."""
    call.authorize("quota:update")
    changes = quotapatch.given("hard_limit")

    def change(session: Session) -> Any:
        return queries.update_quota(session, project_id, resource, changes)

    row = call.parts.db.write(change)
    return Json(_view(row), status_code=status.HTTP_202_ACCEPTED)


@router.delete("/{project_id}/{resource}", status_code=status.HTTP_204_NO_CONTENT)
def delete(call: Authenticated, project_id: Ident, resource: Ident) -> Response:
    """Remove a quota: the default counts again."""
    call.authorize("quota:delete")
    call.parts.db.write(lambda session: queries.delete_quota(session, project_id, resource))
    return Response(status_code=status.HTTP_204_NO_CONTENT)
