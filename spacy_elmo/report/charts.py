"""Charts in Vega-Lite. Colours are variables of the page's style sheet, so that they
follow its light and dark mode without being drawn again."""

import json
import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Any
from unicodedata import east_asian_width

from .figures import SPACE, Choice

Spec = dict[str, Any]
Rows = list[dict[str, Any]]

FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans KR", '
    '"Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", sans-serif'
)
COLORS = [f"var(--series-{number})" for number in range(1, 9)]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
CHANNELS: dict[str, Sequence[Any]] = {
    "color": COLORS,
    "shape": SHAPES,
    "strokeDash": DASHES,
}
LETTERS = 24  # of a line of a name, so that it fits on a phone
INK, SOFT, GRID = "var(--ink)", "var(--soft)", "var(--line)"

CONFIG: Spec = {
    "aria": False,  # the page describes each chart, with its data in a table
    "background": None,
    "font": FONT,
    "padding": 2,
    "view": {"stroke": None},
    "text": {"fill": INK, "font": FONT},
    "axis": {
        "domainColor": GRID,
        "gridColor": GRID,
        "tickColor": GRID,
        "labelColor": SOFT,
        "titleColor": SOFT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelPadding": 4,
        "titlePadding": 6,
    },
    "axisX": {"grid": False, "labelFlush": True, "labelOverlap": True},
    "axisY": {"domain": False, "ticks": False, "tickCount": 5},
    "legend": {
        "title": None,
        "orient": "bottom",
        "direction": "horizontal",
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 0,
        "symbolSize": 90,
        "columnPadding": 14,
        "rowPadding": 4,
        "offset": 8,
    },
}

# Seen a little larger by a pointer or a finger than by the eye.
POINT: Spec = {
    "type": "point",
    "filled": True,
    "stroke": "transparent",
    "strokeWidth": 12,
    "strokeJoin": "round",
    "strokeMiterLimit": 1,
}


def chart(layers: list[Spec], rows: Rows, height: Any, **parts: Any) -> Spec:
    """RETURNS (Spec): Layers over the same data, as wide as there is room."""
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "layer": layers,
        "params": [],
        **parts,
    }


def param(choice: Choice) -> Spec:
    return {"name": choice.param, "value": choice.chosen}


def finite(value: float | None, digits: int = 6) -> float | None:
    """RETURNS (float | None): A number that JSON can hold, with as many digits as a
    chart can show."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def series(names: Sequence[str], *, points: bool) -> dict[str, Spec]:
    """RETURNS (dict[str, Spec]): Colour, shape and dashes of lines or points with these
    names, told apart by more than colour. points (bool): Whether the legend has shapes,
    otherwise dashes."""
    # By the width of the page; that of the chart changes while a legend is laid out.
    room = "containerSize()[0] + 0 * width - 36"
    texts = {name: in_lines(name) for name in names}
    longest = max(_width(line) for lines in texts.values() for line in lines)
    legend = {
        "columns": {"expr": f"max(1, floor(({room}) / {longest + 40}))"},
        "labelExpr": f"({json.dumps(texts)})[datum.label]",
        # The stroke has the dashes, which would fray a shape.
        "symbolStrokeWidth": 0 if points else 2,
    }
    encoding: dict[str, Spec] = {}
    for channel, values in CHANNELS.items():
        several = [values[number % len(values)] for number in range(len(names))]
        encoding[channel] = {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": list(names), "range": several},
            "legend": legend if len(names) > 1 else None,
        }
    return encoding


def in_lines(name: str) -> list[str]:
    """RETURNS (list[str]): As few lines as fit on a phone, of about the same length."""
    most = LETTERS // 2 if _width(name) > 10 * len(name) else LETTERS
    shortest = wrap(name, most) or [""]
    for width in range(1, most):
        lines = wrap(name, width)
        if len(lines) == len(shortest):
            return lines
    return shortest


def _width(name: str) -> int:
    """RETURNS (int): About how many pixels a text takes in a legend."""
    return sum(13 if east_asian_width(letter) in "WF" else 7 for letter in name)


def percent_axis(**more: Any) -> Spec:
    label = f"format(datum.value * 100, '~r') + '{SPACE}%'"
    return {"title": None, "labelExpr": label, **more}
