"""What the caller may do (spec/skyline.md 1.8).

The front end shows a button when the rule behind it is allowed, and when it is
not listed at all; so the list is always complete.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from trimaran.console.caller import CurrentCaller
from trimaran.console.parts import CurrentParts
from trimaran.console.schemas.common import Detail, Unauthorized
from trimaran.console.schemas.policies import Policies, Policy, Questions

router = APIRouter(tags=["Policy"])


@router.get(
    "/policies",
    response_model=Policies,
    responses={401: {"model": Unauthorized}},
    summary="All rules",
)
def list_policies(caller: CurrentCaller, parts: CurrentParts) -> Response:
    """Answers every rule of every service about what belongs to the caller."""
    # Bytes, because building and validating 1,900 objects costs more than
    # finding out what they say.
    document = parts.policies.listing(caller.token, caller.region)
    return Response(document, media_type="application/json")


@router.post(
    "/policies/check",
    response_model=Policies,
    responses={401: {"model": Unauthorized}, 403: {"model": Detail}},
    summary="Some rules",
)
def check_policies(questions: Questions, caller: CurrentCaller, parts: CurrentParts) -> Policies:
    """Answers rules about a target."""
    answers = parts.policies.check(
        caller.token, caller.region, questions.rules, questions.target or {}
    )
    return Policies(policies=[Policy(rule=rule, allowed=allowed) for rule, allowed in answers])
