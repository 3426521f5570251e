"""Availability zones: Nova's, but for the one of its own services (spec ec2.md 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.protocol import filters
from trimaran.ec2.protocol.errors import EC2Error, not_found

#: The zone name that upstream's clients ask for to see hosts and services.
VERBOSE = "verbose"

FILTERS: filters.Table = {
    "group-long-name": "GroupLongName",
    "group-name": "GroupName",
    "message": "Messages.Message",
    "network-border-group": "NetworkBorderGroup",
    "opt-in-status": "OptInStatus",
    "parent-zone-id": "ParentZoneId",
    "parent-zone-name": "ParentZoneName",
    "region-name": "RegionName",
    "state": "State",
    "zone-id": "ZoneId",
    "zone-name": "ZoneName",
    "zone-type": "ZoneType",
}


def describe_availability_zones(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """The zones that instances can be placed in."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS, taggable=False)
    if list(request.get("ZoneNames") or ()) == [VERBOSE]:
        return {"AvailabilityZones": matches.apply(_verbose(ctx))}
    found = zones(ctx)
    for parameter, field in (("ZoneNames", "ZoneName"), ("ZoneIds", "ZoneId")):
        wanted = set(request.get(parameter) or ())
        absent = wanted - {zone[field] for zone in found}
        if absent:
            raise _unknown(absent)
        if wanted:
            found = [zone for zone in found if zone[field] in wanted]
    return {"AvailabilityZones": matches.apply(found)}


def _verbose(ctx: Context) -> Iterator[dict[str, Any]]:
    """Zones, hosts and services, one below the other: for administrators (Nova's rule)."""
    for zone in ctx.user.compute.zones(detail=True):
        yield _line(ctx, zone["zoneName"], zone["zoneState"]["available"])
        for host, services in (zone.get("hosts") or {}).items():
            yield _line(ctx, f"|- {host}", True, "")
            for name, service in services.items():
                up = service["available"]
                state = ("enabled" if service["active"] else "disabled", ":-)" if up else "XXX")
                told = f"{' '.join(state)} {service.get('updated_at') or ''}".strip()
                yield _line(ctx, f"| |- {name}", up, told)


def _line(ctx: Context, name: str, available: bool, told: str | None = None) -> dict[str, Any]:
    state = "available" if available else "unavailable"
    return {"ZoneName": name, "State": state if told is None else told, "RegionName": ctx.region}


def check_zone(ctx: Context, name: str) -> None:
    """A zone that a caller names must be there and in service.

    Raises:
        EC2Error: ``InvalidAvailabilityZone.NotFound``.
    """
    if name not in {zone["ZoneName"] for zone in zones(ctx)}:
        raise _unknown([name])


def _unknown(names: set[str] | list[str]) -> EC2Error:
    return not_found("InvalidAvailabilityZone.NotFound", "availability zone", names)


def zones(ctx: Context) -> list[dict[str, Any]]:
    """The zones that are shown, asked for once per request."""
    rows = ctx.once("zones", ctx.user.compute.zones)
    return [
        {
            "ZoneName": row["zoneName"],
            "ZoneId": row["zoneName"],
            "ZoneType": "availability-zone",
            "State": "available" if row["zoneState"]["available"] else "unavailable",
            "RegionName": ctx.region,
            "GroupName": ctx.region,
            "GroupLongName": ctx.region,
            "NetworkBorderGroup": ctx.region,
            "OptInStatus": "opt-in-not-required",
            "Messages": [],
        }
        for row in rows
        if row["zoneName"] != ctx.conf.internal_service_availability_zone
    ]
