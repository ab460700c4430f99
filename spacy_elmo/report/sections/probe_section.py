"""The section on what each layer knows."""

import re

from ...results import Probe, ProbeRow, ProbeTask
from ..charts.base import COLORS, round_finite
from ..charts.horizontal import bar_chart
from ..formatting import format_number, format_percent
from ..load import ResultFile
from ..page_parts import Cell, Figure, Group, Table

BASELINE_COLOR = "var(--other)"


def make_probe_group(found: ResultFile[Probe]) -> Group:
    figures = [_make_figure(task) for task in found.data.tasks]
    # Show only the end of the path. The rest means nothing on another machine.
    bilm = "/".join(re.split(r"[\\/]", found.data.bilm)[-2:])
    note = f"Vectors of the biLM {bilm}." if bilm else ""
    return Group(found.name, found.file, note, figures=figures)


def find_best_layer(task: ProbeTask) -> ProbeRow | None:
    layers = [row for row in task.rows if row.layer is not None]
    return max(layers, key=lambda row: row.accuracy, default=None)


def find_baseline(task: ProbeTask) -> ProbeRow | None:
    """Return the row with the best accuracy among those that do not use the biLM."""
    others = [row for row in task.rows if row.layer is None]
    return max(others, key=lambda row: row.accuracy, default=None)


def _make_figure(task: ProbeTask) -> Figure:
    best = find_best_layer(task)
    rows = [
        {
            "row": index,
            "label": row.name,
            "value": round_finite(row.accuracy),
            "right": format_percent(row.accuracy) + (", best" if row is best else ""),
            "best": row is best,
            "color": BASELINE_COLOR if row.layer is None else COLORS[0],
        }
        for index, row in enumerate(task.rows)
    ]
    parts = [f"{row.name} {format_percent(row.accuracy)}" for row in task.rows]
    cells: list[list[Cell]] = [
        [row.name, format_percent(row.accuracy, 2)] for row in task.rows
    ]
    return Figure(
        f"Task: {task.task}",
        f"Accuracy in task {task.task}: {', '.join(parts)}.",
        bar_chart(rows),
        Table(["vectors", "accuracy"], cells, 1),
        f"{format_number(task.train)} examples for training, "
        f"{format_number(task.dev)} for evaluation.",
    )
