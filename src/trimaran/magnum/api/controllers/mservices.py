"""The conductors and whether they live (spec sections 1.13 and 7.4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import MagnumService as Row
from trimaran.db.queries import magnum as queries
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated
from trimaran.magnum.api.controllers.common import ERRORS
from trimaran.magnum.api.pipeline import TokenRoute
from trimaran.magnum.api.schemas.common import columns, ordered

router = APIRouter(
    route_class=TokenRoute, prefix="/v1/mservices", tags=["services"], responses=ERRORS
)


class MagnumService(BaseModel):
    """A conductor."""

    host: str | None
    binary: str | None
    state: str
    id: int
    report_count: int
    disabled: bool | None
    disabled_reason: str | None
    created_at: str | None
    updated_at: str | None


class MagnumServices(BaseModel):
    """All conductors that ever reported."""

    mservices: list[MagnumService]


_FIELDS = tuple(name for name in MagnumService.model_fields if name != "state")


@router.get("", response_model=MagnumServices)
def get_all(call: Authenticated) -> Response:
    """List the conductors."""
    call.authorize("magnum-service:get_all")
    patience = timedelta(seconds=call.parts.conf.service_down_time)

    def load(session: Session) -> tuple[datetime, list[Row]]:
        return queries.now(session), queries.list_services(session)

    now, rows = call.parts.db.read(load)
    shown: list[dict[str, Any]] = [
        ordered(
            MagnumService,
            {
                **columns(row, _FIELDS),
                "disabled": bool(row.disabled),
                "state": "up" if is_up(row, now, patience) else "down",
            },
        )
        for row in rows
    ]
    return Json({"mservices": shown})


def is_up(row: Row, now: datetime, patience: timedelta) -> bool:
    """Whether a conductor reported lately enough.

    Args:
        row: of table ``magnum_service``.
        now: the database's time, naive UTC, which stamps the reports as well.
        patience: ``[DEFAULT] service_down_time``.
    """
    return queries.service_is_up(row, now, patience)
