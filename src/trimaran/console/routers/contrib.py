"""What login pages of all ages ask before anybody is known (spec/skyline.md 1.7)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from trimaran.console.caller import Caller, current_caller
from trimaran.console.keystones import of_region
from trimaran.console.parts import CurrentParts
from trimaran.console.schemas.common import Unauthorized
from trimaran.console.schemas.contrib import KeystoneEndpoint

router = APIRouter(tags=["Contrib"])


async def _caller(request: Request, parts: CurrentParts) -> Caller | None:
    if parts.settings.trimaran.anonymous_domains:
        return None
    return await current_caller(request)


OptionalCaller = Annotated[Caller | None, Depends(_caller)]


@router.get(
    "/contrib/keystone_endpoints",
    response_model=list[KeystoneEndpoint],
    summary="Keystones",
)
def list_keystone_endpoints(parts: CurrentParts) -> list[KeystoneEndpoint]:
    """Returns the Keystone of each region; regions without one are left out (F18)."""
    stack = parts.settings.openstack
    name = stack.service_mapping.get("identity", "keystone")
    return [
        KeystoneEndpoint(region_name=region, url=f"{stack.nginx_prefix}/{region.lower()}/{name}")
        for region in parts.identity.service_regions("identity")
    ]


@router.get(
    "/contrib/domains",
    response_model=list[str],
    responses={401: {"model": Unauthorized}},
    summary="Domains",
)
def list_domains(parts: CurrentParts, caller: OptionalCaller) -> list[str]:
    """Returns the names of the enabled domains.

    The front end of 2022 that PyPI carries cannot log in without them, so an
    option opens the list to everybody (F50).
    """
    region = caller.region if caller else parts.settings.openstack.default_region
    listed = parts.identity.domains(region=of_region(parts.identity, region))
    return [str(item["name"]) for item in listed if item.get("enabled", True)]


@router.get("/contrib/regions", response_model=list[str], summary="Regions")
def list_regions(parts: CurrentParts) -> list[str]:
    """Returns the regions of our service user's catalog."""
    return parts.identity.service_regions()
