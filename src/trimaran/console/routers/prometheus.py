"""Prometheus for the console's charts (spec/skyline.md 1.6).

Administrators and readers ask what they like.  All others ask about their own
project: the query is rewritten, and the answer is filtered all the same.
"""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import JSONResponse

from trimaran.console import roles
from trimaran.console.caller import Caller, CurrentCaller
from trimaran.console.parts import CurrentParts, Parts
from trimaran.console.prometheus import answers
from trimaran.console.prometheus.promql import Confined, confine
from trimaran.console.schemas.common import Detail, Unauthorized
from trimaran.console.schemas.prometheus import PrometheusAnswer
from trimaran.errors import BadRequest

router = APIRouter(
    tags=["Prometheus"],
    responses={
        400: {"model": Detail},
        401: {"model": Unauthorized},
        500: {"model": Detail},
    },
)

Text = Annotated[str | None, Query()]


@router.get("/query", response_model=PrometheusAnswer, summary="Values at a moment")
def prometheus_query(
    caller: CurrentCaller,
    parts: CurrentParts,
    query: Text = None,
    time: Text = None,
    timeout: Text = None,
) -> JSONResponse:
    """Asks for the value of series at a moment."""
    return _ask(parts, caller, "query", query, time=time, timeout=timeout)


@router.get("/query_range", response_model=PrometheusAnswer, summary="Values over time")
def prometheus_query_range(
    caller: CurrentCaller,
    parts: CurrentParts,
    query: Text = None,
    start: Text = None,
    end: Text = None,
    step: Text = None,
    timeout: Text = None,
) -> JSONResponse:
    """Asks for the values of series between two moments."""
    return _ask(
        parts, caller, "query_range", query, start=start, end=end, step=step, timeout=timeout
    )


def _ask(
    parts: Parts, caller: Caller, path: str, query: str | None, **others: str | None
) -> JSONResponse:
    project_id: str | None = None
    confined = Confined(query or "", aggregates=False)
    if not roles.sees_all(caller.token, parts.settings.openstack):
        project_id = caller.token.project_id or ""
        if query and query.strip():
            confined = _confined(query, project_id)
    asked = None if query is None else confined.text
    reply = parts.prometheus.ask(path, {"query": asked, **others})
    if reply.status == 0:
        raise HTTPException(500, "Prometheus does not answer.")
    if reply.status != 200:
        # A 401 of Prometheus is about our password, and would log the user out.
        status = 500 if reply.status in (401, 403, 407) or reply.status < 400 else reply.status
        raise HTTPException(status, reply.body.decode("utf-8", "replace"))
    try:
        answer = answers.shaped(reply.body, project_id=project_id, aggregated=confined.aggregates)
        return JSONResponse(answer)
    except (ValueError, AttributeError, RecursionError) as error:
        raise HTTPException(500, "The answer of Prometheus cannot be read.") from error


def _confined(query: str, project_id: str) -> Confined:
    try:
        return confine(query, project_id)
    except BadRequest as error:
        # As Prometheus says it.
        body = {"status": "error", "errorType": "bad_data", "error": error.message}
        raise HTTPException(400, json.dumps(body)) from error
