"""Another project or another region for the session (spec/skyline.md 1.4).

The answer carries a new session, of full length; the renewal of the old one is
left out by the token stage, which looks for the cookie that is set here.
"""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response

from trimaran.console import faults, profile
from trimaran.console.caller import CurrentCaller
from trimaran.console.keystones import of_region
from trimaran.console.parts import CurrentParts
from trimaran.console.schemas.common import Detail, RequestId
from trimaran.console.schemas.login import Profile
from trimaran.errors import TrimaranError

router = APIRouter(tags=["Login"])


@router.post(
    "/switch_project/{project_id}",
    response_model=Profile,
    responses={401: {"model": Detail}},
    summary="Work in another project",
)
def switch_project(
    project_id: str,
    request: Request,
    response: Response,
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Profile:
    """Rescopes the token.

    Keystone decides whether the caller may; asking for the list of his
    projects first (F17) would decide nothing and cost another call.
    """
    try:
        token = parts.identity.rescope(
            caller.token, project_id, region=of_region(parts.identity, caller.region)
        )
        session = parts.sessions.new(token.id, caller.region)
        built = profile.build(parts, token, session)
    except TrimaranError as error:
        raise faults.refused(error) from error
    parts.sessions.set_cookies(response, session, request)
    return built


@router.post(
    "/switch_region/{region}",
    response_model=Profile,
    responses={401: {"model": Detail}},
    summary="Work in another region",
)
def switch_region(
    region: str,
    request: Request,
    response: Response,
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Profile:
    """Keeps the token and changes the region of the session."""
    if region not in caller.token.regions(parts.settings.openstack.interface_type):
        raise HTTPException(401, "Region not accessible")
    session = parts.sessions.new(caller.token.id, region)
    try:
        built = profile.build(parts, caller.token, session)
    except TrimaranError as error:
        raise faults.refused(error) from error
    parts.sessions.set_cookies(response, session, request)
    return built
