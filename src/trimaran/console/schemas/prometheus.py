"""Answers of Prometheus, for the documentation (spec/skyline.md 1.6)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class PrometheusSeries(BaseModel):
    """A series and its sample, or its samples for a range."""

    metric: dict[str, str]
    value: list[Any]


class PrometheusData(BaseModel):
    """Series, or the time and value of a scalar or string."""

    resultType: str
    result: list[PrometheusSeries] | list[Any]


class PrometheusAnswer(BaseModel):
    """Prometheus's reply; empty members are left out."""

    status: str
    errorType: str | None = None
    error: str | None = None
    warnings: list[str] | None = None
    data: PrometheusData | None = None
