"""Regions: from the configuration alone (spec ec2.md 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.protocol import filters
from trimaran.ec2.protocol.errors import invalid_value

FILTERS: filters.Table = {
    "endpoint": "Endpoint",
    "opt-in-status": "OptInStatus",
    "region-name": "RegionName",
}


def describe_regions(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """The configured regions; without ``region_list``, the one that this service runs in."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS, taggable=False)
    regions = known_regions(ctx)
    wanted = dict.fromkeys(request.get("RegionNames") or ())
    for name in wanted:
        if name not in regions:
            raise invalid_value("RegionName", name, "Unknown region.")
    shown = [
        {"RegionName": name, "Endpoint": endpoint, "OptInStatus": "opt-in-not-required"}
        for name, endpoint in regions.items()
        if not wanted or name in wanted
    ]
    return {"Regions": matches.apply(shown)}


def known_regions(ctx: Context) -> dict[str, str]:
    """Endpoints of the configured regions by their names."""
    conf = ctx.conf
    hosts = dict(_entry(entry) for entry in conf.region_list if entry.strip())
    return {
        name: f"{conf.ec2_scheme}://{host or conf.ec2_host}:{conf.ec2_port}{conf.ec2_path}"
        for name, host in (hosts or {ctx.region: ""}).items()
    }


def _entry(text: str) -> tuple[str, str]:
    name, _, host = text.partition("=")
    return name.strip(), host.strip()
