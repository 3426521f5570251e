"""Federations (spec section 1.13).

Upstream's conductor never made one, so there is none to show or to change.
The requests are understood, checked and answered as upstream answers them.
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status
from pydantic import BaseModel

from trimaran.db.queries import magnum as queries
from trimaran.db.queries.magnum import Page
from trimaran.errors import BadRequest
from trimaran.magnum.api import links, listing
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.controllers.common import ERRORS, found
from trimaran.magnum.api.fields import Boolean, Ident, Ignored, ReadOnly, Storable, Uuid
from trimaran.magnum.api.listing import Paged
from trimaran.magnum.api.patch import Patch, Rules
from trimaran.magnum.api.pipeline import TokenRoute
from trimaran.magnum.api.schemas.cluster import Name
from trimaran.magnum.api.schemas.common import Accepted, Body, Link, columns, ordered

router = APIRouter(
    route_class=TokenRoute, prefix="/v1/federations", tags=["federations"], responses=ERRORS
)


class FederationCreate(Body):
    """What a federation would be made of."""

    uuid: Uuid | None = None
    name: Name | None = None
    hostcluster_id: Storable | None = None
    member_ids: list[Storable] | None = None
    status: Storable | None = None
    status_reason: Storable | None = None
    properties: Ignored | None = None
    links: ReadOnly = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class Federation(BaseModel):
    """A federation as it would be shown."""

    uuid: str
    name: str | None
    hostcluster_id: str | None
    member_ids: list[str]
    status: str | None
    status_reason: str | None
    properties: dict[str, str]
    links: list[Link]
    created_at: str | None
    updated_at: str | None


class Federations(BaseModel):
    """A page of federations."""

    federations: list[Federation]
    next: str | None = None


_FIELDS = tuple(name for name in Federation.model_fields if name != "links")


def _view(call: Call, row: Any) -> dict[str, Any]:
    shown = columns(row, _FIELDS) | {"links": links.of(call.app_url, "federations", row.uuid)}
    return ordered(Federation, shown)


def _page(call: Call, page: Page, resource: str) -> Response:
    scope = call.scope()
    rows = call.parts.db.read(lambda session: queries.list_federations(session, scope, page))
    shown = [_view(call, row) for row in rows]
    return Json(listing.body(call, "federations", resource, shown, page))


@router.get("", response_model=Federations)
def get_all(call: Authenticated, page: Paged) -> Response:
    """List federations."""
    call.authorize("federation:get_all")
    return _page(call, page, "federations")


@router.get("/detail", response_model=Federations)
def detail(call: Authenticated, page: Paged) -> Response:
    """List federations with detail."""
    call.authorize("federation:detail")
    return _page(call, page, "federations/detail")


@router.get("/{federation_ident}", response_model=Federation)
def get_one(call: Authenticated, federation_ident: Ident) -> Response:
    """Show a federation."""
    row = found(call, queries.get_federation, call.scope(), federation_ident)
    call.authorize("federation:get", row.as_dict())
    return Json(_view(call, row))


@router.post("", response_model=Accepted, status_code=status.HTTP_202_ACCEPTED)
def post(call: Authenticated, federation: FederationCreate) -> Response:
    """Ask for a federation; nothing comes of it."""
    call.authorize("federation:create")
    if federation.hostcluster_id is None:
        raise BadRequest("No hostcluster specified. Please specify a hostcluster_id.")
    found(call, queries.get_cluster, call.scope(), federation.hostcluster_id)
    if federation.properties is None:
        raise BadRequest("Please specify a `properties` dict for the federation.")
    if federation.properties.get("dns-zone") is None:
        raise BadRequest("No DNS zone specified. Please specify a `dns-zone`.")
    return Json({"uuid": str(uuid.uuid4())}, status_code=status.HTTP_202_ACCEPTED)


@router.patch("/{federation_ident}", response_model=Accepted, status_code=202)
def patch_one(
    call: Authenticated,
    federation_ident: Ident,
    patch: Patch,
    rollback: Annotated[Boolean, Query()] = False,
) -> Response:
    """Change a federation."""
    Rules().check(patch)
    row = found(call, queries.get_federation, call.scope(), federation_ident)
    call.authorize("federation:update", row.as_dict())
    return Json({"uuid": row.uuid}, status_code=status.HTTP_202_ACCEPTED)


@router.delete("/{federation_ident}", status_code=status.HTTP_204_NO_CONTENT)
def delete(call: Authenticated, federation_ident: Ident) -> Response:
    """Delete a federation."""
    row = found(call, queries.get_federation, call.scope(), federation_ident)
    call.authorize("federation:delete", row.as_dict())
    return Response(status_code=status.HTTP_204_NO_CONTENT)
