"""Login, profile, logout and the login page's configuration (spec/skyline.md 1.4)."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.console import faults, profile
from trimaran.console.belongings import Belongings
from trimaran.console.caller import Caller, CurrentCaller
from trimaran.console.keystones import of_region
from trimaran.console.parts import CurrentParts, Parts
from trimaran.console.schemas.common import Detail, Message, RequestId, Unauthorized
from trimaran.console.schemas.login import Config, Credential, Profile
from trimaran.console.sessions import token_key
from trimaran.db.queries import console as queries
from trimaran.errors import TrimaranError, Unauthenticated, Unavailable
from trimaran.identity import MoreMethodsRequired, NoEndpoint, Token

LOG = logging.getLogger(__name__)

NO_PROJECTS = "You are not authorized for any projects or domains."
TRY_LATER = "An error occurred authenticating. Please try again later."

router = APIRouter(tags=["Login"])


@router.post(
    "/login",
    response_model=Profile,
    responses={401: {"model": Detail}},
    summary="Log in with a password",
)
def login(
    request: Request,
    response: Response,
    credential: Credential,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Profile:
    """Authenticates at Keystone and begins a session in the default region."""
    domain = credential.domain or parts.settings.openstack.user_default_domain
    with parts.guard.attempt(f"{domain}/{credential.username}", address_of(request)):
        return _password(request, response, credential, parts, domain)


def address_of(request: Request) -> str:
    """The client's address, "" when it is not known."""
    return request.client.host if request.client else ""


def _password(
    request: Request, response: Response, credential: Credential, parts: Parts, domain: str
) -> Profile:
    stack = parts.settings.openstack
    try:
        token = parts.identity.password(
            username=credential.username,
            password=credential.password,
            domain_name=domain,
            region=stack.default_region,
        )
        return begin(request, response, parts, token, stack.default_region)
    except MoreMethodsRequired as error:
        raise _second_factor(error) from error
    except TrimaranError as error:
        raise faults.refused(error) from error


def begin(request: Request, response: Response, parts: Parts, token: Token, region: str) -> Profile:
    """Begins a session for somebody whom Keystone has just authenticated.

    Args:
        request: the login.
        response: gets the cookies.
        parts: the parts.
        token: Keystone's token, scoped or not.
        region: the region of the session.

    Raises:
        errors.Unauthenticated: no project can be used.
        errors.Unavailable: Keystone does not answer.
    """
    keystone = of_region(parts.identity, region)
    answers: dict[str, Any] = gather(
        projects=lambda: parts.identity.projects(token, region=keystone),
        user=lambda: parts.identity.user(token.user_id, region=keystone),
    )
    usable = [item["id"] for item in answers["projects"] if item.get("enabled")]
    if not usable:
        raise Unauthenticated(NO_PROJECTS)
    default = answers["user"].get("default_project_id")
    project_id = default if default in usable else usable[0]
    if token.project_id != project_id:
        token = parts.identity.rescope(token, project_id, region=keystone)
    session = parts.sessions.new(token.id, region)
    known = Belongings.of(answers["user"], answers["projects"])
    built = profile.build(parts, token, session, known=known)
    parts.sessions.set_cookies(response, session, request)
    return built


@router.get(
    "/profile",
    response_model=Profile,
    responses={401: {"model": Unauthorized}},
    summary="Who am I",
)
def get_profile(
    caller: CurrentCaller, parts: CurrentParts, x_openstack_request_id: RequestId = ""
) -> Profile:
    """Returns the caller's profile as it is now."""
    try:
        return profile.build(parts, caller.token, caller.session)
    except TrimaranError as error:
        raise faults.refused(error) from error


@router.post(
    "/logout",
    response_model=Message,
    responses={401: {"model": Unauthorized}},
    summary="Log out",
)
def logout(
    response: Response,
    caller: CurrentCaller,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Message:
    """Ends the session everywhere, then the Keystone token.

    The row comes first (F39): whatever Keystone answers, the session is over.
    Only when neither can be done the caller must know that it is not.
    """
    revoked = _revoke_session(parts, caller)
    parts.identity.forget(caller.token.id)
    parts.belongings.forget(caller.token.id)
    try:
        _revoke_token(parts, caller)
    except TrimaranError as error:
        LOG.warning("logout: Keystone did not revoke the token: %s", faults.text(error))
        if not revoked:
            raise Unavailable(service="database") from error
    parts.sessions.delete_cookies(response)
    return Message(message="Logout OK", code=200, title="OK")


def _revoke_token(parts: Parts, caller: Caller) -> None:
    try:
        parts.identity.revoke(caller.token, region=caller.region)
    except NoEndpoint:
        parts.identity.revoke(caller.token)


def _revoke_session(parts: Parts, caller: Caller) -> bool:
    rows = {token_key(caller.token.id): int(caller.token.expires_at.timestamp()) + 1}
    if caller.by_cookie:
        rows[caller.session.uuid] = parts.sessions.revoked_until(caller.session)
    try:
        parts.db.write(lambda session: _write(session, rows))
    except Unavailable:
        LOG.warning("logout: the revocation could not be written")
        return False
    return True


def _write(session: Session, rows: dict[str, int]) -> None:
    # In one order for all, so that two logouts of siblings cannot deadlock.
    for key, expire in sorted(rows.items()):
        queries.revoke(session, key, expire)


@router.get("/config", response_model=Config, summary="Configuration of the login page")
async def get_config(parts: CurrentParts) -> Config:
    """Returns the default domain and region; asks nobody, so it is the readiness probe.

    The one handler on the event loop: it does no I/O, and it must answer
    while all threads wait for a slow Keystone.
    """
    stack = parts.settings.openstack
    return Config(default_domain=stack.user_default_domain, default_region=stack.default_region)


def _second_factor(error: MoreMethodsRequired) -> HTTPException:
    """Keystone took the password and wants a one-time code as well."""
    if error.receipt and any({"password", "totp"} <= set(rule) for rule in error.required):
        return HTTPException(401, {"totp_required": True, "receipt": error.receipt})
    return HTTPException(401, TRY_LATER)
