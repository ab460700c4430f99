"""Constants and functions that all charts use.

Colours are variables of the page's style sheet. So charts follow the light or dark mode
of the page without being drawn again.
"""

import json
import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Any
from unicodedata import east_asian_width

from ..formatting import SPACE
from ..page_parts import Choice

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
MAX_LETTERS = 24  # per line of a name, so that it fits on a phone
INK, SOFT, GRID = "var(--ink)", "var(--soft)", "var(--line)"

CONFIG: Spec = {
    "aria": False,  # the page itself has a description and a table for each chart
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

# The transparent stroke makes points easier to hit with a pointer or a finger.
POINT: Spec = {
    "type": "point",
    "filled": True,
    "stroke": "transparent",
    "strokeWidth": 12,
    "strokeJoin": "round",
    "strokeMiterLimit": 1,
}


def make_chart(layers: list[Spec], rows: Rows, height: Any, **more: Any) -> Spec:
    """Make a chart that is as wide as its container.

    layers (list[Spec]): The parts of the chart, which are drawn over each other.
    rows (Rows): The data, which all layers share.
    height (Any): The height in pixels.
    more (Any): Other properties of the chart.
    """
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "layer": layers,
        "params": [],
        **more,
    }


def make_param(choice: Choice) -> Spec:
    return {"name": choice.param, "value": choice.chosen}


def round_finite(value: float | None, digits: int = 6) -> float | None:
    """Round a number, because a chart cannot show more digits.

    digits (int): The number of significant digits.
    RETURNS (float | None): The number, or None for NaN and infinity, which do not exist
        in JSON.
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def encode_series(names: Sequence[str], *, points: bool) -> dict[str, Spec]:
    """Give each series a colour, a shape and a dash pattern, because not everybody can
    distinguish colours.

    names (Sequence[str]): The names of the series.
    points (bool): Whether the legend shows shapes; otherwise it shows dashed lines.
    RETURNS (dict[str, Spec]): The channels "color", "shape" and "strokeDash".
    """
    # Use the width of the container, because the width of the chart changes while its
    # legend is laid out. "0 * width" has it computed again whenever the width changes.
    room = "containerSize()[0] + 0 * width - 36"
    texts = {name: break_lines(name) for name in names}
    longest = max(_text_width(line) for lines in texts.values() for line in lines)
    legend = {
        "columns": {"expr": f"max(1, floor(({room}) / {longest + 40}))"},
        "labelExpr": f"({json.dumps(texts)})[datum.label]",
        # Shapes get no stroke, because it would be dashed.
        "symbolStrokeWidth": 0 if points else 2,
    }
    encoding: dict[str, Spec] = {}
    for channel, values in CHANNELS.items():
        cycled = [values[index % len(values)] for index in range(len(names))]
        encoding[channel] = {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": list(names), "range": cycled},
            "legend": legend if len(names) > 1 else None,
        }
    return encoding


def break_lines(name: str) -> list[str]:
    """Break a name into as few lines as possible that fit on a phone. The lines have
    about the same length."""
    is_wide = _text_width(name) > 10 * len(name)
    limit = MAX_LETTERS // 2 if is_wide else MAX_LETTERS
    fewest = wrap(name, limit) or [""]
    for width in range(1, limit):
        lines = wrap(name, width)
        if len(lines) == len(fewest):
            return lines
    return fewest


def _text_width(text: str) -> int:
    """Estimate how many pixels a text takes in a legend."""
    return sum(13 if east_asian_width(letter) in "WF" else 7 for letter in text)


def make_percent_axis(**more: Any) -> Spec:
    label = f"format(datum.value * 100, '~r') + '{SPACE}%'"
    return {"title": None, "labelExpr": label, **more}
