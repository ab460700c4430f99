"""Charts with two axes: curves, scores by amount of data, and maps of points."""

import json
import math
from collections.abc import Sequence

from ..page_parts import Choice
from .base import (
    INK,
    POINT,
    Rows,
    Spec,
    encode_series,
    make_chart,
    make_param,
    make_percent_axis,
)

HEIGHT = 230
MAX_POINTS_DRAWN = 30  # longer curves are drawn without points


def curve_chart(
    rows: Rows,
    names: Sequence[str],
    along: Choice,
    *,
    format: str = "~s",
    log: bool = False,
    zero: bool = False,
) -> Spec:
    """Draw curves over an x-axis that the reader chooses.

    rows (Rows): One dict for each position on the x-axis. Its keys are the names of the
        curves, with their y-values, and the options of `along`, with their x-values.
    names (Sequence[str]): The names of the curves.
    along (Choice): The reader's choice of the x-axis.
    format (str): The format of the numbers on the y-axis, in the syntax of D3.
    log (bool): Whether the y-axis is logarithmic.
    zero (bool): Whether the y-axis begins at zero.
    """
    axis: Spec = {"title": None, "format": format}
    scale: Spec = {"zero": zero, "nice": True}
    if log:
        values = [row[name] for row in rows for name in names if row[name]]
        low, high = 0.95 * min(values), 1.05 * max(values)
        scale = {"type": "log", "domain": [low, high], "nice": False}
        axis["values"] = round_numbers(low, high)
    y = {"field": "value", "type": "quantitative", "scale": scale, "axis": axis}
    layers = [
        *_curve_layers(names, y, points=len(rows) <= MAX_POINTS_DRAWN),
        _tooltip_bands(rows, names, along),
    ]
    labels = json.dumps(along.options)
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"zero": True, "nice": False},
        "axis": {
            "title": {"expr": f"({labels})[{along.param}]"},
            "labelExpr": "format(datum.value, '~s')",
            "tickCount": {"expr": "width < 420 ? 4 : 7"},
        },
    }
    transform = [{"calculate": f"datum[{along.param}]", "as": "x"}]
    return make_chart(
        layers,
        rows,
        HEIGHT,
        params=[make_param(along)],
        transform=transform,
        encoding={"x": x},
    )


def _curve_layers(names: Sequence[str], y: Spec, *, points: bool) -> list[Spec]:
    """Draw the curves.

    y (Spec): The encoding of the y-axis.
    points (bool): Whether to draw points on the curves.
    """
    look = encode_series(names, points=points)
    fold = [{"fold": list(names), "as": ["series", "value"]}]
    encoding = {"y": y, "color": look["color"]}
    layers: list[Spec] = [
        {
            "transform": fold,
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {**encoding, "strokeDash": look["strokeDash"]},
        }
    ]
    if points:
        layers.append(
            {
                "transform": fold,
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {**encoding, "shape": look["shape"]},
            }
        )
    return layers


def round_numbers(low: float, high: float) -> list[float]:
    """List all numbers between two positive numbers that are 1, 2 or 5 times a power of
    ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [number for number in numbers if low <= number <= high]


def _tooltip_bands(rows: Rows, names: Sequence[str], along: Choice) -> Spec:
    """Divide the chart into vertical bands that become visible when pointed at.

    Each band has a tooltip with the values of all curves. A band is easier to hit with
    a finger than a point.
    """
    number = {"type": "quantitative", "format": ",.4~r"}
    tooltip = [
        {**number, "field": key, "title": label, "format": ",.1~f"}
        for key, label in along.options.items()
    ]
    tooltip += [{**number, "field": name, "title": name} for name in names]
    select = {"type": "point", "on": "pointerover", "clear": "pointerout"}
    shown = {"param": "near", "empty": False, "value": 0.12}
    width = {"expr": f"max(6, width / {max(1, len(rows))})"}
    return {
        "mark": {"type": "rule", "stroke": INK, "strokeWidth": width},
        "params": [{"name": "near", "select": select}],
        "encoding": {"opacity": {"condition": shown, "value": 0}, "tooltip": tooltip},
    }


def data_chart(rows: Rows, names: Sequence[str], metric: Choice) -> Spec:
    """Draw scores over shares of the training data, on a logarithmic x-axis.

    rows (Rows): One dict for each metric, series and share, with the keys metric,
        series, share, mean, low and high (mean ± standard deviation), and the texts
        data (the share) and score.
    names (Sequence[str]): The names of the series.
    metric (Choice): The reader's choice of a score.
    """
    look = encode_series(names, points=True)
    shares = sorted({row["share"] for row in rows})
    x = {
        "field": "share",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 14},
        "axis": make_percent_axis(
            title="share of the training data", values=shares, labelFlush=False
        ),
    }
    y = {
        "field": "mean",
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "axis": make_percent_axis(),
    }
    tooltip = [
        {"field": "series", "title": "pipeline"},
        {"field": "data", "title": "training data"},
        {"field": "score", "title": "score"},
    ]
    dashed = {"x": x, "y": y, "color": look["color"], "strokeDash": look["strokeDash"]}
    spread = {
        "x": x,
        "y": {**y, "field": "low"},
        "y2": {"field": "high"},
        "color": look["color"],
    }
    points = {
        "x": x,
        "y": y,
        "color": look["color"],
        "shape": look["shape"],
        "tooltip": tooltip,
    }
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": spread},
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": dashed},
        {"mark": {**POINT, "size": 80, "opacity": 1}, "encoding": points},
    ]
    chosen = [{"filter": f"datum.metric == {metric.param}"}]
    return make_chart(layers, rows, 340, params=[make_param(metric)], transform=chosen)


def point_map(rows: Rows, names: Sequence[str], layer: Choice) -> Spec:
    """Draw points between -1 and 1 on a plane.

    rows (Rows): One dict for each point, with the keys series; x0, y0, x1, y1, ... (the
        coordinates in each layer, in the order of the options of `layer`); before,
        word, after and lang (for the tooltip).
    names (Sequence[str]): The names of the series.
    layer (Choice): The reader's choice of a layer.
    """
    look = encode_series(names, points=True)
    numbers = json.dumps({value: n for n, value in enumerate(layer.options)})
    transform = [
        {"calculate": f"datum['{axis}' + ({numbers})[{layer.param}]]", "as": axis}
        for axis in ("x", "y")
    ]
    position = {
        axis: {
            "field": axis,
            "type": "quantitative",
            "scale": {"domain": [-1.1, 1.1], "nice": False},
            "axis": None,
        }
        for axis in ("x", "y")
    }
    mark = {**POINT, "size": 110, "opacity": 0.85, "clip": True}
    encoding = {**position, "color": look["color"], "shape": look["shape"]}
    points: Spec = {
        "mark": {**mark, "tooltip": {"content": "data"}},
        "encoding": encoding,
    }
    return make_chart(
        [points],
        rows,
        260,
        params=[make_param(layer)],
        transform=transform,
        view={"stroke": "var(--line)", "cornerRadius": 6},
    )
