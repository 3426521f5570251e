"""Second factor and single sign-on (spec/skyline.md 1.4).

Both end as a password login does, in ``login.begin``; what differs is how
Keystone was convinced.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from trimaran.console import faults
from trimaran.console.keystones import of_region
from trimaran.console.parts import CurrentParts, Parts
from trimaran.console.routers.login import address_of, begin
from trimaran.console.schemas.common import Detail, RequestId
from trimaran.console.schemas.login import Profile
from trimaran.console.schemas.sso import Sso, SsoProtocol, TotpCredential
from trimaran.errors import TrimaranError, Unavailable
from trimaran.identity import MoreMethodsRequired, NoEndpoint, RemoteError, Token

OVERVIEW = "/base/overview"
CALLBACK = "/skyline/api/v1/websso"

INVALID = "invalid_totp"
EXPIRED = "receipt_expired"
FAILED = "authentication_failed"

# What can be in a header; Keystone's receipts are base64.
_VISIBLE = re.compile(r"\A[\x21-\x7e]+\Z")
# RFC 9110 section 7.2: a name or an address, perhaps a port.
_HOST = re.compile(r"\A(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\Z", re.ASCII)

router = APIRouter(tags=["Login"])


@router.post(
    "/login/totp",
    response_model=Profile,
    responses={401: {"model": Detail}},
    summary="Log in with a one-time code",
)
def login_totp(
    request: Request,
    response: Response,
    credential: TotpCredential,
    parts: CurrentParts,
    x_openstack_request_id: RequestId = "",
) -> Profile:
    """Completes a login that Keystone wants two factors for; begins a session."""
    stack = parts.settings.openstack
    region = credential.region or stack.default_region
    domain = credential.domain or stack.user_default_domain
    with parts.guard.attempt(f"{domain}/{credential.username}", address_of(request)):
        token = _second_factor(parts, credential, region)
        try:
            return begin(request, response, parts, token, region)
        except TrimaranError as error:
            raise faults.refused(error) from error


def _second_factor(parts: Parts, credential: TotpCredential, region: str) -> Token:
    if not _VISIBLE.match(credential.receipt):
        # Keystone would say so of any receipt that is not its own.
        raise HTTPException(401, INVALID)
    try:
        if region not in parts.identity.service_regions():
            raise HTTPException(401, FAILED)
        return parts.identity.totp(
            username=credential.username,
            passcode=credential.passcode,
            receipt=credential.receipt,
            domain_name=credential.domain or parts.settings.openstack.user_default_domain,
            region=of_region(parts.identity, region),
        )
    except TrimaranError as error:
        if isinstance(error, Unavailable) and not isinstance(error, NoEndpoint):
            raise
        raise HTTPException(401, _reason(error)) from error


def _reason(error: TrimaranError) -> str:
    """The word that the front end compares literally."""
    if isinstance(error, MoreMethodsRequired):
        return FAILED if error.receipt else EXPIRED
    if isinstance(error, RemoteError):
        words = f"{error.remote_code} {error.remote_message}".lower()
        if "receipt" in words and "expir" in words:
            return EXPIRED
        if error.remote_status == 401:
            return INVALID
    return FAILED


@router.get("/sso", response_model=Sso, summary="Single sign-on of the login page")
async def get_sso(request: Request, parts: CurrentParts) -> Sso:
    """Returns the addresses at Keystone that a browser signs on with; asks nobody."""
    stack = parts.settings.openstack
    if not stack.sso_enabled:
        return Sso(enable_sso=False, protocols=[])
    base = f"{stack.keystone_url.rstrip('/')}/auth/OS-FEDERATION"
    origin = f"origin={_callback(request, parts)}"
    if stack.sso_identity_providers:
        protocols = [
            SsoProtocol(
                protocol=entry.protocol,
                url=f"{base}/identity_providers/{entry.name}/protocols/{entry.protocol}"
                f"/websso?{origin}",
                label=entry.label,
            )
            for entry in stack.sso_identity_providers
        ]
    else:
        protocols = [
            SsoProtocol(protocol=protocol, url=f"{base}/websso/{protocol}?{origin}")
            for protocol in stack.sso_protocols
        ]
    return Sso(enable_sso=True, protocols=protocols)


def _callback(request: Request, parts: Parts) -> str:
    """Where Keystone sends the browser back to; it must be in its ``trusted_dashboard``."""
    base = parts.settings.trimaran.sso_callback_base.rstrip("/")
    if not base:
        scheme = "https" if parts.settings.default.ssl_enabled else "http"
        host = request.headers.get("host", "")
        if not _HOST.match(host):
            host = request.url.netloc if _HOST.match(request.url.netloc) else "localhost"
        base = f"{scheme}://{host}"
    return f"{base}{parts.settings.openstack.nginx_prefix}{CALLBACK}"


@router.post(
    "/websso",
    status_code=302,
    response_class=RedirectResponse,
    responses={401: {"model": Detail}},
    summary="Log in with single sign-on",
)
def websso(
    request: Request,
    parts: CurrentParts,
    token: Annotated[str, Form()],
    x_openstack_request_id: RequestId = "",
) -> Response:
    """Takes the token that Keystone posts through the browser; begins a session."""
    region = parts.settings.openstack.sso_region
    response = RedirectResponse(OVERVIEW, 302)
    try:
        unscoped = parts.identity.validate(token, region=of_region(parts.identity, region))
        begin(request, response, parts, unscoped, region)
    except TrimaranError as error:
        raise faults.refused(error) from error
    return response
