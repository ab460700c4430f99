"""Charts with a row for each thing and its name above it, so that a long name needs no
room at the side."""

from collections.abc import Sequence
from typing import Any

from .charts import (
    COLORS,
    GRID,
    INK,
    POINT,
    Rows,
    Spec,
    chart,
    in_lines,
    param,
    percent_axis,
    series,
)
from .figures import Choice

BAND = 15  # height of what is drawn
LINE = 17  # height of a line of a name


def bars(rows: Rows) -> Spec:
    """Shares between 0 and 1.

    rows (Rows): row (a number), label, value, right (the value as text), best (a
        boolean), color.
    """
    x = {"field": "value", "scale": {"domain": [0, 1]}, **_quantity()}
    bar = {"type": "bar", "cornerRadius": 3, "height": {"band": 1}}
    tooltip = [
        {"field": "label", "title": "vectors"},
        {"field": "right", "title": "right"},
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
    everything = [{"calculate": "1", "as": "all"}]
    return _chart(layers, rows, "datum.best", transform=everything)


def dots(rows: Rows, seeds: Rows, names: Sequence[str], metric: Choice) -> Spec:
    """Means with their spread, and each seed.

    rows (Rows): metric, row, series, label, mean, low, high, right.
    seeds (Rows): metric, row, series, value.
    """
    look = series(names, points=True)
    color, shape = ({**look[key], "legend": None} for key in ("color", "shape"))
    scale = {"zero": False, "nice": False, "padding": 14}
    x = {**_quantity(), "scale": scale, "axis": percent_axis(tickCount=5, offset=8)}
    y = {**_row(rows), "bandPosition": 0.5}
    tooltip = [
        {"field": "label", "title": "variant"},
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
    return _chart(layers, rows, params=[param(metric)], transform=chosen)


def stacked(rows: Rows, names: Sequence[str]) -> Spec:
    """Shares that make up one together.

    rows (Rows): row, label, right, series, value, text, start, end (of the part), rest
        (whether it is not the first part of its row).
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
        {"field": "label", "title": "task"},
        {"field": "series", "title": "layer"},
        {"field": "text", "title": "share"},
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
    return _chart(layers, rows)


def _chart(layers: list[Spec], rows: Rows, bold: str = "false", **parts: Any) -> Spec:
    """RETURNS (Spec): With the name of each row at the left, a text at the right.

    bold (str): Test for rows whose texts are set so.
    """
    for row in rows:
        row["lines"] = in_lines(row["label"])
    weight = {"expr": f"{bold} ? 'bold' : 'normal'"}
    y = {**_row(rows), "bandPosition": 0}
    # The parts of a row share its name.
    once = [{"filter": "!datum.rest"}]

    def text(x: Any, field: str, align: str) -> Spec:
        mark = {"type": "text", "baseline": "top", "fontSize": 13, "fill": INK}
        up = {"expr": f"-{LINE} * length(isArray(datum.{field}) ? datum.{field} : [1])"}
        place = {"align": align, "dy": up, "fontWeight": weight}
        return {
            "transform": once,
            "mark": {**mark, **place, "lineHeight": LINE},
            "encoding": {"x": {"value": x}, "y": y, "text": {"field": field}},
        }

    labels = [text(0, "lines", "left"), text("width", "right", "right")]
    height = _step(rows) * len({row["row"] for row in rows}) - _gap(rows)
    return chart([*layers, *labels], rows, height, **parts)


def _lines(rows: Rows) -> int:
    return max(len(in_lines(row["label"])) for row in rows)


def _gap(rows: Rows) -> int:
    """RETURNS (int): Between what is drawn for a row and for the next one."""
    return LINE * _lines(rows) + 12


def _step(rows: Rows) -> int:
    return BAND + _gap(rows)


def _row(rows: Rows) -> Spec:
    scale = {"paddingInner": _gap(rows) / _step(rows), "paddingOuter": 0}
    return {"field": "row", "type": "ordinal", "axis": None, "scale": scale}


def _quantity() -> Spec:
    return {"type": "quantitative", "axis": None}
