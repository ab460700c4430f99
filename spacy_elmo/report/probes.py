"""The section on what each layer knows."""

import re

from ..results import Probe, ProbeTask
from .charts import COLORS, finite
from .figures import Cell, Figure, Group, Table, number, percent
from .load import Found
from .row_charts import bars

BASELINE = "var(--other)"


def probe(found: Found[Probe]) -> Group:
    figures = [_figure(task) for task in found.data.tasks]
    # The end of its path: the rest is of one machine.
    bilm = "/".join(re.split(r"[\\/]", found.data.bilm)[-2:])
    note = f"Vectors of {bilm}." if bilm else ""
    return Group(found.name, found.file, note, figures=figures)


def _figure(task: ProbeTask) -> Figure:
    best = task.best
    rows = [
        {
            "row": place,
            "label": row.name,
            "value": finite(row.accuracy),
            "right": percent(row.accuracy) + (", best" if row is best else ""),
            "best": row is best,
            "color": BASELINE if row.layer is None else COLORS[0],
        }
        for place, row in enumerate(task.rows)
    ]
    parts = [f"{row.name} {percent(row.accuracy)}" for row in task.rows]
    cells: list[list[Cell]] = [
        [row.name, percent(row.accuracy, 2)] for row in task.rows
    ]
    return Figure(
        f"Task: {task.task}",
        f"Share that is right in task {task.task}: {', '.join(parts)}.",
        bars(rows),
        Table(["vectors", "right"], cells, 1),
        f"{number(task.train)} examples to learn from, {number(task.dev)} to measure.",
    )
