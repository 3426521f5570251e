"""Prometheus's reply in the console's shape (spec/skyline.md 1.6)."""

from __future__ import annotations

import json
from typing import Any

from trimaran.console.prometheus.promql import LABEL

SERIES = frozenset({"vector", "matrix"})


def shaped(body: bytes, *, project_id: str | None, aggregated: bool = False) -> dict[str, Any]:
    """Reads a reply.

    Args:
        body: JSON of Prometheus.
        project_id: whose series may be shown; None for all.
        aggregated: series without a project are of this one (the query was
            confined to it) and may be shown.

    Returns:
        The reply without empty members; samples are under ``value`` also for
        a range, where the front end looks for them.

    Raises:
        ValueError: not a reply of Prometheus.
    """
    reply = json.loads(body)
    if not isinstance(reply, dict) or not isinstance(reply.get("status"), str):
        raise ValueError("no reply of Prometheus")
    answer: dict[str, Any] = {
        name: reply[name]
        for name in ("status", "errorType", "error", "warnings")
        if reply.get(name) is not None
    }
    data = reply.get("data")
    if isinstance(data, dict):
        answer["data"] = _data(data, project_id, aggregated)
    return answer


def _data(data: dict[str, Any], project_id: str | None, aggregated: bool) -> dict[str, Any]:
    kind, result = data.get("resultType"), data.get("result")
    if kind not in SERIES:
        # A scalar or a string is a time and a value, of no series (F14).
        return {"resultType": kind, "result": result}
    shown = []
    for series in result if isinstance(result, list) else ():
        metric = series.get("metric") or {}
        owner = metric.get(LABEL)
        if project_id is None or owner == project_id or (owner is None and aggregated):
            value = series.get("value", series.get("values"))
            if value is None:
                # Native histograms have samples of another kind.
                value = series.get("histogram", series.get("histograms"))
            shown.append({"metric": metric, "value": value})
    return {"resultType": kind, "result": shown}
