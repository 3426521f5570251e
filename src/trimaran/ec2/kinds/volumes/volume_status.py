"""DescribeVolumeStatus and a volume's attributes (spec ec2.md 9.2).

OpenStack checks no volume's input and output; a volume is as well as Cinder
says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume import one_volume
from trimaran.ec2.kinds.volumes.volume_kind import Volumes
from trimaran.ec2.kinds.volumes.volume_view import body_of
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import invalid_combination, invalid_value, missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair

Request = Mapping[str, Any]

AUTO_ENABLE_IO = "autoEnableIO"
PRODUCT_CODES = "productCodes"

_STATUS = "VolumeStatus"
FILTERS: filters.Table = {
    "action.code": "Actions.Code",
    "action.description": "Actions.Description",
    "action.event-id": "Actions.EventId",
    "availability-zone": "AvailabilityZone",
    "event.description": "Events.Description",
    "event.event-id": "Events.EventId",
    "event.event-type": "Events.EventType",
    "event.not-after": "Events.NotAfter",
    "event.not-before": "Events.NotBefore",
    "volume-status.details-name": f"{_STATUS}.Details.Name",
    "volume-status.details-status": f"{_STATUS}.Details.Status",
    "volume-status.status": f"{_STATUS}.Status",
}


def describe_volume_status(ctx: Context, request: Request) -> dict[str, Any]:
    """How the project's volumes are."""
    page = paging.Page(ctx.action, request, ids="VolumeIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS, taggable=False)
    wanted = ids.check_ids(request.get("VolumeIds"), "volumeId", "vol")
    shown = [_status(pair) for pair in reconcile(ctx, Volumes(), wanted or None).pairs]
    rows, token = page.slice(matches.apply(shown), key=lambda row: row["VolumeId"])
    return {"VolumeStatuses": rows, "NextToken": token}


def describe_volume_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """``autoEnableIO`` or ``productCodes``."""
    attribute = request.get("Attribute")
    if not attribute:
        raise missing("Attribute")
    if attribute not in (AUTO_ENABLE_IO, PRODUCT_CODES):
        raise invalid_value(
            "Attribute", attribute, f"Expected: {AUTO_ENABLE_IO} or {PRODUCT_CODES}"
        )
    pair = one_volume(ctx, request.get("VolumeId"))
    if attribute == PRODUCT_CODES:
        return {"VolumeId": pair.item.id, "ProductCodes": []}
    value = bool(pair.item.data.get("auto_enable_io"))
    return {"VolumeId": pair.item.id, "AutoEnableIO": {"Value": value}}


def modify_volume_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Store ``AutoEnableIO``: nothing here ever disables a volume's input and output."""
    value = (request.get("AutoEnableIO") or {}).get("Value")
    if value is None:
        raise invalid_combination("No attribute to be modified was given.")
    pair = one_volume(ctx, request.get("VolumeId"))
    ctx.commit_point()

    def write(session: Session) -> None:
        for item in queries.items_by_ids(session, ctx.project_id, [pair.item.id]):
            data = {**item.data, "auto_enable_io": value}
            queries.update_item(session, ctx.project_id, item.id, data=data)

    ctx.db.write(write)
    return {}


def _status(pair: Pair) -> dict[str, Any]:
    volume = body_of(pair)
    state = states.state_of(volume)
    made: dict[str, Any] = {
        "VolumeId": pair.item.id,
        "AvailabilityZone": volume.get("availability_zone"),
        "AvailabilityZoneId": volume.get("availability_zone"),
        "Actions": [],
        "Events": [],
        _STATUS: _summary(state),
    }
    return {name: value for name, value in made.items() if value is not None}


def _summary(state: str) -> dict[str, Any]:
    if state == states.CREATING:
        return {"Status": "insufficient-data", "Details": []}
    if state == states.ERROR:
        return {
            "Status": "impaired",
            "Details": [{"Name": "io-enabled", "Status": "failed"}],
        }
    return {
        "Status": "ok",
        "Details": [
            {"Name": "io-enabled", "Status": "passed"},
            {"Name": "io-performance", "Status": "not-applicable"},
        ],
    }
