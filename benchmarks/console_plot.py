"""The plot of the console's benchmark: requests a second and p99, on logarithmic bars, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from console_load import Load

COLOURS = ("#9aa5b1", "#1f6feb")
LABEL, BAR, GAP, WIDTH = 90, 16, 14, 460


def draw(series: Mapping[str, Mapping[str, Load]]) -> str:
    """Returns the picture.

    Args:
        series: loads by request, by peer.
    """
    parts: list[str] = []
    top = 30
    for number, name in enumerate(series):
        parts.append(_box(LABEL + number * 200, 8, 12, 12, COLOURS[number % 2]))
        parts.append(_text(LABEL + number * 200 + 18, 18, name))
    charts: list[tuple[str, Callable[[Load], float]]] = [
        ("requests a second, 8 connections", lambda load: load.rate),
        ("p99, milliseconds", lambda load: load.percentile(0.99) * 1000),
    ]
    for title, value in charts:
        top += 24
        parts.append(_text(LABEL, top, title, weight="bold"))
        values = {
            (request, name): value(load)
            for name, loads in series.items()
            for request, load in loads.items()
        }
        low = math.floor(math.log10(max(min(values.values()), 0.1)))
        high = math.ceil(math.log10(max(*values.values(), 1.0)))
        for request in next(iter(series.values())):
            top += GAP
            parts.append(_text(4, top + BAR, request))
            for number, name in enumerate(series):
                here = values[request, name]
                share = (math.log10(max(here, 10**low)) - low) / max(high - low, 1)
                parts.append(_box(LABEL, top, max(share * WIDTH, 1), BAR - 2, COLOURS[number % 2]))
                parts.append(_text(LABEL + share * WIDTH + 6, top + BAR - 4, f"{here:.4g}"))
                top += BAR
        top += GAP
    size = f'width="{LABEL + WIDTH + 90}" height="{top + 10}"'
    style = 'font-family="sans-serif" font-size="12"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>',
            '<rect width="100%" height="100%" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _box(left: float, top: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{height}" fill="{fill}"/>'


def _text(left: float, base: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{left:.0f}" y="{base}" font-weight="{weight}">{text}</text>'
