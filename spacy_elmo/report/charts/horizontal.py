"""Charts with horizontal rows. The name of a row stands above it, so that a long name
needs no room at the side."""

from collections.abc import Sequence
from typing import Any

from ..page_parts import Choice
from .base import (
    COLORS,
    GRID,
    INK,
    POINT,
    Rows,
    Spec,
    break_lines,
    encode_series,
    make_chart,
    make_param,
    make_percent_axis,
)

BAND = 15  # height of a bar, in pixels
LINE = 17  # height of a line of text


def bar_chart(rows: Rows) -> Spec:
    """Draw shares between 0 and 1 as bars.

    rows (Rows): One dict for each bar, with the keys row (an index), label, value,
        right (the value as text), best (whether it is the best), color.
    """
    x = {"field": "value", "scale": {"domain": [0, 1]}, **_quantity()}
    bar = {"type": "bar", "cornerRadius": 3, "height": {"band": 1}}
    tooltip = [
        {"field": "label", "title": "vectors"},
        {"field": "right", "title": "accuracy"},
    ]
    color = {"field": "color", "scale": None, "legend": None}
    y = _row(rows)
    layers: list[Spec] = [
        {
            "mark": {**bar, "color": GRID},
            "encoding": {"x": {**x, "field": "all"}, "y": y},
        },
        {
            "mark": bar,
            "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip},
        },
    ]
    background = [{"calculate": "1", "as": "all"}]
    return _make_rows(layers, rows, "datum.best", transform=background)


def score_chart(rows: Rows, seeds: Rows, names: Sequence[str], metric: Choice) -> Spec:
    """Draw mean scores with their spread, and the score of each seed.

    rows (Rows): One dict for each metric and variant, with the keys metric, row (an
        index), series, label, mean, low and high (mean ± standard deviation), right
        (the score as text).
    seeds (Rows): One dict for each seed, with the keys metric, row, series, value.
    names (Sequence[str]): The names of the series.
    metric (Choice): The reader's choice of a score.
    """
    look = encode_series(names, points=True)
    color, shape = ({**look[key], "legend": None} for key in ("color", "shape"))
    scale = {"zero": False, "nice": False, "padding": 14}
    x = {
        **_quantity(),
        "scale": scale,
        "axis": make_percent_axis(tickCount=5, offset=8),
    }
    y = {**_row(rows), "bandPosition": 0.5}
    tooltip = [
        {"field": "label", "title": "pipeline"},
        {"field": "right", "title": "score"},
    ]
    chosen = [{"filter": f"datum.metric == {metric.param}"}]
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "stroke": GRID},
            "encoding": {"x": {"value": 0}, "x2": {"value": "width"}, "y": y},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "x": {**x, "field": "low"},
                "x2": {"field": "high"},
                "y": y,
                "color": color,
            },
        },
        {
            "data": {"values": seeds},
            "transform": chosen,
            "mark": {"type": "tick", "thickness": 1.5, "size": 11, "opacity": 0.8},
            "encoding": {"x": {**x, "field": "value"}, "y": y, "color": color},
        },
        {
            "mark": {**POINT, "size": 90, "opacity": 1},
            "encoding": {
                "x": {**x, "field": "mean"},
                "y": y,
                "color": color,
                "shape": shape,
                "tooltip": tooltip,
            },
        },
    ]
    return _make_rows(layers, rows, params=[make_param(metric)], transform=chosen)


def stacked_chart(rows: Rows, names: Sequence[str]) -> Spec:
    """Draw bars whose parts are shares that sum to 1.

    rows (Rows): One dict for each part of a bar, with the keys row (an index), label,
        right (a text about the bar), series, value, text (the value as text), start and
        end (of the part in the bar), rest (whether it is not the first part).
    names (Sequence[str]): The names of the series.
    """
    color = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(names), "range": COLORS[: len(names)]},
        "legend": {"symbolType": "square", "symbolOpacity": 1},
    }
    x = {"field": "start", "scale": {"domain": [0, 1]}, **_quantity()}
    y = _row(rows)
    tooltip = [
        {"field": "label", "title": "component"},
        {"field": "series", "title": "layer"},
        {"field": "text", "title": "weight"},
    ]
    middle = [{"calculate": "(datum.start + datum.end) / 2", "as": "middle"}]
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "stroke": "var(--card)", "height": {"band": 1}},
            "encoding": {
                "x": x,
                "x2": {"field": "end"},
                "y": y,
                "color": color,
                "tooltip": tooltip,
            },
        },
        {
            "transform": [{"filter": "datum.value >= 0.12"}, *middle],
            "mark": {
                "type": "text",
                "baseline": "middle",
                "dy": 1,
                "fill": "var(--on-series)",
                "fontSize": 12,
            },
            "encoding": {
                "x": {**x, "field": "middle"},
                "y": {**y, "bandPosition": 0.5},
                "text": {"field": "text"},
            },
        },
    ]
    return _make_rows(layers, rows)


def _make_rows(
    layers: list[Spec], rows: Rows, bold: str = "false", **more: Any
) -> Spec:
    """Make a chart that has two texts above each row: its name on the left, and the
    text "right" on the right.

    bold (str): A Vega expression that is true if the texts of a row are bold.
    more (Any): Other properties of the chart.
    """
    for row in rows:
        row["lines"] = break_lines(row["label"])
    weight = {"expr": f"{bold} ? 'bold' : 'normal'"}
    y = {**_row(rows), "bandPosition": 0}
    # All parts of a bar have its name. Draw it only for the first part.
    once = [{"filter": "!datum.rest"}]

    def make_text(x: Any, field: str, align: str) -> Spec:
        mark = {"type": "text", "baseline": "top", "fontSize": 13, "fill": INK}
        up = {"expr": f"-{LINE} * length(isArray(datum.{field}) ? datum.{field} : [1])"}
        place = {"align": align, "dy": up, "fontWeight": weight}
        return {
            "transform": once,
            "mark": {**mark, **place, "lineHeight": LINE},
            "encoding": {"x": {"value": x}, "y": y, "text": {"field": field}},
        }

    labels = [
        make_text(0, "lines", "left"),
        make_text("width", "right", "right"),
    ]
    height = _step(rows) * len({row["row"] for row in rows}) - _gap(rows)
    return make_chart([*layers, *labels], rows, height, **more)


def _gap(rows: Rows) -> int:
    """Return how many pixels are between two bars. The name is drawn there."""
    n_lines = max(len(break_lines(row["label"])) for row in rows)
    return LINE * n_lines + 12


def _step(rows: Rows) -> int:
    return BAND + _gap(rows)


def _row(rows: Rows) -> Spec:
    scale = {"paddingInner": _gap(rows) / _step(rows), "paddingOuter": 0}
    return {"field": "row", "type": "ordinal", "axis": None, "scale": scale}


def _quantity() -> Spec:
    return {"type": "quantitative", "axis": None}
